"""Who may read the secrets that pods mount: a role for each service account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_eks_v2
from aws_cdk import aws_iam as iam
from constructs import Construct

from sonic_eks.constructs.pod_identity import PodIdentityRole

# README of the AWS provider for the Secrets Store CSI driver: it reads a value at the mount, and
# then asks at each rotation poll whether there is a newer one.
_READ = ("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue")


class SecretReaders(Construct):
    """A role for each service account whose pods mount secrets, and its association.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster : aws_eks_v2.ICluster
        The cluster.
    namespace : str
        Namespace of the service accounts.
    readers : mapping of str to sequence of str
        ARNs of the secrets by service account.
    key_arns : sequence of str
        Customer managed keys that may encrypt the secrets; aws/secretsmanager needs no permission.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: aws_eks_v2.ICluster,
        namespace: str,
        readers: Mapping[str, Sequence[str]],
        key_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        for account, secret_arns in readers.items():
            statements = [iam.PolicyStatement(actions=list(_READ), resources=list(secret_arns))]
            if key_arns:
                statements.append(self._decrypt(secret_arns, key_arns))
            role = PodIdentityRole(
                self,
                account,
                cluster=cluster,
                namespace=namespace,
                service_account=account,
                inline_policies={"Secrets": iam.PolicyDocument(statements=statements)},
            )
            role.associate(cluster)

    def _decrypt(self, secret_arns: Sequence[str], key_arns: Sequence[str]) -> iam.PolicyStatement:
        """Let Secrets Manager decrypt these secrets, and nothing else, with the keys.

        It calls KMS from its own side, as the reader (AWS Secrets Manager user guide, "Secret
        encryption and decryption"), so the VPC needs no endpoint of KMS.
        """
        stack = cdk.Stack.of(self)
        host = f"secretsmanager.{stack.region}.amazonaws.com"
        # In China, services have either suffix; no document found says which one KMS sees.
        hosts = [host, f"{host}.cn"] if stack.region.startswith("cn-") else [host]
        return iam.PolicyStatement(
            actions=["kms:Decrypt"],
            resources=list(key_arns),
            conditions={
                "StringEquals": {
                    "kms:ViaService": hosts,
                    "kms:EncryptionContext:SecretARN": list(secret_arns),
                }
            },
        )
