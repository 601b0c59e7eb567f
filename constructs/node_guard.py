"""A guard against instances that outlive the controller that made them."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from sonic_eks.constructs.acknowledgements import acknowledge

_HANDLER = Path(__file__).with_name("node_guard_handler.py")

# AWS Lambda quotas: a function runs for 15 minutes at most.
TIMEOUT_SECONDS = 900
# Time for an answer that is late; without it CloudFormation waits an hour for a lost one.
_SERVICE_TIMEOUT_SECONDS = TIMEOUT_SECONDS + 60


class NodeGuard(Construct):
    """Its deletion waits until Karpenter's instances are gone, and fails if they stay.

    CDK's handler reports an object as deleted even when ``kubectl delete`` failed. Then the
    controllers would be deleted next, and nothing would be left that terminates the instances. So
    whatever makes instances depends on this: it is deleted in between, looks at EC2 itself, and
    stops the deletion while the controllers still run.

    Parameters
    ----------
    scope, construct_id : Construct, str
        Place in the tree.
    cluster_name : str
        Name of the cluster, which Karpenter puts on its instances as a tag.
    log_retention_days : int
        Days that the function's log is kept.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster_name: str, log_retention_days: int
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.CfnLogGroup(self, "LogGroup", retention_in_days=log_retention_days)
        log_group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        function = lambda_.CfnFunction(
            self,
            "Function",
            code=lambda_.CfnFunction.CodeProperty(zip_file=_HANDLER.read_text(encoding="utf-8")),
            handler="index.handler",
            runtime=lambda_.Runtime.PYTHON_3_14.name,
            timeout=TIMEOUT_SECONDS,
            memory_size=256,
            role=self._role(log_group).role_arn,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=log_group.ref),
            description="Waits until the instances of Karpenter are gone; changes nothing",
        )
        cdk.CustomResource(
            self,
            "Resource",
            resource_type="Custom::NodeGuard",
            service_token=function.attr_arn,
            service_timeout=cdk.Duration.seconds(_SERVICE_TIMEOUT_SECONDS),
            properties={
                "ClusterName": cluster_name,
                "Advice": "run `sonic-eks teardown` with the deployment's configuration, then"
                " destroy again",
            },
        )

    def _role(self, log_group: logs.CfnLogGroup) -> iam.Role:
        statement = iam.PolicyStatement
        write = ["logs:CreateLogStream", "logs:PutLogEvents"]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={
                "Look": iam.PolicyDocument(
                    statements=[
                        statement(actions=["ec2:DescribeInstances"], resources=["*"]),
                        statement(actions=write, resources=[log_group.attr_arn]),
                    ]
                )
            },
        )
        acknowledge(
            role,
            "ec2:DescribeInstances knows no resource; the function filters by the cluster's tag",
            "AwsSolutions-IAM5[Resource::*]",
        )
        return role
