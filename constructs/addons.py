"""EKS add-ons: what AWS builds, serves from its own regional registries and keeps patched.

A version that is not pinned is left to EKS, which picks its default for the cluster's Kubernetes
version. Their images come from registries of AWS in the region: no mirror, no internet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from sonic_eks.constructs.acknowledgements import acknowledge_managed_policies
from sonic_eks.constructs.pod_identity import PodIdentityRole
from sonic_eks.nodes.pools import FSX_STARTUP_TAINT, GPU_RESOURCE

DEFAULT_STORAGE_CLASS = "gp3"
"""Name of the default storage class."""

# Amazon EKS user guide, "Restrict Pod network traffic with Kubernetes network policies". Standard
# mode: the strict one would deny CoreDNS and every pod without a policy of its own.
VPC_CNI_VALUES: dict[str, Any] = {
    "enableNetworkPolicy": "true",
    "env": {"NETWORK_POLICY_ENFORCING_MODE": "standard"},
}
EVERYWHERE: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
# The driver that the add-on brings takes its values under its own name (AWS Secrets Manager user
# guide, "Install ASCP for Amazon EKS"), and replaces files when a secret has a new version. Once an
# hour is what the provider's README advises: each poll of each pod is a call for each secret.
SECRETS_VALUES: dict[str, Any] = {
    **EVERYWHERE,
    "secrets-store-csi-driver": {"enableSecretRotation": True, "rotationPollInterval": "3600s"},
}
# The agent itself tolerates every taint; its GPU part tolerates none.
NODE_MONITORING_VALUES: dict[str, Any] = {
    "dcgmAgent": {
        "tolerations": [
            {"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"},
            {"key": FSX_STARTUP_TAINT, "operator": "Exists", "effect": "NoExecute"},
        ]
    }
}


class NodeAddons(Construct):
    """The add-ons that a node needs to become ready: DaemonSets, installed before any node.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    versions : mapping of str to str
        Pinned versions by add-on; EKS picks the others.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: aws_eks_v2.ICluster,
        versions: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        agent = _addon(self, cluster, "eks-pod-identity-agent", versions, values=EVERYWHERE)
        _addon(self, cluster, "kube-proxy", versions)
        # The agent runs on the host's network, so it needs no CNI to give the CNI its credentials.
        cni = _addon(
            self,
            cluster,
            "vpc-cni",
            versions,
            values=VPC_CNI_VALUES,
            role=PodIdentityRole(
                self,
                "CniRole",
                cluster=cluster,
                namespace="kube-system",
                service_account="aws-node",
                managed_policies=[_aws_policy("AmazonEKS_CNI_Policy")],
            ),
        )
        cni.node.add_dependency(agent)
        acknowledge_managed_policies(
            self,
            "the CNI's own policy, given to its service account instead of to every node",
            "AmazonEKS_CNI_Policy",
        )


class ClusterAddons(Construct):
    """The add-ons that run on nodes.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    nodes : constructs.IDependable
        Untainted nodes; without them an add-on with a Deployment never becomes active.
    versions : mapping of str to str
        Pinned versions by add-on; EKS picks the others.

    Notes
    -----
    The FSx driver gets no role: its volumes are static, and mounting one calls no AWS API.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: aws_eks_v2.ICluster,
        nodes: IDependable,
        versions: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        self.node.add_dependency(nodes)
        ebs_policy = "service-role/AmazonEBSCSIDriverPolicy"
        _addon(self, cluster, "coredns", versions)
        ebs = _addon(
            self,
            cluster,
            "aws-ebs-csi-driver",
            versions,
            role=PodIdentityRole(
                self,
                "EbsRole",
                cluster=cluster,
                namespace="kube-system",
                service_account="ebs-csi-controller-sa",
                managed_policies=[_aws_policy(ebs_policy)],
            ),
        )
        _addon(self, cluster, "aws-fsx-csi-driver", versions)
        _addon(self, cluster, "eks-node-monitoring-agent", versions, values=NODE_MONITORING_VALUES)
        _addon(self, cluster, "kube-state-metrics", versions)
        # Mounts secrets on any node; the driver that it brings tolerates every taint by default.
        _addon(
            self,
            cluster,
            "aws-secrets-store-csi-driver-provider",
            versions,
            values=SECRETS_VALUES,
        )
        self._default_storage_class(cluster).node.add_dependency(ebs)
        acknowledge_managed_policies(
            self,
            "the EBS driver's own policy, which limits changes to volumes that the driver tagged",
            ebs_policy,
        )

    def _default_storage_class(self, cluster: aws_eks_v2.ICluster) -> aws_eks_v2.KubernetesManifest:
        # The add-on can make a default class itself, but not an encrypted one.
        return aws_eks_v2.KubernetesManifest(
            self,
            "StorageClass",
            cluster=cluster,
            overwrite=True,
            manifest=[
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {
                        "name": DEFAULT_STORAGE_CLASS,
                        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                    },
                    "provisioner": "ebs.csi.aws.com",
                    "parameters": {"type": "gp3", "encrypted": "true"},
                    "volumeBindingMode": "WaitForFirstConsumer",
                    "allowVolumeExpansion": True,
                }
            ],
        )


def _addon(
    scope: Construct,
    cluster: aws_eks_v2.ICluster,
    name: str,
    versions: Mapping[str, str],
    *,
    values: Mapping[str, Any] | None = None,
    role: PodIdentityRole | None = None,
) -> eks.CfnAddon:
    """Add an add-on; `role` is associated with its service account before its pods start."""
    association = eks.CfnAddon.PodIdentityAssociationProperty
    return eks.CfnAddon(
        scope,
        name,
        addon_name=name,
        addon_version=versions.get(name),
        cluster_name=cluster.cluster_name,
        configuration_values=json.dumps(values, sort_keys=True) if values else None,
        pod_identity_associations=(
            [association(role_arn=role.role_arn, service_account=role.service_account)]
            if role
            else None
        ),
        # Fields that others changed by hand return to what is declared here.
        resolve_conflicts="OVERWRITE",
    )


def _aws_policy(name: str) -> iam.IManagedPolicy:
    return iam.ManagedPolicy.from_aws_managed_policy_name(name)
