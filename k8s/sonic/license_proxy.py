"""The license proxy: the only pod of the service that may talk to the outside."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import LICENSE_PROXY_IMAGE
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.placement import Placement, Pool
from sonic_eks.k8s.pods import pod_template, resources
from sonic_eks.k8s.probes import patient_liveness, tcp_probe
from sonic_eks.k8s.sonic.pods import environment, vendor_security

LICENSE_PROXY = "sonic-license-proxy"
LICENSE_PORT = 8080
LICENSE_URL = f"http://{LICENSE_PROXY}.{SONIC_NAMESPACE}.svc.cluster.local:{LICENSE_PORT}"

_DATA_CLAIM = f"{LICENSE_PROXY}-data"

# Owns the volume, so that the image can write to it as whatever user it runs.
_FS_GROUP = 1000


class LicenseProxy(DeploymentChart):
    """The license proxy; one pod, since the vendor documents a single one and a grace period."""

    def build(self) -> None:
        """Add Service and Deployment, and the volume of an air-gapped license."""
        labels = Labels.of(self.config, LICENSE_PROXY, component="license")
        keeps_files = self.config.license.mode == "airGapped"
        if keeps_files:
            self._claim(labels)
        k8s.KubeService(
            self,
            "Service",
            metadata=metadata(LICENSE_PROXY, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.ServiceSpec(
                type="ClusterIP",
                selector=labels.selector,
                ports=[
                    k8s.ServicePort(
                        name="http",
                        port=LICENSE_PORT,
                        # A number: see `sonic_eks.k8s.network_policies`.
                        target_port=k8s.IntOrString.from_number(LICENSE_PORT),
                    )
                ],
            ),
        )
        volume = k8s.Volume(
            name="data",
            persistent_volume_claim=k8s.PersistentVolumeClaimVolumeSource(claim_name=_DATA_CLAIM),
        )
        k8s.KubeDeployment(
            self,
            "Deployment",
            metadata=metadata(LICENSE_PROXY, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.DeploymentSpec(
                replicas=1,
                selector=k8s.LabelSelector(match_labels=labels.selector),
                # A second pod could not mount the volume of the first.
                strategy=k8s.DeploymentStrategy(
                    type="Recreate" if keeps_files else "RollingUpdate"
                ),
                revision_history_limit=3,
                template=pod_template(
                    labels,
                    container=self._container(),
                    placement=Placement(
                        Pool.SERVING if self.config.has_serving_nodes else Pool.SYSTEM
                    ),
                    grace_seconds=30,
                    volumes=[volume] if keeps_files else [],
                    fs_group=_FS_GROUP if keeps_files else None,
                ),
            ),
        )

    def _claim(self, labels: Labels) -> None:
        size = k8s.Quantity.from_string(f"{self.config.license.volume_gib}Gi")
        k8s.KubePersistentVolumeClaim(
            self,
            "Claim",
            metadata=metadata(_DATA_CLAIM, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.PersistentVolumeClaimSpec(
                access_modes=["ReadWriteOnce"],
                resources=k8s.VolumeResourceRequirements(requests={"storage": size}),
            ),
        )

    def _container(self) -> k8s.Container:
        settings = self.config.license
        # The configuration gives an air-gapped license its folder.
        folder = settings.data_path if settings.mode == "airGapped" else None
        return k8s.Container(
            name="license-proxy",
            image=self.catalogue.image(LICENSE_PROXY_IMAGE),
            env=environment(settings.env),
            ports=[k8s.ContainerPort(name="http", container_port=LICENSE_PORT)],
            # A CPU limit is harmless here: no audio passes through.
            resources=resources(
                cpu_millicores=100, memory_mib=256, ephemeral_mib=128, cpu_limit_millicores=500
            ),
            security_context=vendor_security(),
            # The vendor documents no path to probe, so the port has to do.
            startup_probe=tcp_probe("http", period_seconds=2, failures=60),
            readiness_probe=tcp_probe("http", period_seconds=5, failures=3),
            liveness_probe=patient_liveness("http"),
            volume_mounts=[k8s.VolumeMount(name="data", mount_path=folder)] if folder else None,
        )
