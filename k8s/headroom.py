"""Headroom: pods that hold a GPU and give way, so that a worker need not wait for a node."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import PAUSE_IMAGE, worker_image
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.placement import Placement
from sonic_eks.k8s.pods import container_security, pod_template, resources
from sonic_eks.k8s.sonic.gpu_pods import gpu_share
from sonic_eks.nodes.pools import Pool

HEADROOM = "sonic-headroom"

# Below every other pod. Karpenter adds nodes for it all the same: it knows no lowest priority.
_PRIORITY = -10

# The pause image does nothing with it; the pod that takes the place has not to wait.
_GRACE_SECONDS = 1

_USER = 65535  # the pause image's own


class Headroom(DeploymentChart):
    """The pods, a GPU each; the chart is left out where there are none.

    What gives way comes back as a pending pod, for which Karpenter adds a node: the spare GPU is
    there again before it is needed. A rolling update takes it for its surge.
    """

    def build(self) -> None:
        """Add the priority class and the Deployment."""
        labels = Labels.of(self.config, HEADROOM, component="headroom")
        k8s.KubePriorityClass(
            self,
            "Priority",
            metadata=metadata(HEADROOM, labels),
            value=_PRIORITY,
            global_default=False,
            preemption_policy="Never",
            description="Spare GPUs that give way to workers",
        )
        k8s.KubeDeployment(
            self,
            "Deployment",
            metadata=metadata(HEADROOM, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.DeploymentSpec(
                replicas=self.config.headroom_gpus,
                selector=k8s.LabelSelector(match_labels=labels.selector),
                # A second pod would need a second spare GPU.
                strategy=k8s.DeploymentStrategy(type="Recreate"),
                revision_history_limit=1,
                # They may wait for a node for ever, where none is left.
                progress_deadline_seconds=2**31 - 1,
                template=pod_template(
                    labels,
                    container=self._container(),
                    init_containers=self._pulls(),
                    placement=Placement(Pool.GPU),
                    grace_seconds=_GRACE_SECONDS,
                    priority_class=HEADROOM,
                ),
            ),
        )

    def _container(self) -> k8s.Container:
        return k8s.Container(
            name="pause",
            image=self.catalogue.image(PAUSE_IMAGE),
            resources=self._place(),
            security_context=container_security(read_only_root=True, user=_USER),
        )

    def _place(self) -> k8s.ResourceRequirements:
        if self.config.gpu_type.gpus:
            return resources(cpu_millicores=10, memory_mib=16, ephemeral_mib=1, gpus=1)
        # Without GPUs to count, a place is what a server requests.
        return gpu_share(self.config, self.config.models[0])

    def _pulls(self) -> list[k8s.Container]:
        """Return containers that end at once: the node then has the workers' images.

        They are several gigabytes, and a start would wait for them. The worker's image is Ubuntu
        22.04 (Cartesia, "Architecture"); what another one has is not known.
        """
        if self.config.topology == "standalone":
            return []
        return [
            k8s.Container(
                name=f"pull-{model.name}",
                image=self.catalogue.image(worker_image(model.name)),
                command=["/bin/true"],
                resources=resources(cpu_millicores=10, memory_mib=16, ephemeral_mib=1),
                security_context=container_security(read_only_root=True, user=_USER),
            )
            for model in self.config.models
        ]
