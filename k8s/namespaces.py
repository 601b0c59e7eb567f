"""The namespaces of the deployment."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels

SONIC_NAMESPACE = "sonic"
MONITORING_NAMESPACE = "monitoring"

KEDA_NAMESPACE = "keda"
DEVICE_PLUGIN_NAMESPACE = "nvidia-device-plugin"
"""These two are made by Helm, with what runs there."""

ISOLATED_NAMESPACES = (
    SONIC_NAMESPACE,
    MONITORING_NAMESPACE,
    KEDA_NAMESPACE,
    DEVICE_PLUGIN_NAMESPACE,
)
"""Every namespace that the deployment makes: its pods have the flows of their policies alone."""

# AWS Load Balancer Controller, "Pod readiness gate": the namespace is labelled before its pods
# exist; pods that no TargetGroupBinding selects get no gate.
_READINESS_GATES = {"elbv2.k8s.aws/pod-readiness-gate-inject": "enabled"}


class Namespaces(DeploymentChart):
    """`sonic` for the service, `monitoring` for Prometheus."""

    def build(self) -> None:
        """Add both namespaces with their Pod Security levels."""
        # Baseline, not restricted: the user of the vendor's images is not public, and restricted
        # refuses a pod that does not state runAsNonRoot. What runs here meets all else of it.
        self._namespace(SONIC_NAMESPACE, enforce="baseline", more=_READINESS_GATES)
        self._namespace(MONITORING_NAMESPACE, enforce="restricted", more={})

    def _namespace(self, name: str, *, enforce: str, more: dict[str, str]) -> None:
        # The levels as of the cluster's version, so that an upgrade changes nothing silently.
        version = f"v{self.config.cluster.version}"
        levels = {"enforce": enforce, "audit": "restricted", "warn": "restricted"}
        security: dict[str, str] = {}
        for mode, level in levels.items():
            security[f"pod-security.kubernetes.io/{mode}"] = level
            security[f"pod-security.kubernetes.io/{mode}-version"] = version
        labels = Labels.of(self.config, name, component="namespace")
        k8s.KubeNamespace(self, name, metadata=metadata(name, labels, extra_labels=security | more))
