"""Filling the registry in a deployment: the start of a build, and a wait for its end."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources
from constructs import Construct, IConstruct

import sonic_eks
from sonic_eks.constructs.acknowledgements import acknowledge
from sonic_eks.constructs.mirror_project import WRITE_LOG, MirrorProject, allow

_HANDLER_FILES = Path(sonic_eks.__file__).parent / "constructs" / "mirror_build"

_QUERY_SECONDS = 20
# Longer than the handler's own patience, so that its words are the ones that are shown.
_TOTAL_MINUTES = 59

# The framework's functions that its state machine calls.
_WAITED_FOR = ("isComplete", "onTimeout")

_RUN_BUILDS = (
    "codebuild:BatchGetBuilds",
    "codebuild:ListBuildsForProject",
    "codebuild:StartBuild",
)


class MirrorRun(Construct):
    """Runs the mirror during a deployment, and waits for it.

    The deployment fails with the build's message, and starts another build only when the list
    changes. Nothing that a build needs is below this construct.

    Parameters
    ----------
    scope, construct_id : Construct, str
        A stack other than the build's, and the construct's id.
    build : MirrorProject
        What is run. Its repositories must exist before this stack is deployed.
    log_retention : aws_logs.RetentionDays
        How long the functions' log is kept.

    Attributes
    ----------
    filled : aws_cdk.CustomResource
        There when the registry holds the list; what pulls from it depends on this.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        build: MirrorProject,
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self, "Log", retention=log_retention, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        provider = self._provider(self._handler(build, log_group), log_group)
        self.filled = cdk.CustomResource(
            self,
            "Filled",
            resource_type="Custom::RegistryMirror",
            service_token=provider.service_token,
            properties={
                "ProjectName": build.project.project_name,
                "ListDigest": build.list_digest,
            },
        )

    def _handler(self, build: MirrorProject, log_group: logs.LogGroup) -> lambda_.Function:
        statements = [
            allow(_RUN_BUILDS, [build.project.project_arn]),
            allow(["logs:GetLogEvents"], [build.log_group.log_group_arn]),
            allow(WRITE_LOG, [log_group.log_group_arn]),
        ]
        role = iam.Role(
            self,
            "HandlerRole",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Builds": iam.PolicyDocument(statements=statements)},
        )
        return lambda_.Function(
            self,
            "Handler",
            description="Starts the build that fills the registry and tells how it ended",
            runtime=lambda_.Runtime.PYTHON_3_14,
            handler="handler.handle",
            code=lambda_.Code.from_asset(str(_HANDLER_FILES), exclude=["*", "!handler.py"]),
            timeout=cdk.Duration.seconds(60),
            log_group=log_group,
            role=role.without_policy_updates(),
        )

    def _provider(
        self, handler: lambda_.Function, log_group: logs.LogGroup
    ) -> custom_resources.Provider:
        asks = allow(["lambda:InvokeFunction", "lambda:GetFunction"], [handler.function_arn])
        # CDK adds to the first: the state machine's ARN is known to it alone. Were the second
        # the same or open, its policy and the state machine would wait for each other.
        event_role = self._framework_role("EventRole", log_group)
        wait_role = self._framework_role("WaitRole", log_group, asks).without_policy_updates()
        provider = custom_resources.Provider(
            self,
            "Provider",
            on_event_handler=handler,
            is_complete_handler=handler,
            query_interval=cdk.Duration.seconds(_QUERY_SECONDS),
            total_timeout=cdk.Duration.minutes(_TOTAL_MINUTES),
            log_group=log_group,
            disable_waiter_state_machine_logging=True,
            framework_on_event_role=event_role,
            framework_complete_and_timeout_role=wait_role,
        )
        _acknowledge_framework(provider, event_role, handler)
        return provider

    def _framework_role(
        self, construct_id: str, log_group: logs.LogGroup, *more: iam.PolicyStatement
    ) -> iam.Role:
        statements = [allow(WRITE_LOG, [log_group.log_group_arn]), *more]
        return iam.Role(
            self,
            construct_id,
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Framework": iam.PolicyDocument(statements=statements)},
        )


def _acknowledge_framework(
    provider: custom_resources.Provider, role: iam.Role, handler: lambda_.Function
) -> None:
    """Accept what CDK's provider framework is made of."""
    stack = cdk.Stack.of(provider)

    def any_version(function: IConstruct) -> str:
        name = stack.get_logical_id(cast("cdk.CfnElement", function.node.default_child))
        return f"AwsSolutions-IAM5[Resource::<{name}.Arn>:*]"

    reason = "CDK lets its own functions call these ones in any version; there is only one"
    acknowledge(role, reason, any_version(handler))
    functions = (provider.node.find_child(f"framework-{name}") for name in _WAITED_FOR)
    acknowledge(provider, reason, *(any_version(function) for function in functions))
    acknowledge(
        provider,
        "it only waits for the build; the functions that it calls log every call",
        "AwsSolutions-SF1",
        "AwsSolutions-SF2",
    )
