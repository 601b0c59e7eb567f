"""The license proxy: the only pod of the service that may talk to the outside."""

from __future__ import annotations

from cdk8s_plus_35 import k8s

from sonic_eks.catalogue import LICENSE_PROXY_IMAGE
from sonic_eks.k8s.chart import DeploymentChart, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE
from sonic_eks.k8s.placement import Placement
from sonic_eks.k8s.pods import pod_template, resources
from sonic_eks.k8s.probes import patient_liveness, tcp_probe
from sonic_eks.k8s.sonic.license_seed import seed_container, seed_volumes
from sonic_eks.k8s.sonic.pods import environment, vendor_security
from sonic_eks.k8s.sonic.secrets import pod_secrets
from sonic_eks.nodes.pools import Pool

LICENSE_PROXY = "sonic-license-proxy"
LICENSE_PORT = 8080
LICENSE_URL = f"http://{LICENSE_PROXY}.{SONIC_NAMESPACE}.svc.cluster.local:{LICENSE_PORT}"

_DATA = "data"
_DATA_CLAIM = f"{LICENSE_PROXY}-data"

# Owns the volume, so that the image can write to it as whatever user it runs.
_FS_GROUP = 1000


class LicenseProxy(DeploymentChart):
    """The license proxy; one pod, since the vendor documents a single one and a grace period."""

    def build(self) -> None:
        """Add Service and Deployment, and the volume of an air-gapped license."""
        labels = Labels.of(self.config, LICENSE_PROXY, component="license")
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
        data = self._data(labels)
        k8s.KubeDeployment(
            self,
            "Deployment",
            metadata=metadata(LICENSE_PROXY, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.DeploymentSpec(
                replicas=1,
                selector=k8s.LabelSelector(match_labels=labels.selector),
                # A second pod could not mount the volume of the first.
                strategy=k8s.DeploymentStrategy(type="Recreate" if data else "RollingUpdate"),
                revision_history_limit=3,
                template=self._pods(labels, data),
            ),
        )

    def _data(self, labels: Labels) -> k8s.VolumeMount | None:
        """Add the volume that keeps an air-gapped license; a connected one has none."""
        settings = self.config.license
        # The configuration gives an air-gapped license its folder.
        if settings.mode != "airGapped" or settings.data_path is None:
            return None
        size = k8s.Quantity.from_string(f"{settings.volume_gib}Gi")
        k8s.KubePersistentVolumeClaim(
            self,
            "Claim",
            metadata=metadata(_DATA_CLAIM, labels, namespace=SONIC_NAMESPACE),
            spec=k8s.PersistentVolumeClaimSpec(
                access_modes=["ReadWriteOnce"],
                resources=k8s.VolumeResourceRequirements(requests={"storage": size}),
            ),
        )
        return k8s.VolumeMount(name=_DATA, mount_path=settings.data_path)

    def _pods(self, labels: Labels, data: k8s.VolumeMount | None) -> k8s.PodTemplateSpec:
        settings = self.config.license
        secrets = pod_secrets(
            self,
            self.config,
            labels,
            name=LICENSE_PROXY,
            files=settings.secret_files,
            reads_more=settings.seed_secret_arn is not None,
        )
        claim = k8s.PersistentVolumeClaimVolumeSource(claim_name=_DATA_CLAIM)
        volumes = [k8s.Volume(name=_DATA, persistent_volume_claim=claim)] if data else []
        seeds = []
        if data and settings.seed_secret_arn and settings.seed_file:
            volumes += seed_volumes(self, self.config, labels, arn=settings.seed_secret_arn)
            seeds = [seed_container(self.catalogue, data, settings.seed_file, user=_FS_GROUP)]
        return pod_template(
            labels,
            container=self._container([*([data] if data else []), *secrets.mounts]),
            placement=Placement(Pool.SERVING if self.config.has_serving_nodes else Pool.SYSTEM),
            grace_seconds=30,
            init_containers=seeds,
            volumes=[*volumes, *secrets.volumes],
            fs_group=_FS_GROUP if data else None,
            service_account=secrets.service_account,
            annotations=secrets.annotations,
        )

    def _container(self, mounts: list[k8s.VolumeMount]) -> k8s.Container:
        return k8s.Container(
            name="license-proxy",
            image=self.catalogue.image(LICENSE_PROXY_IMAGE),
            env=environment(self.config.license.env),
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
            volume_mounts=mounts or None,
        )
