"""The first license of an air-gapped deployment: put on the proxy's volume before it starts."""

from __future__ import annotations

from pathlib import PurePosixPath

from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.catalogue import PYTHON_IMAGE, Catalogue
from sonic_eks.config import Configuration
from sonic_eks.config.values import SECRETS_FOLDER
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.pods import container_security, resources
from sonic_eks.k8s.sidecars import FOLDER, PodCode
from sonic_eks.k8s.sonic.secrets import secret_mount, secret_volume

LICENSE_SEED = "sonic-license-seed"

_FILE = "license"
_SECRET = "seed"
_CODE = PodCode("license_seed", LICENSE_SEED)


def seed_volumes(
    scope: Construct, config: Configuration, labels: Labels, *, arn: str
) -> list[k8s.Volume]:
    """Add the seed's code and its class of secrets to a chart; return the volumes with them.

    Parameters
    ----------
    scope : Construct
        The chart.
    config : Configuration
        The deployment.
    labels : Labels
        Labels of the license proxy.
    arn : str
        The secret that holds the license.
    """
    _CODE.add_config_map(scope, labels)
    secret = secret_volume(
        scope, config, labels, name=LICENSE_SEED, volume=_SECRET, files={_FILE: arn}
    )
    return [secret, _CODE.volume]


def seed_container(
    catalogue: Catalogue, data: k8s.VolumeMount, name: str, *, user: int
) -> k8s.Container:
    """Return the init container that seeds the license.

    Only this container sees the secret. What it puts on the volume stays as it is from then on:
    a seed is for the first start (Cartesia, "Air-gapped").

    Parameters
    ----------
    catalogue : Catalogue
        References into the private registry.
    data : VolumeMount
        The mount of the proxy's volume.
    name : str
        Path of the license file on it.
    user : int
        User and group id; the group owns the volume.
    """
    return k8s.Container(
        name="license-seed",
        image=catalogue.image(PYTHON_IMAGE),
        command=_CODE.command,
        args=[f"{SECRETS_FOLDER}/{_FILE}", str(PurePosixPath(data.mount_path, name))],
        working_dir=FOLDER,
        resources=resources(
            cpu_millicores=50, memory_mib=64, ephemeral_mib=16, cpu_limit_millicores=500
        ),
        security_context=container_security(read_only_root=True, user=user),
        volume_mounts=[
            data,
            secret_mount(_SECRET),
            _CODE.mount,
        ],
    )
