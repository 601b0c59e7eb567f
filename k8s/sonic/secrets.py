"""Secrets as files: what a pod mounts, through the Secrets Store CSI driver and Pod Identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.config.values import SECRETS_FOLDER
from sonic_eks.k8s.chart import custom_object, metadata
from sonic_eks.k8s.labels import Labels
from sonic_eks.k8s.namespaces import SONIC_NAMESPACE

_VOLUME = "secrets"
_DRIVER = "secrets-store.csi.k8s.io"


@dataclass(frozen=True)
class PodSecrets:
    """What a pod template and its main container take; empty without secrets.

    Attributes
    ----------
    service_account : str or None
        The account whose Pod Identity reads the secrets.
    volumes : list of Volume
        Volumes of the pod.
    mounts : list of VolumeMount
        Mounts of the container.
    annotations : dict of str to str
        Annotations of the pods, which change with the list of files, so that pods follow it.
    """

    service_account: str | None = None
    volumes: list[k8s.Volume] = field(default_factory=list)
    mounts: list[k8s.VolumeMount] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


def pod_secrets(
    scope: Construct,
    config: Configuration,
    labels: Labels,
    *,
    name: str,
    files: Mapping[str, str],
    reads_more: bool = False,
) -> PodSecrets:
    """Add the account and the class of a workload's secrets; nothing when it has none.

    Parameters
    ----------
    scope : Construct
        The chart.
    config : Configuration
        The deployment.
    labels : Labels
        Labels of the workload.
    name : str
        Name of the workload, and of both objects.
    files : mapping of str to str
        Secrets Manager ARNs by file name.
    reads_more : bool
        Whether the pods read secrets beside these, so that they need the account in any case.
    """
    if not files and not reads_more:
        return PodSecrets()
    # Nothing in the pod gets a token of the account. The provider asks the API server for one that
    # is bound to the pod and good for EKS Pod Identity alone
    # (aws/secrets-store-csi-driver-provider-aws, pod_identity_credential_provider.go).
    k8s.KubeServiceAccount(
        scope,
        f"{name}-account",
        metadata=metadata(name, labels, namespace=SONIC_NAMESPACE),
        automount_service_account_token=False,
    )
    if not files:
        return PodSecrets(service_account=name)
    listed = hashlib.sha256(json.dumps(dict(files)).encode()).hexdigest()
    return PodSecrets(
        service_account=name,
        volumes=[secret_volume(scope, config, labels, name=name, volume=_VOLUME, files=files)],
        mounts=[secret_mount(_VOLUME)],
        annotations={"sonic-eks/secrets-sha256": listed},
    )


def secret_volume(
    scope: Construct,
    config: Configuration,
    labels: Labels,
    *,
    name: str,
    volume: str,
    files: Mapping[str, str],
) -> k8s.Volume:
    """Add a SecretProviderClass and return the volume that mounts its files.

    Parameters
    ----------
    scope, config, labels
        As of `pod_secrets`.
    name : str
        Name of the class.
    volume : str
        Name of the volume in its pod.
    files : mapping of str to str
        Secrets Manager ARNs by file name.
    """
    objects = [{"objectName": arn, "objectAlias": file} for file, arn in files.items()]
    custom_object(
        scope,
        f"{name}-secrets",
        api_version="secrets-store.csi.x-k8s.io/v1",
        kind="SecretProviderClass",
        name=name,
        namespace=SONIC_NAMESPACE,
        labels=labels,
        # No secretObjects: they would copy the values into Kubernetes Secrets.
        spec={
            "provider": "aws",
            "parameters": {
                # Without it the provider asks the API server for the node's label at each mount.
                "region": config.deployment.region,
                "usePodIdentity": "true",
                # Quoted, since 1e3 is a number to the provider's parser.
                "objects": yaml.safe_dump(
                    objects, sort_keys=False, default_style='"', width=float("inf")
                ),
            },
        },
    )
    return k8s.Volume(
        name=volume,
        csi=k8s.CsiVolumeSource(
            driver=_DRIVER, read_only=True, volume_attributes={"secretProviderClass": name}
        ),
    )


def secret_mount(volume: str) -> k8s.VolumeMount:
    """Return the mount of a volume of secrets."""
    # No subPath: the files of one are never replaced (Kubernetes, "Volumes").
    return k8s.VolumeMount(name=volume, mount_path=SECRETS_FOLDER, read_only=True)
