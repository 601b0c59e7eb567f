"""KEDA scalers: workers on generations, API pods on active streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sonic_eks.capacity.policy import (
    PERIOD_SECONDS,
    Direction,
    concerns,
    counts_queue,
    directions,
    worker_policy,
)
from sonic_eks.config import Configuration
from sonic_eks.config.service import Model
from sonic_eks.k8s.chart import DeploymentChart, custom_object
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.prometheus import PROMETHEUS_URL
from sonic_eks.k8s.queries import active_streams, queue_query, standalone_query, worker_query
from sonic_eks.k8s.sonic.front import front_of
from sonic_eks.k8s.sonic.worker import worker_labels, worker_name

# Queries that fail or are empty in a row before the fallback takes over.
_FAILURES_UNTIL_FALLBACK = 3

Trigger = dict[str, Any]


class Scaling(DeploymentChart):
    """A scaler for the API and one for each model's workers; one where servers stand alone."""

    def build(self) -> None:
        """Add the ScaledObjects."""
        if self.config.topology == "standalone":
            self._standalone()
        else:
            self._distributed()

    def _standalone(self) -> None:
        config, front = self.config, front_of(self.config)
        load = config.standalone.load_metric
        (model,) = config.models
        policy = worker_policy(config, model)
        self._scaler(
            front.name,
            front.labels,
            minimum=policy.min_replicas,
            maximum=policy.max_replicas,
            triggers=[
                _prometheus(
                    "active_generations" if load else "active_streams",
                    standalone_query(policy, load, config.generations_per_stream),
                    policy.threshold,
                ),
                *_schedules(config, model),
            ],
        )

    def _distributed(self) -> None:
        config, front = self.config, front_of(self.config)
        self._scaler(
            front.name,
            front.labels,
            minimum=config.api_min_replicas,
            maximum=config.api_max_replicas,
            triggers=[
                _prometheus(
                    "active_streams", active_streams(), config.scaling.generations_per_api_pod
                )
            ],
        )
        for model in config.models:
            policy = worker_policy(config, model)
            query = worker_query(
                policy,
                model.name,
                queue=_queue(config, model),
                ends_at_once=config.drain.worker == "sigterm",
            )
            self._scaler(
                worker_name(model),
                worker_labels(config, model),
                minimum=policy.min_replicas,
                maximum=policy.max_replicas,
                triggers=[
                    _prometheus(
                        "active_generations",
                        query,
                        policy.threshold,
                        # The reserve alone is no reason for a first worker.
                        active_above=None
                        if policy.min_replicas
                        else policy.reserve_generations + 0.5,
                    ),
                    *_schedules(config, model),
                ],
            )

    def _scaler(
        self,
        deployment: str,
        labels: Labels,
        *,
        minimum: int,
        maximum: int,
        triggers: list[Trigger],
    ) -> None:
        up, down = directions(self.config)
        custom_object(
            self,
            deployment,
            api_version="keda.sh/v1alpha1",
            kind="ScaledObject",
            name=deployment,
            namespace=SONIC_NAMESPACE,
            labels=labels,
            spec={
                "scaleTargetRef": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": deployment,
                },
                "pollingInterval": PERIOD_SECONDS,
                **({} if minimum else {"cooldownPeriod": self.config.scaling.zero_after_seconds}),
                "minReplicaCount": minimum,
                "maxReplicaCount": maximum,
                "fallback": {
                    "failureThreshold": _FAILURES_UNTIL_FALLBACK,
                    # With none KEDA would take a silent metric for no demand.
                    "replicas": max(minimum, 1),
                    "behavior": "currentReplicasIfHigher",
                },
                "advanced": {
                    # Removing the scaler leaves the pods as they are.
                    "restoreToOriginalReplicaCount": False,
                    "horizontalPodAutoscalerConfig": {
                        "behavior": {"scaleUp": _rules(up), "scaleDown": _rules(down)}
                    },
                },
                "triggers": triggers,
            },
        )


def _queue(config: Configuration, model: Model) -> str | None:
    """Return the query for a model's share of the queue; None where it is not known."""
    if not counts_queue(config):
        return None
    queue = config.scaling.queue
    labelled = queue.model_label is not None
    return queue_query(queue, (model.queue_label_value or model.name) if labelled else None)


def _prometheus(
    name: str, query: str, target: float, *, active_above: float | None = None
) -> Trigger:
    activation = {} if active_above is None else {"activationThreshold": _decimal(active_above)}
    return {
        "type": "prometheus",
        "name": name,
        # The HPA wants ceil(signal / threshold) pods.
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": PROMETHEUS_URL,
            "query": query,
            "threshold": _decimal(target),
            **activation,
            # An empty answer is a fault, not zero streams.
            "ignoreNullValues": "false",
        },
    }


def _schedules(config: Configuration, model: Model) -> Iterable[Trigger]:
    """Give the triggers of times: the HPA takes the highest of all that they and demand want."""
    for schedule in config.scaling.schedules:
        if concerns(schedule, model):
            yield {
                "type": "cron",
                "name": schedule.name,
                "metricType": "AverageValue",
                "metadata": {
                    "timezone": schedule.timezone,
                    "start": schedule.start,
                    "end": schedule.end,
                    "desiredReplicas": str(schedule.replicas),
                },
            }


def _rules(direction: Direction) -> dict[str, Any]:
    return {
        "stabilizationWindowSeconds": direction.window_seconds,
        # A quantity; the field is there by default since Kubernetes 1.35 (KEP-4951).
        "tolerance": _decimal(direction.tolerance),
        "policies": [
            {"type": limit.kind, "value": limit.value, "periodSeconds": limit.period_seconds}
            for limit in direction.limits
        ],
    }


def _decimal(value: float) -> str:
    """Return a number without exponent or float noise; KEDA counts in thousandths."""
    return f"{value:.3f}".rstrip("0").rstrip(".")
