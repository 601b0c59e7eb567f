"""When a drain is over."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.stream_gate.sockets import Key
from sidecar.stream_gate.watch import State


@dataclass
class Drain:
    """One drain: `step` takes what each look found, `reason` is set when it is over."""

    start: float
    propagation: float
    budget: float
    waited: bool = True
    """Whether somebody waits for its end, and the server lives on until then."""
    reason: str = ""
    """drained, idle, budget or restarted."""
    seconds: float = 0.0
    cut: int | None = 0
    """Streams that were active when the budget ended; None: could not be read."""
    _source: str = ""
    _before: frozenset[Key] | None = None
    _gone: bool = False

    def again(self, now: float) -> None:
        """Count its times from now on: who called first may have been no kubelet.

        What is there at the end of the new propagation time is what is waited for.
        """
        self.start = now
        self._source, self._before = "", None

    def step(self, state: State) -> bool:
        """Take one look into account; True once the drain is over."""
        if self.reason:
            return True
        self.seconds = max(0.0, state.time - self.start)
        if self.seconds >= self.propagation:
            if state.source != self._source:
                self._source, self._before = state.source, state.connections
            if self._before is not None and state.connections is not None:
                self._before &= state.connections
                if not self._before:
                    self.reason = "drained"
            if not self.reason and state.quiet:
                self.reason = "idle"
        if not self.waited and not self.reason:
            # A server that was away and answers again is a new one, which takes work.
            if self._gone and state.source != "none":
                self.reason = "restarted"
            self._gone = state.source == "none"
        if not self.reason and self.seconds >= self.budget:
            self.reason, self.cut = "budget", state.active
        return bool(self.reason)
