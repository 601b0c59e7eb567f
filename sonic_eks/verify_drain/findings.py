"""What was seen, what it is called, and the configuration that fits it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from sonic_eks.errors import one_line

MIN_IDLE_SECONDS, MAX_IDLE_SECONDS = 2, 60
"""Default and upper bound of ``drain.idleSeconds``."""


class OnSigterm(StrEnum):
    """What SIGTERM makes of a server with generations in progress."""

    DRAINS = "drains"
    EXITS = "exits"
    LIMITED = "drains-to-a-limit"
    KEEPS_TAKING = "keeps-taking"
    IGNORES = "ignores"
    UNCLEAR = "unclear"


class OverCapacity(StrEnum):
    """What becomes of more generations than a server can make at a time."""

    REJECTS = "rejects"
    QUEUES = "queues"
    TAKES_ALL = "takes-all"
    FAILS = "fails"


MEANING = {
    OnSigterm.DRAINS: "finishes what it has, takes nothing new, ends by itself",
    OnSigterm.EXITS: "ends at once and cuts what it has",
    OnSigterm.KEEPS_TAKING: "goes on taking work, and ends when it has none",
    OnSigterm.LIMITED: "takes nothing new, and after a while ends and cuts what it still has",
    OnSigterm.IGNORES: "goes on as if nothing were, to the end of the observation",
    OnSigterm.UNCLEAR: "did none of what is known",
}

AT_ONCE_SECONDS = 1.5
"""Latest audio of a process that ends at once: about a second, and the time of a look."""

# docs/draining.md, the table of workers: what each setting costs each behaviour.
_WORKER: dict[OnSigterm, tuple[str | None, str]] = {
    OnSigterm.DRAINS: ("sigterm", "It drains by itself; the grace period covers what it has."),
    OnSigterm.EXITS: (
        "wait-idle",
        "SIGTERM waits until it is idle. Under steady load it never is, and streams are cut.",
    ),
    OnSigterm.KEEPS_TAKING: (
        "sigterm",
        "It ends at its first idle moment. Under steady load it is killed and streams are cut.",
    ),
    OnSigterm.IGNORES: (
        "sigterm",
        "No setting helps: at the end of the grace period it would be killed with what it has.",
    ),
    OnSigterm.LIMITED: (
        None,
        "worker: not set; it drains up to a limit of its own, which longer generations exceed.",
    ),
}


@dataclass
class SigtermSeen:
    """What was seen around SIGTERM.

    Attributes
    ----------
    old_completed, old_cut : int
        Generations that were in progress.
    new_served, new_refused : int
        Generations that were asked for after it, completed, and refused while old ones went on.
        Others without an answer are neither.
    exit_seconds : float or None
        From SIGTERM to the end of the process; None: it ran on to the end of the observation.
    old_end_seconds : float
        From SIGTERM to the last audio of the old generations.
    watched_seconds : float
        How long it was watched.
    doubt : str
        Why refusals may have another reason than SIGTERM; empty: they have none.
    new_waiting : int
        Generations that were asked for after it and had no answer, while old ones went on, for
        longer than new ones needed before: as those of a queue that nobody takes from.
    new_cut : int
        Generations that were asked for after it, begun and not completed.
    late_seconds : float
        How much later than its end the end of the process may have been seen.
    others : list of str
        What else was ready, and may have served new ones.
    """

    old_completed: int
    old_cut: int
    new_served: int
    new_refused: int
    exit_seconds: float | None
    old_end_seconds: float
    watched_seconds: float
    doubt: str = ""
    new_waiting: int = 0
    new_cut: int = 0
    late_seconds: float = 0.0
    others: list[str] = field(default_factory=list)

    @property
    def behaviour(self) -> OnSigterm:
        """Which of the known behaviours this is."""
        served_on = self.new_served and not (self.old_cut or self.new_cut or self.others)
        if self.exit_seconds is None:
            return OnSigterm.IGNORES if served_on else OnSigterm.UNCLEAR
        if self.new_served or self.new_cut:
            return OnSigterm.KEEPS_TAKING if served_on else OnSigterm.UNCLEAR
        at_once = self.old_end_seconds <= AT_ONCE_SECONDS
        # What is cut long before the process ends is cut by something else.
        with_its_end = self.exit_seconds - self.old_end_seconds <= self._longest_end
        if self.old_cut and at_once and with_its_end:
            # Whatever it finished by chance in the moment before.
            return OnSigterm.EXITS
        if self.doubt or not (self.new_refused or self.new_waiting):
            return OnSigterm.UNCLEAR
        if not self.old_cut:
            return OnSigterm.UNCLEAR if at_once else OnSigterm.DRAINS
        return OnSigterm.LIMITED if with_its_end else OnSigterm.UNCLEAR

    @property
    def _longest_end(self) -> float:
        """Longest time from its last audio to the end of a process that ends with it."""
        return AT_ONCE_SECONDS + self.late_seconds

    @property
    def why_unclear(self) -> str:
        """What keeps it from being clear, and what to do; empty where it is clear."""
        if self.behaviour is not OnSigterm.UNCLEAR:
            return ""
        if self.new_served and self.others:
            return f"{', '.join(self.others)} is ready too and may have served; leave one alone"
        if (self.new_served or self.new_cut) and (self.old_cut or self.new_cut):
            return "it served and cut; is it alone behind URL?"
        if self.exit_seconds is None:
            return "it neither served nor ended; give longer --watch-seconds"
        if self.doubt:
            return self.doubt
        if not self.old_cut and self.old_end_seconds <= AT_ONCE_SECONDS:
            return "what it had ended too soon after SIGTERM; give more --characters"
        if not (self.new_refused or self.new_waiting):
            return "it refused nothing while it had work; give more --characters"
        return "what it had was cut long before it ended"


@dataclass
class CapacitySeen:
    """What was seen over capacity.

    Attributes
    ----------
    kind : OverCapacity
        What it is called.
    asked : int
        Generations that were asked for at the same time.
    together : int
        Most that delivered audio at the same time.
    detail : str
        What a refusal said.
    """

    kind: OverCapacity
    asked: int
    together: int
    detail: str = ""

    @property
    def setting(self) -> str | None:
        """``scaling.overCapacity``; None where this does not tell."""
        if self.kind is OverCapacity.REJECTS:
            return "refuse"
        # One that nobody has heard of within the timeout may wait, or be lost.
        return "queue" if self.kind is OverCapacity.QUEUES and not self.detail else None


@dataclass
class Findings:
    """Everything that was learned about one service."""

    service: str
    subject: str | None
    when: str
    longest_gap_seconds: float
    capacity: CapacitySeen
    sigterm: SigtermSeen | None = None
    pre_stop_served: tuple[int, int] | None = None
    """Generations served, and asked for, while the pod was marked as going."""
    before_served: tuple[int, int] | None = None
    """The same, of a subject that was not marked: before SIGTERM, beside as many long ones."""
    notes: list[str] = field(default_factory=list)
    direct: bool = False
    """Whether the subject itself was asked, and no API server in front of a worker."""
    failed: str = ""
    """Why the experiment with SIGTERM could not be made or ended; empty: it could."""

    @property
    def unclear(self) -> str:
        """What is not clear; empty: everything that was tried is."""
        if self.failed:
            return self.failed
        if self.sigterm is not None and self.sigterm.behaviour is OnSigterm.UNCLEAR:
            return f"what it does on SIGTERM is not clear: {self.sigterm.why_unclear}"
        return ""

    @property
    def idle_seconds(self) -> int:
        """``drain.idleSeconds``: twice the longest pause in a generation, within its bounds."""
        return min(max(MIN_IDLE_SECONDS, math.ceil(2 * self.longest_gap_seconds)), MAX_IDLE_SECONDS)

    def evidence(self) -> list[str]:
        """Return what it rests on, a line each."""
        seen = self.capacity
        words = "it says " if seen.kind is not OverCapacity.QUEUES else ""
        said = f"; {words}{seen.detail}" if seen.detail else ""
        lines = [
            f"{seen.asked} at a time: {_CAPACITY_SAYS[seen.kind]}{said}",
            f"most generations with audio at the same time: {seen.together}",
            f"longest pause within a generation: {self.longest_gap_seconds:.2f} s",
        ]
        if self.pre_stop_served is not None:
            served, asked = self.pre_stop_served
            lines.append(f"while its preStop hook ran: served {served} of {asked} new generations")
        if self.before_served is not None:
            served, asked = self.before_served
            lines.append(f"before SIGTERM, beside long ones: served {served} of {asked} new ones")
        if self.sigterm is not None:
            lines += _sigterm_lines(self.sigterm)
        if self.failed:
            lines.append(f"SIGTERM: {self.failed}")
        return [one_line(line) for line in lines + self.notes]

    def to_yaml(self) -> str:
        """Return the part of a configuration that fits, with what it rests on as comments."""
        head = [f"# Learned by `sonic-eks verify-drain` on {self.when}", f"# from {self.service}"]
        head[1] += f", {self.subject}:" if self.subject else ":"
        lines = [*map(one_line, head), *(f"# - {line}" for line in self.evidence()), "drain:"]
        if self.sigterm is not None:
            lines += self._worker_lines(self.sigterm.behaviour)
        lines.append(f"  idleSeconds: {self.idle_seconds}")
        if self.capacity.setting is not None:
            lines += ["scaling:", f"  overCapacity: {self.capacity.setting}"]
        return "\n".join(lines) + "\n"

    def _worker_lines(self, behaviour: OnSigterm) -> list[str]:
        """Return ``drain.worker``, which is for workers behind an API server, with the reason."""
        if behaviour is OnSigterm.UNCLEAR:
            return ["  # worker: not clear from this; see above and try again"]
        if self.direct:
            return ["  # worker: not set; who serves callers itself gets SIGTERM after its drain."]
        worker, why = _WORKER[behaviour]
        lines = [f"  # {why}"]
        if worker == "wait-idle":
            lines.append("  # For workers: with topology standalone leave it out.")
        return [*lines, f"  worker: {worker}"] if worker else lines

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            **asdict(self),
            "behaviour": self.sigterm.behaviour if self.sigterm else None,
            "idleSeconds": self.idle_seconds,
            "overCapacity": self.capacity.setting,
            "evidence": self.evidence(),
        }


_CAPACITY_SAYS = {
    OverCapacity.REJECTS: "refuses what is over its capacity, so callers must try again",
    OverCapacity.QUEUES: "lets wait what is over its capacity",
    OverCapacity.TAKES_ALL: "takes all",
    OverCapacity.FAILS: "fails",
}


def _sigterm_lines(seen: SigtermSeen) -> list[str]:
    total = seen.old_completed + seen.old_cut
    ended = (
        f"ran on for {seen.watched_seconds:.0f} s, idle at the end"
        if seen.exit_seconds is None
        else f"ended after {seen.exit_seconds:.1f} s"
    )
    new = f"of new ones {seen.new_served} were served, {seen.new_refused} refused"
    new += f", {seen.new_waiting} waited in vain" if seen.new_waiting else ""
    new += f", {seen.new_cut} cut" if seen.new_cut else ""
    return [
        f"of {total} generations in progress at SIGTERM {seen.old_completed} completed; {new}",
        f"the last audio of them came after {seen.old_end_seconds:.1f} s; the process {ended}",
        *filter(None, [seen.why_unclear or seen.doubt]),
        f"so on SIGTERM it {MEANING[seen.behaviour]} ({seen.behaviour})",
    ]
