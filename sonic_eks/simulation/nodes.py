"""Pods and their nodes: what a worker waits for until it is ready, and what its GPU costs.

One worker, or one placeholder, has one node. Workers take a node that is free, then one that a
placeholder holds, then one that is on its way, before a new one is launched; of two that are
pending the worker has precedence. A placeholder that gave way is pending itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

_PENDING = math.inf


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """Seconds that a worker's start takes.

    Attributes
    ----------
    node : float
        From the launch until the node can run pods.
    image : float
        Until the worker's image is there.
    weights : float
        Until the model is loaded and warm.
    """

    node: float
    image: float
    weights: float


@dataclass(eq=False)
class Node:
    """A GPU.

    Attributes
    ----------
    launched : float
        Seconds at which it was, and from which on it costs.
    up : float
        From when on it runs pods.
    image : float or None
        From when on it has the image; None: nobody asked for it yet.
    held : bool
        Whether a placeholder has it.
    free : float or None
        Since, or from, when nobody has it; None while somebody does.
    """

    launched: float
    up: float
    image: float | None = None
    held: bool = False
    free: float | None = None


@dataclass(eq=False)
class Pod:
    """A worker.

    Attributes
    ----------
    number : int
        Unique, rising.
    node : Node or None
        None while it has none.
    ready : float
        From when on it serves; infinite while it has no node.
    """

    number: int
    node: Node | None = None
    ready: float = _PENDING


@dataclass(kw_only=True)
class Fleet:
    """Workers, placeholders and nodes.

    Attributes
    ----------
    cold_start : ColdStart
        Seconds of a start.
    headroom : int
        Placeholders.
    keep_seconds : float
        Seconds for which a node that became free is kept.
    always : int
        Nodes that stay in any case.
    outages : sequence of (begin, end)
        Seconds between which no node can be had.
    pods : list of Pod
        Workers that were not removed, ready or not.
    """

    cold_start: ColdStart
    headroom: int = 0
    keep_seconds: float
    always: int = 0
    outages: Sequence[tuple[float, float]] = ()
    pods: list[Pod] = field(default_factory=list)
    _nodes: list[Node] = field(default_factory=list, repr=False)
    _gone: list[tuple[float, float]] = field(default_factory=list, repr=False)
    _starting: list[Pod] = field(default_factory=list, repr=False)
    _numbers: int = field(default=0, repr=False)

    def begin(self, now: float, replicas: int) -> None:
        """Have so many workers, ready, and the placeholders and nodes that belong to them."""
        for _ in range(replicas):
            node = Node(now, now, now)
            self._nodes.append(node)
            self.pods.append(Pod(self._number(), node, now))
        for index in range(max(self.headroom, self.always - replicas)):
            held = index < self.headroom
            self._nodes.append(Node(now, now, now, held=held, free=None if held else now))

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def scale(self, now: float, replicas: int) -> list[Pod]:
        """Add or remove workers; return those that were ready.

        Call `ready` before. Which are removed: those without a node, then those that are not
        ready, then those that became so last (Kubernetes, "ReplicaSet", scaling down). `end` frees
        the nodes of what is returned.
        """
        for _ in range(replicas - len(self.pods)):
            pod = Pod(self._number())
            self.pods.append(pod)
            self._starting.append(pod)
        left = []
        if replicas < len(self.pods):
            self.pods.sort(key=lambda pod: (pod.ready, pod.number))
            for pod in self.pods[replicas:]:
                if pod.ready <= now:
                    left.append(pod)
                else:
                    self._starting.remove(pod)
                    self._release(pod, now)
            del self.pods[replicas:]
        self.settle(now)
        return left

    def end(self, pod: Pod, at: float) -> None:
        """Free the node of a worker that was removed."""
        self._release(pod, at)

    def _release(self, pod: Pod, at: float) -> None:
        node = pod.node
        if node is None:
            return
        node.free = max(at, node.up)
        if node.image is not None and node.image > at:
            node.image = None

    def ready(self, until: float) -> list[tuple[float, int]]:
        """Return when workers became ready that had not by the last call, and how many."""
        came = sorted(pod.ready for pod in self._starting if pod.ready <= until)
        if not came:
            return []
        self._starting = [pod for pod in self._starting if pod.ready > until]
        return [(time, came.count(time)) for time in sorted(set(came))]

    def settle(self, now: float) -> None:
        """Give nodes to who waits for one, and take away those kept for long enough."""
        self._remove_kept(now)
        for pod in self._starting:
            if pod.node is None and (node := self._node(now, held=True)) is not None:
                pod.node = node
                pod.ready = self._give(node, now) + self.cold_start.weights
        for _ in range(self.headroom - sum(node.held for node in self._nodes)):
            if (node := self._node(now, held=False)) is not None:
                self._give(node, now)
                node.held = True

    def _node(self, now: float, *, held: bool) -> Node | None:
        """Return the node that is up first: a free one, else one that is held, else a new one."""
        usable = [node for node in self._nodes if self._is_free(node, now) or (held and node.held)]
        return min(
            usable,
            key=lambda node: (max(node.up, now), node.held, node.image is None),
            default=None,
        ) or self._launched(now)

    @staticmethod
    def _is_free(node: Node, now: float) -> bool:
        # One that is on its way, and that nobody waits for any more, is as good as free.
        return node.free is not None and (node.free <= now or node.up > now)

    def _launched(self, now: float) -> Node | None:
        if any(begin <= now < end for begin, end in self.outages):
            return None
        node = Node(now, now + self.cold_start.node)
        self._nodes.append(node)
        return node

    def _give(self, node: Node, now: float) -> float:
        """Take a node; return when the image is there."""
        node.free = None
        node.held = False
        if node.image is None:
            node.image = max(now, node.up) + self.cold_start.image
        return max(now, node.image)

    def _remove_kept(self, now: float) -> None:
        over = [n for n in self._nodes if n.free is not None and n.free + self.keep_seconds <= now]
        over.sort(key=lambda node: node.free or 0)
        for node in over[: max(0, len(self._nodes) - self.always)]:
            self._nodes.remove(node)
            self._gone.append((node.launched, (node.free or 0) + self.keep_seconds))

    def gpu_hours(self, begin: float, end: float) -> float:
        """Return the hours of all nodes, from launch until they were gone, between two instants."""
        self._remove_kept(end)
        lives = [*self._gone, *((node.launched, end) for node in self._nodes)]
        return sum(max(0.0, min(gone, end) - max(came, begin)) for came, gone in lives) / 3600
