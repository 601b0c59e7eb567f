"""IAM roles for service accounts, through EKS Pod Identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2
from aws_cdk import aws_iam as iam
from constructs import Construct


class PodIdentityRole(iam.Role):
    """A role that one service account of one cluster may assume.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    namespace : str
        Namespace of the service account.
    service_account : str
        Name of the service account.
    managed_policies : sequence of aws_iam.IManagedPolicy
        Managed policies of the role.
    inline_policies : mapping of str to aws_iam.PolicyDocument, optional
        Inline policies of the role by name.

    Notes
    -----
    EKS Pod Identity passes cluster, namespace and service account as session tags (Amazon EKS
    user guide, "Create IAM role with trust policy required by EKS Pod Identity"); the trust policy
    holds the role to them, whoever creates an association.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: aws_eks_v2.ICluster,
        namespace: str,
        service_account: str,
        managed_policies: Sequence[iam.IManagedPolicy] = (),
        inline_policies: Mapping[str, iam.PolicyDocument] | None = None,
    ) -> None:
        conditions = {
            "StringEquals": {
                "aws:RequestTag/eks-cluster-arn": cluster.cluster_arn,
                "aws:RequestTag/kubernetes-namespace": namespace,
                "aws:RequestTag/kubernetes-service-account": service_account,
            }
        }
        principal = iam.ServicePrincipal("pods.eks.amazonaws.com", conditions=conditions)
        super().__init__(
            scope,
            construct_id,
            assumed_by=iam.SessionTagsPrincipal(principal),
            description=f"Pods of {namespace}/{service_account}",
            managed_policies=list(managed_policies),
            inline_policies=inline_policies,
        )
        self.namespace = namespace
        self.service_account = service_account

    def associate(self, cluster: aws_eks_v2.ICluster) -> eks.CfnPodIdentityAssociation:
        """Give the role to its service account; an add-on does that itself instead."""
        return eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster.cluster_name,
            namespace=self.namespace,
            service_account=self.service_account,
            role_arn=self.role_arn,
        )
