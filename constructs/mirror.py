"""Filling the registry in a deployment: a build that runs the mirror, and a wait for its end."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import custom_resources
from constructs import Construct, IConstruct

import sonic_eks
from sonic_eks.constructs.acknowledgements import acknowledge
from sonic_eks.mirror.artifact import Artifact, write_list

_PACKAGE = Path(sonic_eks.__file__).parent
_BUILD_FILES = _PACKAGE / "constructs" / "mirror_build"
_REQUIREMENTS = ("requirements.txt", "requirements-build.txt")
# What `sonic_eks.mirror` needs of the project.
_SOURCES = ("__init__.py", "errors.py", "upstream.py")

# AWS CodeBuild user guide, "Available runtimes": the image of Amazon Linux 2023 has it.
_PYTHON = "3.13"
_PARALLEL = 8
_BUILD_HOURS = 8
_QUERY_SECONDS = 20
# Longer than the handler's own patience, so that its words are the ones that are shown.
_TOTAL_MINUTES = 59

# The framework's functions that its state machine calls.
_WAITED_FOR = ("isComplete", "onTimeout")

_READ_OBJECT = ("s3:GetObject", "s3:GetObjectVersion")
_READ_BUCKET = ("s3:GetBucketAcl", "s3:GetBucketLocation")
_WRITE_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")
_RUN_BUILDS = (
    "codebuild:BatchGetBuilds",
    "codebuild:ListBuildsForProject",
    "codebuild:StartBuild",
)
_PUSH_AND_PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:GetDownloadUrlForLayer",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)


class MirrorBuild(Construct):
    """Copies a list into the account's registry during a deployment.

    A build outside the VPC runs `python -m sonic_eks.mirror`. The deployment waits for it, fails
    with its message, and does it again only when the list changes.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    artifacts : sequence of Artifact
        The list. Its repositories must exist before this stack is deployed.
    log_retention : aws_logs.RetentionDays
        How long the build's and the functions' logs are kept.

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
        artifacts: Sequence[Artifact],
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
    ) -> None:
        super().__init__(scope, construct_id)
        text = write_list(artifacts)
        log_group = logs.LogGroup(
            self, "Log", retention=log_retention, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        project = self._project(artifacts, text, log_group)
        provider = self._provider(self._handler(project, log_group), log_group)
        self.filled = cdk.CustomResource(
            self,
            "Filled",
            resource_type="Custom::RegistryMirror",
            service_token=provider.service_token,
            properties={
                "ProjectName": project.project_name,
                "ListDigest": hashlib.sha256(text.encode()).hexdigest(),
            },
        )

    def _project(
        self, artifacts: Sequence[Artifact], text: str, log_group: logs.LogGroup
    ) -> codebuild.Project:
        source = self._source(text)
        stack = cdk.Stack.of(self)
        registry = f"{stack.account}.dkr.ecr.{stack.region}.{stack.url_suffix}"
        project = codebuild.Project(
            self,
            "Project",
            description="Copies upstream images and charts into the private registry",
            source=codebuild.Source.s3(bucket=source.bucket, path=source.s3_object_key),
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.AMAZON_LINUX_2023_5,
                compute_type=codebuild.ComputeType.SMALL,
            ),
            environment_variables={
                "REGISTRY": codebuild.BuildEnvironmentVariable(value=registry),
            },
            build_spec=_build_spec(),
            logging=codebuild.LoggingOptions(
                cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log_group)
            ),
            timeout=cdk.Duration.hours(_BUILD_HOURS),
            grant_report_group_permissions=False,
            role=self._build_role(artifacts, source, log_group).without_policy_updates(),
        )
        acknowledge(
            project,
            "the build keeps nothing: no artifacts, no cache; what it copies goes to the registry",
            "AwsSolutions-CB4",
        )
        return project

    def _source(self, text: str) -> s3_assets.Asset:
        """Return an asset with the mirror's code, its pinned libraries and the list."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            package = root / _PACKAGE.name
            shutil.copytree(
                _PACKAGE / "mirror",
                package / "mirror",
                ignore=shutil.ignore_patterns("__pycache__"),
                copy_function=shutil.copyfile,
            )
            for name in _SOURCES:
                shutil.copyfile(_PACKAGE / name, package / name)
            for name in _REQUIREMENTS:
                shutil.copyfile(_BUILD_FILES / name, root / name)
            (root / "list.json").write_text(text, "utf-8")
            # CDK copies the folder here and now.
            return s3_assets.Asset(self, "Source", path=folder)

    def _build_role(
        self, artifacts: Sequence[Artifact], source: s3_assets.Asset, log_group: logs.LogGroup
    ) -> iam.Role:
        stack = cdk.Stack.of(self)
        names = sorted({artifact.repository for artifact in artifacts})
        repositories = [
            stack.format_arn(service="ecr", resource="repository", resource_name=name)
            for name in names
        ]
        statements = [
            _allow(_PUSH_AND_PULL, repositories),
            _allow(["ecr:GetAuthorizationToken"], ["*"]),
            _allow(_READ_OBJECT, [source.bucket.arn_for_objects(source.s3_object_key)]),
            _allow(_READ_BUCKET, [source.bucket.bucket_arn]),
            _allow(_WRITE_LOG, [log_group.log_group_arn]),
        ]
        secrets = sorted({a.secret_arn for a in artifacts if a.secret_arn})
        if secrets:
            # With and without the six characters that Secrets Manager appends.
            arns = [arn for secret in secrets for arn in (secret, f"{secret}-??????")]
            statements.append(_allow(["secretsmanager:GetSecretValue"], arns))
        role = iam.Role(
            self,
            "BuildRole",
            assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"),
            inline_policies={"Copies": iam.PolicyDocument(statements=statements)},
        )
        acknowledge(
            role,
            "ecr:GetAuthorizationToken knows no resource; the token opens only the repositories"
            " that the other statement names",
            "AwsSolutions-IAM5[Resource::*]",
        )
        return role

    def _handler(self, project: codebuild.Project, log_group: logs.LogGroup) -> lambda_.Function:
        statements = [
            _allow(_RUN_BUILDS, [project.project_arn]),
            _allow([*_WRITE_LOG, "logs:GetLogEvents"], [log_group.log_group_arn]),
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
            code=lambda_.Code.from_asset(str(_BUILD_FILES), exclude=["*", "!handler.py"]),
            timeout=cdk.Duration.seconds(60),
            log_group=log_group,
            role=role.without_policy_updates(),
        )

    def _provider(
        self, handler: lambda_.Function, log_group: logs.LogGroup
    ) -> custom_resources.Provider:
        asks = _allow(["lambda:InvokeFunction", "lambda:GetFunction"], [handler.function_arn])
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
        statements = [_allow(_WRITE_LOG, [log_group.log_group_arn]), *more]
        return iam.Role(
            self,
            construct_id,
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"Framework": iam.PolicyDocument(statements=statements)},
        )


def _allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


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


def _build_spec() -> codebuild.BuildSpec:
    run = f'python -m sonic_eks.mirror list.json --registry "$REGISTRY" --parallel {_PARALLEL}'
    pip = "python -m pip install --quiet --no-input --disable-pip-version-check --require-hashes"
    return codebuild.BuildSpec.from_object(
        {
            "version": "0.2",
            "phases": {
                "install": {
                    "runtime-versions": {"python": _PYTHON},
                    "commands": [
                        f"{pip} --only-binary :all: -r requirements-build.txt",
                        # One library is published as source only; what builds it is pinned too.
                        f"{pip} --no-build-isolation -r requirements.txt",
                    ],
                },
                "build": {"commands": [run]},
            },
        }
    )
