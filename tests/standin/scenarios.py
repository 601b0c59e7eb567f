"""The drains that docs/draining.md tells about, as they are run by the tests.

Two clocks are scaled. Drains run 60 times faster than in production (2 minutes of propagation are 2
seconds), speech 5 times (a wait of up to 20 seconds between two generations is up to 4). So
generations are longer against the drain than in production, which makes a run harder.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.standin.client import Callers, Tally
from tests.standin.fleet import Fleet, fleet
from tests.standin.pod import DrainNumbers, End, Pod
from tests.standin.process import Process, http_get, metric, until
from tests.standin.worker import ON_SIGTERM

DRAIN_CLOCK = 60.0
"""How much faster than the wall clock drains run."""

# Propagation 120 s, streams of at most 600 s, margin 60 s: the defaults of the drain section.
DEFAULT_NUMBERS = DrainNumbers(
    propagation=120 / DRAIN_CLOCK, max_stream=600 / DRAIN_CLOCK, margin=60 / DRAIN_CLOCK
)
# Streams of at most 180 s: a drain that lasts to its budget is over sooner.
NEVER_NUMBERS = DrainNumbers(
    propagation=120 / DRAIN_CLOCK, max_stream=180 / DRAIN_CLOCK, margin=60 / DRAIN_CLOCK
)
RENEW_SECONDS = DEFAULT_NUMBERS.max_stream / 2

# First audio after 150 ms of the wall clock, then a chunk each 168 ms, for 0.3 to 0.7 s more.
PACE = ("--first-audio-ms", 750, "--realtime-factor", 0.6, "--chunk-seconds", 1.4)

CALLERS = 200
DEREGISTRATION = 0.9
"""Share of the propagation time after which the load balancer sends nothing new."""


@dataclass
class Rollout:
    """What a replacement of every API pod did."""

    tally: Tally
    ends: list[End]
    numbers: DrainNumbers
    served_while_draining: int
    """Generations that the old pods completed after their end had begun."""
    arrived_while_draining: int
    """Connections that the old pods got after their end had begun."""
    reported_cut: float
    """Cuts that the gates reported."""


async def roll_out(running: Fleet, callers: Callers, old: list[Pod], gate: bool = True) -> Rollout:
    """Start as many new API pods, then end the old ones, with callers at work throughout."""
    await asyncio.gather(*(running.add_api(gate=gate) for _ in old))
    served, arrived = callers.tally.on, callers.tally.connections
    before = _sum(served, old), _sum(arrived, old)
    for pod in old:
        running.targets.deregister(pod, running.numbers.propagation * DEREGISTRATION)
    ends = await asyncio.gather(*(pod.terminate() for pod in old))
    after = _sum(served, old), _sum(arrived, old)
    # The callers come back to the new pods, whatever that takes on a busy machine.
    await _completed(callers, callers.tally.completed + CALLERS // 2)
    await callers.stop()
    reported = sum(end.drain.get("cut") or 0 for end in ends)
    late = [b - a for a, b in zip(before, after, strict=True)]
    return Rollout(callers.tally, list(ends), running.numbers, late[0], late[1], reported)


def _sum(counts: Counter[int], pods: list[Pod]) -> int:
    return sum(counts[pod.port] for pod in pods)


async def _service(running: Fleet, gate: bool) -> list[Pod]:
    await asyncio.gather(*(running.add_worker("--model", "sonic-3", *PACE) for _ in range(2)))
    return list(await asyncio.gather(*(running.add_api(gate=gate) for _ in range(2))))


async def replace_api_pods(
    folder: Path, numbers: DrainNumbers, start: Callable[[Callers], None], gate: bool = True
) -> Rollout:
    """Replace both API pods under load."""
    async with fleet(folder, numbers) as running:
        old = await _service(running, gate)
        callers = running.callers()
        start(callers)
        await _completed(callers, CALLERS)
        return await roll_out(running, callers, old, gate)


def callers_that_renew(callers: Callers) -> None:
    """Half with a connection for each generation, half that renew within half the budget."""
    callers.start(CALLERS // 2, renew_seconds=0)
    callers.start(CALLERS // 2, renew_seconds=RENEW_SECONDS)


def callers_that_never_renew(callers: Callers) -> None:
    """All on one connection for as long as it lasts."""
    callers.start(CALLERS, renew_seconds=None)


@dataclass
class WorkerRow:
    """What became of the generations while one of two workers of a model ended."""

    on_sigterm: str
    mode: str
    tally: Tally
    end: End


LIGHT = "wait-idle, light load"
MODES = ("sigterm", "wait-idle")
# Enough that neither of two workers has an idle moment while one of them ends.
BUSY_CALLERS = 24
WORKER_PACE = ("--first-audio-ms", 300, "--realtime-factor", 0.8, "--chunk-seconds", 6)
# A generation takes 1 to 3 s, well under the margin.
WORKER_NUMBERS = DrainNumbers(propagation=0, max_stream=2, margin=6, idle=0.4)


async def end_workers(folder: Path) -> list[WorkerRow]:
    """End a worker of each kind in each mode, all under load at the same time.

    Each case has a model of its own, which a second worker serves too, and callers of its own:
    BUSY_CALLERS that do not wait, or 1 that does in the case of a light load.
    """
    cases = [(way, mode) for way in ON_SIGTERM for mode in MODES]
    cases += [("exit", LIGHT)]
    models = [f"model-{index}" for index in range(len(cases))]
    async with fleet(folder, WORKER_NUMBERS) as running:
        every = [argument for model in models for argument in ("--model", model)]
        await asyncio.gather(running.add_worker(*every, *WORKER_PACE), running.add_api(gate=False))
        victims = await asyncio.gather(
            *(
                running.add_worker(
                    *("--model", model, "--on-sigterm", way, *WORKER_PACE), gate=mode != "sigterm"
                )
                for model, (way, mode) in zip(models, cases, strict=True)
            )
        )
        groups = []
        for index, (model, (_, mode)) in enumerate(zip(models, cases, strict=True)):
            light = mode == LIGHT
            group = running.callers(
                model=model,
                gap_seconds=4 if light else 0,
                seed=index,
                transcript="x" * (50 if light else 300),
                sample_rate=800,
            )
            group.start(1 if light else BUSY_CALLERS, renew_seconds=None)
            groups.append(group)
        await asyncio.gather(*(_completed(group, len(group.tasks)) for group in groups))
        # A worker of a busy case ends while it has work in hand.
        busy = [v for v, (_, mode) in zip(victims, cases, strict=True) if mode != LIGHT]
        await asyncio.gather(*(_loaded(victim) for victim in busy))
        ends = await asyncio.gather(*(victim.terminate() for victim in victims))
        await asyncio.gather(*(group.stop() for group in groups))
    return [
        WorkerRow(way, mode, group.tally, end)
        for (way, mode), group, end in zip(cases, groups, ends, strict=True)
    ]


async def _completed(callers: Callers, count: int) -> None:
    async def check() -> bool:
        return callers.tally.completed >= count

    await until(check, f"{count} generations")


async def _loaded(worker: Pod, generations: int = 2) -> None:
    async def check() -> bool:
        _, text = await http_get(worker.metrics_port, "/metrics")
        return (metric(text, "inferno_worker_load") or 0) >= generations

    await until(check, "load on a worker")


@dataclass
class BrokerRow:
    """What became of the generations while each of three NATS servers was restarted."""

    lame_duck: bool
    tally: Tally
    after: Tally
    """Generations begun when the last one was back."""


async def restart_brokers(folder: Path, lame_duck: bool) -> BrokerRow:
    """Restart each of three NATS servers in turn under load; each has an API pod and a worker."""
    async with fleet(folder, DEFAULT_NUMBERS, brokers=3) as running:
        for add in (running.add_api, running.add_worker):
            options: list[object] = [] if add == running.add_api else ["--model", "sonic-3", *PACE]
            await _three(add, options)
        callers = running.callers(gap_seconds=0.5)
        callers.start(40, renew_seconds=0)
        await _completed(callers, 40)
        for broker in running.brokers:
            await broker.restart(lame_duck)
            await asyncio.sleep(0.5)
        await callers.stop()
        after = running.callers(gap_seconds=0.5)
        after.start(40, renew_seconds=0)
        await _completed(after, 40)
        await after.stop()
    return BrokerRow(lame_duck, callers.tally, after.tally)


async def _three(add: Callable[..., Awaitable[Pod]], options: list[object]) -> None:
    await asyncio.gather(*(add(*options) for _ in range(3)))


@dataclass
class Single:
    """What became of streams on the one pod that ended."""

    tally: Tally
    end: End
    numbers: DrainNumbers


SHORT_NUMBERS = DrainNumbers(propagation=0.5, max_stream=2.5, margin=1)


async def outlive_the_budget(folder: Path) -> Single:
    """A stream that is longer than the budget, among others that are not."""
    async with fleet(folder, SHORT_NUMBERS, brokers=0) as running:
        pod = await running.add_api()
        long = running.callers(transcript="x" * 3000, shortest=1, gap_seconds=0)  # 200 s of audio
        long.start(1, renew_seconds=0)
        await until(lambda: _speaking(pod, 1), "a stream")
        end = await pod.terminate()
        running.targets.deregister(pod, 0)
        await long.stop()
    return Single(long.tally, end, SHORT_NUMBERS)


async def kill_the_gate(folder: Path, while_draining: bool) -> Single:
    """The gate is killed; before a drain it is started again, as a sidecar is, and then drains."""
    numbers = DrainNumbers(propagation=0.5, max_stream=8, margin=1)
    async with fleet(folder, numbers, brokers=0) as running:
        pod = await running.add_api()
        assert pod.gate is not None
        callers = running.callers(transcript="x" * 300, gap_seconds=0.2)  # 20 s of audio
        callers.start(20, renew_seconds=0)
        await until(lambda: _speaking(pod, 10), "streams")
        gone = pod.gate
        if not while_draining:
            gone.signal(signal.SIGKILL)
            await gone.wait()
            await _completed(callers, callers.tally.completed + 5)
            pod.gate = Process(gone.command)
            await pod.gate.start()
            await until(lambda: _speaking(pod, 1), "streams seen by the new gate")
        running.targets.deregister(pod, numbers.propagation * DEREGISTRATION)
        ending = asyncio.create_task(pod.terminate())
        if while_draining:
            await asyncio.sleep(numbers.propagation / 2)
            gone.signal(signal.SIGKILL)
        end = await ending
        await callers.stop()
    return Single(callers.tally, end, numbers)


async def hang(folder: Path) -> Single:
    """The server stops doing anything: its streams stand still and SIGTERM has no effect."""
    async with fleet(folder, SHORT_NUMBERS, brokers=0) as running:
        pod = await running.add_api()
        callers = running.callers(transcript="x" * 3000, gap_seconds=0)
        callers.start(5, renew_seconds=0)
        await until(lambda: _speaking(pod, 5), "streams")
        pod.main.signal(signal.SIGSTOP)
        running.targets.deregister(pod, 0)
        end = await pod.terminate()
        await callers.stop()
    return Single(callers.tally, end, SHORT_NUMBERS)


async def _speaking(pod: Pod, streams: int) -> bool:
    return (metric(await pod.gate_metrics(), "sonic_active_streams") or 0) >= streams
