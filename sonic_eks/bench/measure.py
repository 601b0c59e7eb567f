"""A measurement: one run, or the search for the highest concurrency, as a result to write down."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sonic_eks import __version__
from sonic_eks.bench.capacity import conversations
from sonic_eks.bench.check import check_service
from sonic_eks.bench.plan import Arrivals, Load, Protocol, Slo, Target
from sonic_eks.bench.run import Reporter, Run, run
from sonic_eks.bench.search import Search
from sonic_eks.bench.statistics import failed, in_ms, plain, ttfb_percentile

REPEATS = 2
"""How often a run is repeated that is not valid."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure.

    Attributes
    ----------
    max_concurrency : int or None
        Search up to this concurrency; None: the one run that `load` describes.
    speaking_percent : float
        Share of a conversation in which the service speaks, assumed.
    processes : int
        Processes that share the load at first; more are added when they lag.
    max_processes : int or None
        Most processes; None: one for each core of the machine that measures.
    """

    target: Target
    load: Load
    slo: Slo = field(default_factory=Slo)
    max_concurrency: int | None = None
    speaking_percent: float = 40.0
    processes: int = 1
    max_processes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it, without the API key."""
        return {**asdict(self), "target": _without_key(self.target)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], key: str) -> Plan:
        """Return a plan from plain data and the API key."""
        target = {**data["target"], "protocol": Protocol(data["target"]["protocol"])}
        load = {**data["load"], "arrivals": Arrivals(data["load"]["arrivals"])}
        parts = {
            "target": Target(**target, key=key),
            "load": Load(**load),
            "slo": Slo(**data["slo"]),
        }
        return cls(**{**data, **parts})


def _without_key(target: Target) -> dict[str, Any]:
    return {name: value for name, value in asdict(target).items() if name != "key"}


@dataclass
class Result:
    """What was measured.

    Attributes
    ----------
    runs : list of Run
        In the order in which they ran, those that are not valid included.
    highest : int or None
        Highest concurrency that keeps the objective, of a search; 0 for none.
    """

    plan: Plan
    begun: datetime
    runs: list[Run]
    highest: int | None = None

    @property
    def problems(self) -> list[str]:
        """What keeps the result from being good, a line each."""
        found = []
        last = self.runs[-1]
        if not last.valid:
            found.append(not_valid(last))
        elif self.highest is None:
            found += [f"objective not kept: {miss}" for miss in misses(last, self.plan.slo)]
        elif self.highest == 0:
            one = next(r for r in reversed(self.runs) if r.load.concurrency == 1)
            found.append(
                "objective not kept at one generation in progress:"
                f" {'; '.join(misses(one, self.plan.slo))}"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it: times in seconds, null for never, no API key."""
        plan = self.plan
        return {
            "version": __version__,
            "begun": self.begun.isoformat(timespec="seconds"),
            "target": _without_key(plan.target),
            "slo": asdict(plan.slo),
            "speakingPercent": plan.speaking_percent,
            "maxConcurrency": plan.max_concurrency,
            "runs": [_run_dict(one, plan.slo) for one in self.runs],
            "capacity": self._capacity(),
            "problems": self.problems,
        }

    def _capacity(self) -> dict[str, Any] | None:
        if not self.highest:
            return None
        busy = [
            one.summary.busy
            for one in self.runs
            if one.load.concurrency == self.highest and one.valid
        ]
        carried = conversations(
            self.highest,
            busy=sum(busy) / len(busy),
            speaking_percent=self.plan.speaking_percent,
            percentile=self.plan.slo.percentile,
        )
        return {
            "generations": self.highest,
            "atLeast": self.highest == self.plan.max_concurrency,
            "conversationsOnAverage": round(carried.average, 1),
            "conversationsAlone": carried.alone,
        }


class _NotValidError(Exception):
    """A run was not valid, however often it was repeated."""


def misses(one: Run, slo: Slo) -> list[str]:
    """Return what of the objective a run does not keep."""
    return one.summary.misses(slo, ttfb_percentile(one.records, slo.percentile))


def not_valid(one: Run) -> str:
    """Return the line that says why a run is not valid."""
    if one.summary.valid:
        several = one.processes > 1
        return (
            f"not valid: {one.summary.in_progress:.1f} of {one.load.concurrency} generations were"
            " in progress in the mean"
            f"{f', in {one.processes} processes that ended at different times' if several else ''};"
            f" give more --generations{' or fewer --processes' if several else ''}"
        )
    return (
        f"not valid: the client was the bottleneck, its own lag is {in_ms(one.summary.lag)} at p99"
        f" in {one.processes} process{'es' if one.processes > 1 else ''};"
        " use a larger or a quieter machine"
    )


async def measure(plan: Plan, reporter: Reporter) -> Result:
    """Check the service, then run what the plan says.

    Raises
    ------
    SonicEksError
        When the service cannot be measured: unreachable, wrong key, another protocol.
    """
    await check_service(plan.target)
    result = Result(plan, datetime.now(UTC), [])
    if plan.max_concurrency is None:
        await _run_valid(result, plan.load, reporter)
        return result
    trials: dict[int, int] = {}

    async def passes(concurrency: int) -> bool:
        # Other texts and moments each time, or a confirmation would confirm the same luck.
        trials[concurrency] = trials.get(concurrency, 0) + 1
        seed = plan.load.seed + 1000 * concurrency + trials[concurrency]
        one = await _run_valid(
            result, replace(plan.load, concurrency=concurrency, seed=seed), reporter
        )
        if not one.valid:
            raise _NotValidError
        return not misses(one, plan.slo)

    with contextlib.suppress(_NotValidError):
        result.highest = await Search(passes, plan.max_concurrency).highest()
    return result


async def _run_valid(result: Result, load: Load, reporter: Reporter) -> Run:
    """Run, and again while it is not valid: with more processes where the client was too slow."""
    plan = result.plan
    most = plan.max_processes or os.cpu_count() or 1
    processes = min(result.runs[-1].processes if result.runs else plan.processes, most)
    for _ in range(1 + REPEATS):
        reporter.begin(load.description, load.generations)
        one = await run(plan.target, load, processes=processes, reporter=reporter)
        result.runs.append(one)
        if one.valid:
            break
        if not one.summary.valid:
            processes = min(processes * 2, most)
    return one


def _run_dict(one: Run, slo: Slo) -> dict[str, Any]:
    summary = one.summary
    missed = misses(one, slo)
    return {
        "load": asdict(one.load),
        "processes": one.processes,
        "valid": one.valid,
        "sloKept": one.valid and not missed,
        "missed": missed,
        "examples": _examples(one),
        "ttfbAtPercentile": plain(ttfb_percentile(one.records, slo.percentile)),
        **{key: plain(value) for key, value in asdict(summary).items()},
    }


def _examples(one: Run) -> dict[str, str]:
    """Return what the first failure of each kind said."""
    found: dict[str, str] = {}
    for record in one.records:
        if failed(record):
            found.setdefault(str(record.outcome), record.detail)
    return found
