"""Our policy and those to beat, each in each world of `benchmarks.traces`."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import traces
from benchmarks.traces import Baseline, Cell
from sonic_eks.capacity.policy import Direction, Limit, ScalingPolicy, worker_policy
from sonic_eks.config.gpu_profile import first_audio
from sonic_eks.config.load import load_configuration
from sonic_eks.config.profile import load_profile
from sonic_eks.simulation.nodes import ColdStart
from sonic_eks.simulation.run import Result, Scaler, Watcher, World, simulate
from sonic_eks.sizing.curve import Curve

ROOT = Path(__file__).resolve().parent.parent
OURS = "ours"
POLICIES = (OURS, traces.VENDOR.name, traces.CPU.name)
PROCESSES = 2


@dataclass(frozen=True)
class Task:
    """One run.

    Attributes
    ----------
    cell : Cell
        World.
    policy : str
        One of `POLICIES`.
    trace : str
        Key of `traces.TRACES`.
    seed : int
        Seed of its draw.
    """

    cell: Cell
    policy: str
    trace: str
    seed: int


def slots_of(cell: Cell) -> int:
    """Return the generations that a worker keeps within the objective."""
    return _curve().within(traces.SLO_MS / cell.profile_factor)


@cache
def _curve() -> Curve:
    return first_audio(load_profile(ROOT / traces.PROFILE), traces.SLO_PERCENTILE)


def world_of(cell: Cell) -> World:
    """Return a cell as the simulation takes it."""
    slots, cold = slots_of(cell), cell.cold_start_seconds
    curve = [_curve().at(load) for load in range(1, slots + 1)]
    return World(
        slots=slots,
        first_audio_ms=tuple(ms * cell.profile_factor for ms in curve if ms is not None),
        objective_ms=traces.SLO_MS,
        patience_seconds=traces.PATIENCE_SECONDS,
        cold_start=ColdStart(
            node=traces.NODE * cold, image=traces.IMAGE * cold, weights=traces.WEIGHTS * cold
        ),
        warm_up_seconds=traces.WARM_UP_SECONDS,
        end_seconds=traces.TRACE_SECONDS,
        scrape_loss=cell.scrape_loss,
        base_gpus=traces.MIN_REPLICAS,
    )


def ours(cell: Cell) -> Scaler:
    """Return the policy that a deployment has by default, with what the cell's operator measured.

    That is the capacity of a GPU and the cold start; where it is not told, those of the world
    that is reported.
    """
    told = cell if cell.told else traces.REPORTED
    config = load_configuration(ROOT / "config" / "default.yaml")
    scaling = config.scaling.model_copy(
        update={
            "generations_per_gpu": slots_of(told),
            "cold_start_seconds": int(told.cold_start_seconds),
        }
    )
    model = config.models[0].model_copy(
        update={"min_replicas": traces.MIN_REPLICAS, "max_replicas": traces.MAX_REPLICAS}
    )
    return Scaler(policy=worker_policy(config.model_copy(update={"scaling": scaling}), model))


def theirs(baseline: Baseline, cell: Cell) -> Scaler:
    """Return a policy to beat."""
    cpu = baseline.cpu_per_load
    up, down = (
        Direction(
            window_seconds=window,
            limits=tuple(
                Limit("Pods" if kind == "Pods" else "Percent", value, period)
                for kind, value, period in limits
            ),
            # kube-controller-manager's own.
            tolerance=0.1,
        )
        for window, limits in (
            (baseline.scale_up_window_seconds, baseline.scale_up_policies),
            (baseline.scale_down_window_seconds, baseline.scale_down_policies),
        )
    )
    policy = ScalingPolicy(
        threshold=baseline.target_share * (slots_of(cell) if cpu is None else 1),
        slots=slots_of(cell),
        margin_sigmas=0,
        reserve_generations=0,
        look_ahead_seconds=0,
        look_ahead_window_seconds=60,
        min_replicas=traces.MIN_REPLICAS,
        max_replicas=traces.MAX_REPLICAS,
        up=up,
        down=down,
        headroom_gpus=0,
        node_keep_seconds=int(baseline.node_keep_seconds),
    )
    return Scaler(policy=policy, queue=False, cpu_per_load=cpu)


def scaler_of(policy: str, cell: Cell) -> Scaler:
    """Return a policy by its name."""
    if policy == OURS:
        return ours(cell)
    return theirs(next(one for one in (traces.VENDOR, traces.CPU) if one.name == policy), cell)


def run(task: Task, watcher: Watcher | None = None, scaler: Scaler | None = None) -> Result:
    """Play one run.

    Parameters
    ----------
    task : Task
        Which.
    watcher : Watcher, optional
        Hears what happens.
    scaler : Scaler, optional
        Takes the place of the task's policy.
    """
    drawn = traces.arrivals(task.trace, task.seed)
    first = float(traces.TRACES[task.trace](np.zeros(1))[0])
    world = world_of(task.cell)
    return simulate(
        drawn.times,
        drawn.durations,
        world=world,
        scaler=scaler or scaler_of(task.policy, task.cell),
        # Enough for the first demand; half an hour is left for a policy to have its way.
        replicas=int(np.ceil(first / world.slots / 0.8)),
        seed=task.seed,
        watcher=watcher,
    )


def run_all(
    tasks: Iterable[Task], advanced: Callable[[], None] = lambda: None
) -> Iterator[tuple[Task, Result]]:
    """Play runs in processes of their own; each is yielded as soon as it is there."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for done in pool.imap_unordered(_ran, tasks, chunksize=4):
            advanced()
            yield done


def _ran(task: Task) -> tuple[Task, Result]:
    return task, run(task)
