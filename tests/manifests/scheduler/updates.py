"""Planned changes: a rolling update of a workload, an update of a managed node group."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.manifests.scheduler.pods import Pod, Workload
from tests.manifests.scheduler.world import Waiting, World


@dataclass
class Course:
    """What happened during an update.

    Attributes
    ----------
    waited : list of Waiting
        Pods that waited at some point.
    held : list of Pod
        Pods that a budget kept on a node that had to be emptied: the update would fail.
    stuck : list of Waiting
        Pods that still wait when nothing more will change.
    """

    waited: list[Waiting] = field(default_factory=list)
    held: list[Pod] = field(default_factory=list)
    stuck: list[Waiting] = field(default_factory=list)


def roll(world: World, workload: Workload) -> Course:
    """Replace every pod of a workload as its controller does.

    A pod that was told to go keeps its place until its drain is over; the controller does not
    count it (Kubernetes documentation, "Deployments"), so new pods may wait for that.
    """
    course = Course()
    cluster = world.cluster
    rollout, wanted = workload.rollout, workload.replicas
    while True:
        running = world.of(workload)
        old = [pod for pod in running if pod.revision == 0]
        waiting = [pod for pod in world.waiting if pod.workload is workload]
        room = wanted + rollout.max_surge - len(running) - len(waiting)
        missing = wanted - sum(1 for p in [*running, *waiting] if p.revision == 1)
        if workload.kind == "StatefulSet":
            ordinal_free = [p for p in _ordinals(workload) if p not in {x.name for x in running}]
            room = min(len(ordinal_free), 1) - len(waiting)
        leaving = [pod for pod in cluster.terminating if pod.workload is workload]
        if rollout.recreate and (old or leaving):
            room = 0
        if room > 0 and missing > 0:
            world.place([_next(workload, running)])
            course.waited += _of(world, workload)
            continue
        if old and len(running) - (wanted - rollout.max_unavailable) > 0:
            if workload.kind == "StatefulSet":
                # The old pod is gone before the new one of the same name is made.
                cluster.remove(old[-1])
            else:
                cluster.terminating.add(old[-1])
            continue
        if leaving:
            cluster.remove(leaving[0])
            world.place()
            continue
        course.stuck = _of(world, workload)
        return course


def _ordinals(workload: Workload) -> list[str]:
    return [f"{workload.name}-{index}" for index in range(workload.replicas)]


def _next(workload: Workload, running: list[Pod]) -> Pod:
    taken = {pod.name for pod in running}
    free = [i for i, name in enumerate(_ordinals(workload)) if name not in taken]
    return workload.pod(free[-1] if free else 0, revision=1)


def _of(world: World, workload: Workload) -> list[Waiting]:
    return [w for w in world.why_waiting() if w.pod.workload is workload]


def update_group(world: World, name: str) -> Course:
    """Replace every node of a managed node group.

    Amazon EKS user guide, "Understand each phase of node updates": by default, one new node in
    each zone that has nodes (at least), then all old ones unschedulable, then one drained at a
    time, each replaced in its zone; with the minimal strategy a node goes before its
    replacement comes.
    """
    course = Course()
    source, _ = world.groups[name]
    old = world.nodes_of(name)
    if source.surge:
        for zone in dict.fromkeys(node.zone for node in old):
            world.join(source, zone)
        for node in old:
            node.cordoned = True
    for node in old:
        course.held += world.evict(node)
        course.waited += world.why_waiting()
        if course.held:
            return course
        world.leave(node)
        world.join(source, node.zone)
        world.place()
    course.stuck = world.why_waiting()
    return course
