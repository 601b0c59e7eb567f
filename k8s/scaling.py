"""KEDA scalers on active streams, counted in generations."""

from __future__ import annotations

from typing import Any

from sonic_eks.k8s.chart import DeploymentChart, custom_object
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.prometheus import PROMETHEUS_URL
from sonic_eks.k8s.queries import active_generations, active_streams, standalone_generations
from sonic_eks.k8s.sonic.front import front_of
from sonic_eks.k8s.sonic.worker import worker_labels, worker_name

# kube-controller-manager reference: horizontal-pod-autoscaler-sync-period is 15 seconds.
_PERIOD_SECONDS = 15

# Queries that fail or are empty in a row before the fallback takes over.
_FAILURES_UNTIL_FALLBACK = 3


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
        self._scaler(
            front.name,
            front.labels,
            minimum=config.min_replicas(model),
            maximum=config.max_replicas(model),
            metric="active_generations" if load else "active_streams",
            query=standalone_generations(load, config.generations_per_stream),
            target=config.generations_per_gpu * config.scaling.target_utilization,
        )

    def _distributed(self) -> None:
        scaling, front = self.config.scaling, front_of(self.config)
        self._scaler(
            front.name,
            front.labels,
            minimum=self.config.api_min_replicas,
            maximum=self.config.api_max_replicas,
            metric="active_streams",
            query=active_streams(),
            target=scaling.generations_per_api_pod,
        )
        for model in self.config.models:
            self._scaler(
                worker_name(model),
                worker_labels(self.config, model),
                minimum=self.config.min_replicas(model),
                maximum=self.config.max_replicas(model),
                metric="active_generations",
                query=active_generations(model.name),
                target=self.config.generations_per_gpu * scaling.target_utilization,
            )

    def _scaler(
        self,
        deployment: str,
        labels: Labels,
        *,
        minimum: int,
        maximum: int,
        metric: str,
        query: str,
        target: float,
    ) -> None:
        trigger = {
            "type": "prometheus",
            "name": metric,
            # The HPA wants ceil(sum / threshold) pods.
            "metricType": "AverageValue",
            "metadata": {
                "serverAddress": PROMETHEUS_URL,
                "query": query,
                "threshold": _decimal(target),
                # An empty answer is a fault, not zero streams.
                "ignoreNullValues": "false",
            },
        }
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
                "pollingInterval": _PERIOD_SECONDS,
                "minReplicaCount": minimum,
                "maxReplicaCount": maximum,
                "fallback": {
                    "failureThreshold": _FAILURES_UNTIL_FALLBACK,
                    "replicas": minimum,
                    "behavior": "currentReplicasIfHigher",
                },
                "advanced": {
                    # Removing the scaler leaves the pods as they are.
                    "restoreToOriginalReplicaCount": False,
                    "horizontalPodAutoscalerConfig": {"behavior": self._behavior()},
                },
                "triggers": [trigger],
            },
        )

    def _behavior(self) -> dict[str, Any]:
        scaling = self.config.scaling
        return {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "policies": [
                    {
                        "type": "Pods",
                        "value": scaling.scale_up_pods_per_period,
                        "periodSeconds": _PERIOD_SECONDS,
                    }
                ],
            },
            "scaleDown": {
                "stabilizationWindowSeconds": scaling.scale_down_window_seconds,
                "policies": [
                    {
                        "type": "Pods",
                        "value": 1,
                        "periodSeconds": scaling.scale_down_period_seconds,
                    }
                ],
            },
        }


def _decimal(value: float) -> str:
    """Return a number without exponent or float noise; KEDA counts in thousandths."""
    return f"{value:.3f}".rstrip("0").rstrip(".")
