"""Section of scaling: how many workers and API pods run for a load."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from sonic_eks.config.base import Bool, Fraction, Int, Refusal, Section, Str
from sonic_eks.config.schedules import Schedule
from sonic_eks.config.standalone import MetricName

# Prometheus documentation, "Data model": names that begin with two underscores are its own.
LabelName = Annotated[Str, Field(pattern=r"^[a-zA-Z]([a-zA-Z0-9_]{0,99})$")]
# What Prometheus calls the targets; a metric's own label of such a name is put aside.
_OF_TARGETS = ("namespace", "pod", "node", "component", "job", "instance")

LONGEST_PATH = 400
"""Characters of `profile` at most."""

Tolerance = Annotated[Fraction, Field(ge=0.0, le=0.5)]


class Queue(Section):
    """The generations that wait in the API for a worker; the vendor publishes no labels."""

    counted: Bool = True
    """Whether they are part of the demand that workers are scaled on."""
    metric: MetricName = "api_queue_size"
    """Gauge of the API with their number."""
    aggregate: Literal["sum", "max"] = "sum"
    """Whether each API pod tells of a queue of its own (sum), or all of one queue (max)."""
    model_label: LabelName | None = None
    """The metric's label with the model; unset: one model has all of it, several have none."""

    @field_validator("model_label")
    @classmethod
    def _label(cls, value: str | None) -> str | None:
        """`modelLabel` is no label of a target: Prometheus puts exported_ before such a one."""
        if value in _OF_TARGETS:
            raise Refusal(
                value,
                "a label that no target has; Prometheus renames the metric's own",
                nearest=f"exported_{value}",
            )
        return value


class Scaling(Section):
    """Scaling on active streams, counted in generations."""

    generations_per_gpu: Annotated[Int, Field(ge=1, le=1024)] | None = None
    """Generations per GPU that keep the SLO, pinned; unset: what the GPU's profile says."""
    profile: Annotated[Str, Field(max_length=LONGEST_PATH)] | None = None
    """Capacity profile of the GPU, a path from this file; unset: a shipped one, or assumed."""
    accept_assumed_capacity: Bool = False
    """Whether terminationProtection goes with a capacity that nobody measured."""
    target_utilization: Annotated[Fraction, Field(ge=0.1, le=1.0)] = 1.0
    """Share of a worker's generations at which another worker is added, margins included."""
    margin_sigmas: Annotated[Fraction, Field(ge=0.0, le=6.0)] = 2.0
    """Spare workers for chance: so many times the square root of the generations in progress."""
    reserve_generations: Annotated[Int, Field(ge=0, le=100_000)] | None = None
    """Spare workers for a jump in demand, in generations; unset: from the traffic, else 0."""
    cold_start_seconds: Annotated[Int, Field(ge=15, le=3600)] = 180
    """Seconds from a worker without a node until it is ready (assumed: measure it)."""
    look_ahead_seconds: Annotated[Int, Field(ge=0, le=3600)] | None = None
    """Seconds that scaling looks ahead of a rise; unset: coldStartSeconds and 30; 0: not."""
    look_ahead_window_seconds: Annotated[Int, Field(ge=60, le=1800)] | None = None
    """Seconds of the past that tell how fast demand rises; unset: as many as it looks ahead."""
    generations_per_stream: Annotated[Fraction, Field(ge=0.01, le=100.0)] | None = None
    """Generations of an active stream, where standalone.loadMetric is unset; unset: 1, assumed."""
    generations_per_api_pod: Annotated[Int, Field(ge=1, le=10_000)] = 50
    """Active streams that an API pod is to have, below what it carries (none is published)."""
    headroom_gpus: Annotated[Int, Field(ge=0, le=50)] | None = None
    """GPUs kept free by pods that give way to new workers; unset: from the traffic, else 1."""
    rollout: Literal["surge", "replace"] = "surge"
    """Whether a worker's update starts the new pod first, or ends the old one first."""
    scale_down_window_seconds: Annotated[Int, Field(ge=300, le=3600)] = 300
    """Seconds that demand must stay low before a pod is removed."""
    scale_down_period_seconds: Annotated[Int, Field(ge=15, le=1800)] = 60
    """Seconds in which as many pods are removed as the next two fields say."""
    scale_down_pods_per_period: Annotated[Int, Field(ge=1, le=100)] = 1
    """Pods that may be removed in scaleDownPeriodSeconds, however few there are."""
    scale_down_percent_per_period: Annotated[Int, Field(ge=1, le=100)] = 10
    """Percent of the pods that may be, where that is more."""
    scale_up_pods_per_period: Annotated[Int, Field(ge=1, le=100)] = 4
    """Pods added at most in 15 seconds."""
    zero_after_seconds: Annotated[Int, Field(ge=60, le=86_400)] = 900
    """Seconds without demand after which a model with minReplicas 0 has no worker."""
    scale_up_tolerance: Tolerance = 0.1
    """Share by which the signal may be over its target before pods are added."""
    scale_down_tolerance: Tolerance = 0.1
    """Share by which the signal may be below its target before pods are removed."""
    over_capacity: Literal["queue", "refuse"] | None = None
    """What Sonic does with more generations than it can make (verify-drain); unset: not known."""
    queue: Queue = Queue()
    """The generations that wait for a worker."""
    schedules: Annotated[tuple[Schedule, ...], Field(max_length=20)] = ()
    """Times at which more workers are wanted, whatever the demand is."""
