"""Permissions, logs and findings of the functions that run kubectl and Helm for CDK."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from sonic_eks.config.kubernetes import RELEASES
from sonic_eks.constructs.acknowledgements import acknowledge, acknowledge_managed_policies

_BASIC = "service-role/AWSLambdaBasicExecutionRole"
_IN_VPC = "service-role/AWSLambdaVPCAccessExecutionRole"


def kubectl_layer(scope: Construct, construct_id: str, version: str) -> lambda_.ILayerVersion:
    """Return the layer with the kubectl and the Helm that are made for a Kubernetes version."""
    module, name = RELEASES[version].kubectl_layer
    layer = getattr(importlib.import_module(module), name)
    return cast("lambda_.ILayerVersion", layer(scope, construct_id))


def kubectl_handler_role(
    scope: Construct, *, cluster_name: str, chart_repositories: Sequence[str]
) -> iam.IRole:
    """Return a role that may find one cluster and pull a few charts.

    CDK would add read access to every ECR repository, public ones included; the role comes back
    closed to additions.

    Parameters
    ----------
    scope : Construct
        Where the role is made.
    cluster_name : str
        Name of the cluster.
    chart_repositories : sequence of str
        Names of the ECR repositories of the Helm charts.
    """
    stack = cdk.Stack.of(scope)
    cluster = stack.format_arn(service="eks", resource="cluster", resource_name=cluster_name)
    repositories = [
        stack.format_arn(service="ecr", resource="repository", resource_name=name)
        for name in chart_repositories
    ]
    statement = iam.PolicyStatement
    pull = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    document = iam.PolicyDocument(
        statements=[
            statement(actions=["eks:DescribeCluster"], resources=[cluster]),
            statement(actions=["ecr:GetAuthorizationToken"], resources=["*"]),
            statement(actions=pull, resources=repositories),
        ]
    )
    role = iam.Role(
        scope,
        "KubectlRole",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_IN_VPC)],
        inline_policies={"ClusterAndCharts": document},
    )
    acknowledge_managed_policies(
        role, "what Lambda asks of every function in a VPC; it reads no data", _IN_VPC
    )
    acknowledge(
        role,
        "ecr:GetAuthorizationToken knows no resource; only the charts' repositories can be pulled",
        "AwsSolutions-IAM5[Resource::*]",
    )
    return role.without_policy_updates()


def keep_house(cluster: eks.Cluster, role_scope: Construct, *, log_retention_days: int) -> None:
    """Bound the functions' logs in time, and accept what CDK makes the functions of.

    Parameters
    ----------
    cluster : aws_eks_v2.Cluster
        The cluster that the functions serve.
    role_scope : Construct
        Where `kubectl_handler_role` made the role.
    log_retention_days : int
        Days that their logs are kept.
    """
    barrier = cluster.node.find_child("KubectlReadyBarrier")
    provider = cluster.node.find_child("KubectlProvider")
    for construct in provider.node.find_all():
        if isinstance(construct, logs.CfnLogGroup):
            construct.retention_in_days = log_retention_days
            construct.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
            # The last uninstalls write logs, too: a group deleted before them would come back.
            barrier.node.add_dependency(construct)
    # A leftover of the access to public ECR that `kubectl_handler_role` does not give.
    role_scope.node.try_remove_child("HasEcrPublic")
    _acknowledge_framework(provider)


def _acknowledge_framework(provider: IConstruct) -> None:
    handler = provider.node.find_child("Handler")
    function = handler.node.default_child
    assert isinstance(function, cdk.CfnElement)
    function_id = cdk.Stack.of(provider).resolve(function.logical_id)
    acknowledge(
        handler, "CDK chooses the Python release that its handler is tested with", "AwsSolutions-L1"
    )
    framework = provider.node.find_child("Provider")
    acknowledge_managed_policies(
        framework,
        "CDK's provider framework: logs, and network interfaces in the VPC",
        _BASIC,
        _IN_VPC,
    )
    acknowledge(
        framework,
        "CDK's provider framework invokes any version of the one function that it wraps",
        f"AwsSolutions-IAM5[Resource::<{function_id}.Arn>:*]",
    )
