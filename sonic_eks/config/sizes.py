"""Replicas, spare GPUs and nodes: as pinned, else from the models' traffic, else the default."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.config.gpu_profile import gpu_capacity, profile_of
from sonic_eks.sizing.demand import (
    Demand,
    headroom_for,
    reserve_for,
    streams_of,
    workers_for,
)

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration
    from sonic_eks.config.service import Model
    from sonic_eks.config.traffic import Traffic

LEAST_WORKERS = 2  # on different nodes, so that one may be lost
DEFAULT_MAX_WORKERS = 8
LEAST_API_PODS = 3
DEFAULT_MAX_API_PODS = 6
DEFAULT_HEADROOM_GPUS = 1
DEFAULT_RESERVE = 0

# The bounds of the fields that would pin them.
MOST_WORKERS = 500
MOST_GPU_NODES = 500
MOST_HEADROOM_GPUS = 50
MOST_API_PODS = 200

ASSUMED_SPEAKING_SHARE = 0.4
"""As in `sonic-eks bench`: two parties, of whom one listens, and pauses."""


class Sizes:
    """What follows from one configuration, each value worked out once.

    Attributes
    ----------
    config : Configuration
        What is pinned, and the traffic.

    Raises
    ------
    Refusal
        From a property, when nothing tells the generations per GPU, or when conversations cannot
        be counted in generations.
    """

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self._demands: dict[str, Demand | None] = {}

    @cached_property
    def slots(self) -> int:
        """Generations per GPU."""
        return gpu_capacity(self.config).generations

    def demand_of(self, model: Model) -> Demand | None:
        """Return the demand of a model in generations; None where its traffic is not given."""
        if model.name not in self._demands:
            self._demands[model.name] = self._counted(model.traffic)
        return self._demands[model.name]

    def _counted(self, traffic: Traffic | None) -> Demand | None:
        if traffic is None:
            return None
        share = self.generations_per_conversation(traffic)
        return Demand(traffic.peak * share, traffic.trough * share, traffic.ramp_per_minute * share)

    def generations_per_conversation(self, traffic: Traffic) -> float:
        """Return the generations in progress of one conversation in the mean; 1 for generations."""
        if traffic.peak_conversations is None:
            return 1.0
        factor = traffic.real_time_factor or self._measured_factor
        if factor is None:
            gpu = self.config.gpu_type
            raise Refusal(
                None,
                "seconds of work for a second of audio, which no profile says of the"
                f" {gpu.gpu or gpu.name} at {self.slots} generations or more; or peakGenerations",
                field="realTimeFactor",
            )
        return factor * (traffic.speaking_share or ASSUMED_SPEAKING_SHARE)

    @cached_property
    def _measured_factor(self) -> float | None:
        """The p95, else a lower one, at the first point with a GPU's generations or more.

        The mean is not published; p95 is on the safe side of it.
        """
        profile = profile_of(self.config)
        if profile is None:
            return None
        for point in profile.points:
            if point.concurrency / profile.gpus >= self.slots and point.rtf is not None:
                return point.rtf.p95 or point.rtf.p90 or point.rtf.p50
        return None

    @cached_property
    def demands(self) -> list[tuple[Model, Demand]]:
        """Each model whose traffic is given, with its demand."""
        found = [(model, self.demand_of(model)) for model in self.config.models]
        return [(model, demand) for model, demand in found if demand is not None]

    def workers(self, demand: float, reserve: float) -> int:
        """Return the workers that the policy wants for a demand that stands still."""
        scaling = self.config.scaling
        return workers_for(
            demand,
            threshold=self.slots * scaling.target_utilization,
            sigmas=scaling.margin_sigmas,
            reserve=reserve,
        )

    def min_replicas(self, model: Model) -> int:
        """Return the workers of a model at least."""
        if model.min_replicas is not None:
            return model.min_replicas
        demand = self.demand_of(model)
        if demand is None:
            return LEAST_WORKERS
        wanted = max(LEAST_WORKERS, self.workers(demand.trough, self.reserve_generations))
        return int(min(wanted, model.max_replicas or wanted, self._room))

    def max_replicas(self, model: Model) -> int:
        """Return the workers of a model at most."""
        if model.max_replicas is not None:
            return model.max_replicas
        demand = self.demand_of(model)
        if demand is None:
            return DEFAULT_MAX_WORKERS
        wanted = self.workers(demand.peak, self.reserve_generations)
        return max(self.min_replicas(model), int(min(wanted, self._room)))

    def workers_in_trough(self, model: Model) -> int:
        """Return the workers of a model that run in the quietest hours.

        A lower bound below what the trough needs does not end them: the scaler keeps them.
        """
        low, demand = self.min_replicas(model), self.demand_of(model)
        trough = 0.0 if demand is None else demand.trough
        if low == trough == 0:
            return 0  # The reserve alone starts no worker.
        return max(
            low, min(self.workers(trough, self.reserve_generations), self.max_replicas(model))
        )

    @cached_property
    def _room(self) -> float:
        """Workers that pinned GPU nodes hold beside a surge, where one model has them all.

        Several models would have to share them in a way that only the operator can say.
        """
        pool = self.config.nodes.gpu
        if pool.max_nodes is None or len(self.config.models) > 1:
            return math.inf
        return max(LEAST_WORKERS, pool.max_nodes * pool.workers_per_node - self._surge)

    def free_in_trough(self, model: Model, demand: Demand, reserve: float) -> float:
        """Return the slots that are free on a model's workers in the quietest hours."""
        least = LEAST_WORKERS if model.min_replicas is None else model.min_replicas
        return max(least, self.workers(demand.trough, reserve)) * self.slots - demand.trough

    @cached_property
    def reserve_generations(self) -> int:
        """Generations that every model's policy holds free: the most that one needs."""
        scaling = self.config.scaling
        if scaling.reserve_generations is not None:
            return scaling.reserve_generations
        needed = [
            reserve_for(
                demand,
                cold_start_seconds=scaling.cold_start_seconds,
                free=self.free_in_trough(model, demand, 0),
            )
            for model, demand in self.demands
        ]
        return max(needed, default=DEFAULT_RESERVE)

    @cached_property
    def headroom_gpus(self) -> int:
        """GPUs that placeholders hold: what the models' ramps need together."""
        scaling, pool = self.config.scaling, self.config.nodes.gpu
        if scaling.headroom_gpus is not None:
            return scaling.headroom_gpus
        needed = [
            headroom_for(
                demand,
                cold_start_seconds=scaling.cold_start_seconds,
                free=self.free_in_trough(model, demand, self.reserve_generations),
                slots=self.slots,
            )
            for model, demand in self.demands
        ]
        wanted = min(max(DEFAULT_HEADROOM_GPUS, sum(needed)), MOST_HEADROOM_GPUS)
        if pool.max_nodes is None or not needed:
            return wanted
        least = sum(self.min_replicas(model) for model in self.config.models)
        return max(0, min(wanted, pool.max_nodes * pool.workers_per_node - least))

    @cached_property
    def gpu_max_nodes(self) -> int:
        """GPU nodes at most: for every worker, and for headroom or the surge of an update.

        They share the spare GPUs: a placeholder gives way to a surge.
        """
        pool = self.config.nodes.gpu
        if pool.max_nodes is not None:
            return pool.max_nodes
        workers = sum(self.max_replicas(model) for model in self.config.models)
        return max(pool.base_size, -(-(workers + self.spare_gpus) // pool.workers_per_node))

    @property
    def spare_gpus(self) -> int:
        """GPUs wanted beside the workers': for headroom, or at least for an update's surge."""
        return max(self.headroom_gpus, self._surge)

    @property
    def _surge(self) -> int:
        return 1 if self.config.scaling.rollout == "surge" else 0

    @cached_property
    def api_min_replicas(self) -> int:
        """API pods at least."""
        api = self.config.api
        if api.min_replicas is not None:
            return api.min_replicas
        wanted = LEAST_API_PODS
        if self.demands:
            wanted = max(wanted, self._api_pods(busiest=False))
        return min(wanted, api.max_replicas or wanted)

    @property
    def api_pods_in_trough(self) -> int:
        """API pods that run in the quietest hours, as `workers_in_trough`."""
        low = self.api_min_replicas
        if not self.demands:
            return low
        return max(low, min(self._api_pods(busiest=False), self.api_max_replicas))

    @cached_property
    def api_max_replicas(self) -> int:
        """API pods at most; one more than carry the peak, so that one may be lost."""
        api = self.config.api
        if api.max_replicas is not None:
            return api.max_replicas
        if not self.demands:
            return DEFAULT_MAX_API_PODS
        wanted = self._api_pods(busiest=True) + 1
        return max(DEFAULT_MAX_API_PODS, self.api_min_replicas, wanted)

    def _api_pods(self, *, busiest: bool) -> int:
        streams = self.api_streams(busiest=busiest)
        return math.ceil(streams / self.config.scaling.generations_per_api_pod)

    def api_streams(self, *, busiest: bool) -> float:
        """Return the active streams of all models; of one without traffic, what workers hold."""
        total = 0.0
        for model in self.config.models:
            demand = self.demand_of(model)
            if demand is None:
                bound = self.max_replicas(model) if busiest else self.min_replicas(model)
                total += bound * self.slots
            else:
                total += demand.peak if busiest else demand.trough
        return streams_of(total, idle_seconds=self.config.drain.idle_seconds)
