"""The EKS control plane: private, encrypted, logged, entered by access entries only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from sonic_eks.constructs.acknowledgements import acknowledge_managed_policies
from sonic_eks.constructs.kubectl_handler import (
    keep_house,
    kubectl_handler_role,
    kubectl_layer,
)

# FSx for Lustre user guide, "File system access control with Amazon VPC": the file servers also
# open connections to the clients, on these ports.
_LUSTRE_PORTS = (ec2.Port.tcp(988), ec2.Port.tcp_range(1018, 1023))


class ControlPlane(Construct):
    """A cluster without nodes.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster_name : str
        Physical name; IAM conditions and the log group spell it out.
    version : str
        Kubernetes version; the kubectl layer is the one that is made for it.
    vpc : aws_ec2.IVpc
        The VPC.
    subnets : sequence of aws_ec2.ISubnet
        Subnets of the control plane's interfaces and of CDK's kubectl handler, in two zones or
        more.
    service_cidr : str
        IPv4 range of Kubernetes Services.
    admin_role_arns : sequence of str
        IAM roles that administer the cluster.
    api_client_cidrs : sequence of str
        IPv4 ranges from where the Kubernetes API may be reached.
    chart_repositories : sequence of str
        Names of the ECR repositories that Helm charts are installed from.
    log_retention_days : int
        Days that the control plane's logs are kept.
    deletion_protection : bool
        Whether EKS refuses to delete the cluster.

    Attributes
    ----------
    cluster : aws_eks_v2.ICluster
        The cluster.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        version: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        service_cidr: str,
        admin_role_arns: Sequence[str],
        api_client_cidrs: Sequence[str],
        chart_repositories: Sequence[str],
        log_retention_days: int,
        deletion_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        cluster = eks.Cluster(
            self,
            "Cluster",
            cluster_name=cluster_name,
            version=eks.KubernetesVersion.of(version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            endpoint_access=eks.EndpointAccess.PRIVATE,
            service_ipv4_cidr=service_cidr,
            secrets_encryption_key=self._secrets_key(),
            cluster_logging=list(eks.ClusterLoggingTypes),
            role=self._role(),
            security_group=self._security_group(vpc, api_client_cidrs),
            # Add-ons are managed, and nodes come as node groups of their own.
            bootstrap_self_managed_addons=False,
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            # Whoever deploys gets no access for that alone; changing it replaces the cluster.
            bootstrap_cluster_creator_admin_permissions=False,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=kubectl_layer(self, "KubectlLayer", version),
                private_subnets=list(subnets),
                role=kubectl_handler_role(
                    self, cluster_name=cluster_name, chart_repositories=chart_repositories
                ),
            ),
        )
        # The Python class lacks a property of the interface that nothing here reads.
        self.cluster = cast("eks.ICluster", cluster)
        resource = cluster.node.default_child
        assert isinstance(resource, eks.CfnCluster)
        resource.deletion_protection = deletion_protection
        resource.node.add_dependency(self._log_group(cluster_name, log_retention_days))
        for index, arn in enumerate(admin_role_arns):
            self._administrator(f"Administrator{index}", arn)
        keep_house(cluster, self, log_retention_days=log_retention_days)

    def allow_lustre_from(self, cidr: str) -> None:
        """Let file servers in a range of addresses reach the nodes.

        Parameters
        ----------
        cidr : str
            IPv4 range of the file system's subnet. A range, since the file system's security
            group is made later and must be replaceable without this stack.
        """
        for port in _LUSTRE_PORTS:
            self.cluster.cluster_security_group.add_ingress_rule(
                ec2.Peer.ipv4(cidr), port, "Lustre file servers to clients"
            )

    def _secrets_key(self) -> kms.Key:
        return kms.Key(
            self,
            "SecretsKey",
            description="Envelope encryption of Kubernetes secrets",
            enable_key_rotation=True,
            # Without the cluster there is nothing left that it could decrypt.
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )

    def _role(self) -> iam.Role:
        policy = "AmazonEKSClusterPolicy"
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("eks.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy)],
        )
        acknowledge_managed_policies(
            role, "EKS requires this policy, or a copy of it, of a cluster's role", policy
        )
        return role

    def _security_group(self, vpc: ec2.IVpc, clients: Sequence[str]) -> ec2.SecurityGroup:
        # EKS makes the group that nodes and control plane share. CDK insists on a second one for
        # the control plane's interfaces and opens it to the world: this one admits those named.
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="EKS control plane; no rules beside those of the cluster security group",
            allow_all_outbound=False,
        )
        for cidr in clients:
            group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443), "Kubernetes API")
        return group

    def _log_group(self, cluster_name: str, retention_days: int) -> logs.CfnLogGroup:
        # EKS writes to this name and would make a group that is kept for ever.
        group = logs.CfnLogGroup(
            self,
            "LogGroup",
            log_group_name=f"/aws/eks/{cluster_name}/cluster",
            retention_in_days=retention_days,
        )
        group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        return group

    def _administrator(self, construct_id: str, role_arn: str) -> None:
        eks.AccessEntry(
            self,
            construct_id,
            cluster=self.cluster,
            principal=role_arn,
            access_policies=[
                eks.AccessPolicy.from_access_policy_name(
                    "AmazonEKSClusterAdminPolicy", access_scope_type=eks.AccessScopeType.CLUSTER
                )
            ],
        )
