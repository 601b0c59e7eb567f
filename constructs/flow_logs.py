"""Flow logs: the record of every connection in the VPC."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct


class VpcFlowLogs(Construct):
    """Flow logs of all traffic, in a log group that is removed with the stack.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc : aws_ec2.IVpc
        The VPC.
    retention_days : int
        Days that they are kept.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, vpc: ec2.IVpc, retention_days: int
    ) -> None:
        super().__init__(scope, construct_id)
        group = logs.CfnLogGroup(self, "Group", retention_in_days=retention_days)
        group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        account = cdk.Stack.of(self).account
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "vpc-flow-logs.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": account}},
            ),
            inline_policies={
                "deliver": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=[
                                "logs:CreateLogStream",
                                "logs:DescribeLogStreams",
                                "logs:PutLogEvents",
                            ],
                            # The ARN of a log group ends in :*, its streams.
                            resources=[group.attr_arn],
                        )
                    ]
                )
            },
        )
        ec2.CfnFlowLog(
            self,
            "Log",
            resource_type="VPC",
            resource_id=vpc.vpc_id,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=group.ref,
            deliver_logs_permission_arn=role.role_arn,
        )
