"""The build that runs the mirror: its project, role, log and source."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

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

_READ_OBJECT = ("s3:GetObject", "s3:GetObjectVersion")
_READ_BUCKET = ("s3:GetBucketAcl", "s3:GetBucketLocation")
WRITE_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")
"""What writing to a log group takes."""

_PUSH_AND_PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:GetDownloadUrlForLayer",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)


class MirrorProject(Construct):
    """A build outside the VPC that runs `python -m sonic_eks.mirror` on a list.

    It belongs beside the repositories, not beside what waits for it: a wait that fails rolls its
    stack back, and a build that still copies would lose its role and its log with it.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    artifacts : sequence of Artifact
        The list.
    log_retention : aws_logs.RetentionDays
        How long the build's log is kept.

    Attributes
    ----------
    project : aws_codebuild.IProject
        The project; `sonic_eks.constructs.mirror.MirrorRun` starts its builds.
    log_group : aws_logs.ILogGroup
        Where its builds write.
    list_digest : str
        SHA-256 of the list, in hexadecimal digits.
    """

    project: codebuild.IProject
    log_group: logs.ILogGroup

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
        self.list_digest = hashlib.sha256(text.encode()).hexdigest()
        log_group = logs.LogGroup(
            self, "Log", retention=log_retention, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        self.log_group = log_group
        self.project = self._project(artifacts, text, log_group)

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
            allow(_PUSH_AND_PULL, repositories),
            allow(["ecr:GetAuthorizationToken"], ["*"]),
            allow(_READ_OBJECT, [source.bucket.arn_for_objects(source.s3_object_key)]),
            allow(_READ_BUCKET, [source.bucket.bucket_arn]),
            allow(WRITE_LOG, [log_group.log_group_arn]),
        ]
        secrets = sorted({a.secret_arn for a in artifacts if a.secret_arn})
        if secrets:
            # With and without the six characters that Secrets Manager appends.
            arns = [arn for secret in secrets for arn in (secret, f"{secret}-??????")]
            statements.append(allow(["secretsmanager:GetSecretValue"], arns))
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


def allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    """Return a statement that allows actions on resources."""
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


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
