"""The build that fills the registry in a deployment: permissions, source, and what it runs."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.constructs.mirror import MirrorRun
from sonic_eks.constructs.mirror_project import MirrorProject
from sonic_eks.mirror.artifact import Artifact, read_list
from sonic_eks.upstream import Kind
from tests.synth import ROOT, cdk_context

STACKS = ("Registry", "Mirror")
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:vendor"
NATS = Artifact("nats", Kind.IMAGE, "docker.io/library/nats", "2.0", "sonic", "d/images/nats")


@dataclasses.dataclass(frozen=True)
class Built:
    templates: tuple[Template, ...]
    folder: Path
    refused: str

    def resources(self, kind: str) -> list[dict[str, Any]]:
        return [
            resource["Properties"]
            for template in self.templates
            for resource in template.find_resources(kind).values()
        ]

    def role(self, service: str) -> dict[str, Any]:
        (found,) = (
            role
            for role in self.resources("AWS::IAM::Role")
            if f"{service}.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])
            and "Copies" in json.dumps(role.get("Policies"))
        )
        return found

    def source(self) -> Path:
        """The folder that the build starts in."""
        (folder,) = (path.parent for path in self.folder.glob("asset.*/list.json"))
        return folder


def built(folder: Path, artifacts: Sequence[Artifact], region: str = "us-east-1") -> Built:
    app = cdk.App(context=cdk_context(), outdir=str(folder))
    build_stack, run_stack = (
        cdk.Stack(app, name, env=cdk.Environment(region=region)) for name in STACKS
    )
    project = MirrorProject(build_stack, "Build", artifacts=artifacts)
    MirrorRun(run_stack, "Run", build=project)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    try:
        app.synth()
        refused = ""
    except RuntimeError as error:
        refused = str(error)
    bodies = [json.loads((folder / f"{name}.template.json").read_text()) for name in STACKS]
    return Built(tuple(map(Template.from_json, bodies)), folder, refused)


@pytest.fixture(scope="module")
def build(default_config: Configuration, tmp_path_factory: pytest.TempPathFactory) -> Built:
    artifacts = Catalogue(default_config).artifacts
    return built(tmp_path_factory.mktemp("build"), artifacts)


def statements(role: dict[str, Any]) -> dict[str, list[str]]:
    """Resources as text, by each action."""
    found: dict[str, list[str]] = {}
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            actions, resources = statement["Action"], statement["Resource"]
            for action in actions if isinstance(actions, list) else [actions]:
                of_action = found.setdefault(action, [])
                of_action += map(
                    json.dumps, resources if isinstance(resources, list) else [resources]
                )
    return found


@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1", "us-gov-west-1"])
def test_no_unexplained_finding(tmp_path: Path, region: str) -> None:
    with_secret = dataclasses.replace(NATS, secret_arn=SECRET)

    assert built(tmp_path, [with_secret], region).refused == ""


def test_build_may_write_to_the_lists_repositories_alone(
    build: Built, default_config: Configuration
) -> None:
    allowed = statements(build.role("codebuild"))
    names = {artifact.repository for artifact in Catalogue(default_config).artifacts}

    assert {a for a in allowed if a.startswith("ecr:")} == {
        "ecr:GetAuthorizationToken",
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:CompleteLayerUpload",
        "ecr:GetDownloadUrlForLayer",
        "ecr:InitiateLayerUpload",
        "ecr:PutImage",
        "ecr:UploadLayerPart",
    }
    written = {text.split(":repository/")[1].split('"')[0] for text in allowed["ecr:PutImage"]}
    assert written == names
    assert not any(action.startswith("secretsmanager:") for action in allowed)
    assert [a for a, resources in allowed.items() if '"*"' in resources] == [
        "ecr:GetAuthorizationToken"
    ]


def test_build_may_read_the_lists_secrets_alone(tmp_path: Path) -> None:
    role = built(tmp_path, [dataclasses.replace(NATS, secret_arn=SECRET)]).role("codebuild")

    assert statements(role)["secretsmanager:GetSecretValue"] == [
        f'"{SECRET}"',
        f'"{SECRET}-??????"',
    ]


def test_nothing_is_in_the_vpc(build: Built) -> None:
    (project,) = build.resources("AWS::CodeBuild::Project")

    assert "VpcConfig" not in project
    assert project["Environment"]["PrivilegedMode"] is False
    for function in build.resources("AWS::Lambda::Function"):
        assert "VpcConfig" not in function


def test_logs_end(build: Built) -> None:
    groups = build.resources("AWS::Logs::LogGroup")

    assert [group["RetentionInDays"] for group in groups] == [30, 30]
    (project,) = build.resources("AWS::CodeBuild::Project")
    assert project["LogsConfig"]["CloudWatchLogs"]["Status"] == "ENABLED"
    for function in build.resources("AWS::Lambda::Function"):
        assert "LogGroup" in function["LoggingConfig"]


def test_wait_is_below_cloudformations_hour(build: Built) -> None:
    (machine,) = build.resources("AWS::StepFunctions::StateMachine")
    definition = json.dumps(machine["DefinitionString"])
    (seconds,) = re.findall(r"IntervalSeconds\W+(\d+)", definition)
    (tries,) = re.findall(r"MaxAttempts\W+(\d+)", definition)

    assert 55 * 60 < int(seconds) * int(tries) < 60 * 60


def test_same_list_asks_for_no_second_build(tmp_path: Path) -> None:
    def digest(name: str, artifacts: Sequence[Artifact]) -> str:
        (resource,) = built(tmp_path / name, artifacts).resources("Custom::RegistryMirror")
        return str(resource["ListDigest"])

    other = dataclasses.replace(NATS, tag="2.1")
    assert digest("a", [NATS]) == digest("b", [NATS])
    assert digest("a2", [NATS]) != digest("c", [other])


def test_source_is_the_same_under_another_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        strict = built(tmp_path / "strict", [NATS]).source().name
        os.umask(0o002)
        assert built(tmp_path / "open", [NATS]).source().name == strict
    finally:
        os.umask(before)


def test_source_holds_the_list_and_runs_by_itself(
    build: Built, default_config: Configuration
) -> None:
    source = build.source()
    assert read_list(source / "list.json") == Catalogue(default_config).artifacts
    # Without the tree: -P keeps its folder off the path, the blocks keep its libraries out.
    script = (
        "import sys, pathlib; sys.path[:] = ['.'] + [p for p in sys.path if p != sys.argv[1]]\n"
        "for name in ('aws_cdk', 'pydantic', 'typer', 'rich'): sys.modules[name] = None\n"
        "import sonic_eks.mirror.__main__ as module\n"
        "print(pathlib.Path(module.__file__).resolve())\n"
        "sys.exit(module.main(['list.json', '--registry', 'not ours']))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(ROOT)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout.strip() == str((source / "sonic_eks/mirror/__main__.py").resolve())
    assert done.stderr == "sonic-eks: malformed registry host 'not ours': give host or host:port\n"


def test_libraries_of_the_build_are_pinned_by_hash(build: Built) -> None:
    (project,) = build.resources("AWS::CodeBuild::Project")
    phases = yaml.safe_load(project["Source"]["BuildSpec"])["phases"]
    installs = phases["install"]["commands"]
    assert installs
    assert all("--require-hashes" in command for command in installs)
    assert "--no-build-isolation" in installs[-1]  # else pip would fetch setuptools unpinned

    main = pinned(ROOT / "requirements.txt")
    ours = pinned(build.source() / "requirements.txt")
    assert {"boto3", "python-dxf", "pyyaml", "www-authenticate"} <= set(ours)
    assert {name: main.get(name) for name in ours} == ours


def pinned(path: Path) -> dict[str, str]:
    lines = (line.split(";")[0].rstrip(" \\") for line in path.read_text().splitlines())
    return dict(line.split("==", 1) for line in lines if "==" in line and line[0].isalnum())


def test_handler_is_alone_in_its_asset(build: Built) -> None:
    (handler,) = build.folder.glob("asset.*/handler.py")

    assert [path.name for path in handler.parent.iterdir()] == ["handler.py"]
