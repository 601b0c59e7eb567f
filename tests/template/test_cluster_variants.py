"""The cluster stack under configurations at the edges."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.cloudformation import Resources, iam_size
from tests.synth import changed, stacks_of

pytestmark = pytest.mark.synth

# IAM quotas: characters of a managed policy, of a role's inline policies together, of a role
# name and an instance profile's; Amazon SQS quotas; EKS and CloudWatch Logs API references.
MAX_MANAGED_POLICY = 6144
MAX_INLINE_POLICIES = 10_240
LIMITS = {
    ("AWS::EKS::Cluster", "Name"): 100,
    ("AWS::SQS::Queue", "QueueName"): 80,
    ("AWS::IAM::InstanceProfile", "InstanceProfileName"): 128,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
}
LONG = "a" * 100

VARIANTS: dict[str, dict[str, Any]] = {
    "long-name": {
        "deployment": {"name": LONG, "region": "ap-northeast-2"},
        "network": {"zones": ["ap-northeast-2a", "ap-northeast-2c"]},
    },
    "government": {
        "deployment": {"name": LONG, "region": "us-gov-west-1", "account": "111122223333"},
        "network": {"zones": ["us-gov-west-1a", "us-gov-west-1b", "us-gov-west-1c"]},
    },
    "china": {
        "deployment": {"name": "sonic", "region": "cn-northwest-1"},
        "network": {"zones": ["cn-northwest-1a", "cn-northwest-1b"]},
    },
    "isolated": {
        "network": {"egress": "none"},
        "license": {"mode": "airGapped", "dataPath": "/var/lib/license"},
    },
    "big-gpus": {"nodes": {"gpu": {"instanceType": "p5.48xlarge"}}},
}
PARTITIONS = {"government": "aws-us-gov", "china": "aws-cn"}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(
    request: pytest.FixtureRequest,
    default_config: Configuration,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, dict[str, Any], list[str]]:
    """Name, cluster template and the cluster stack's cdk-nag findings of a variant."""
    name = request.param
    config = changed(default_config, **VARIANTS[name])
    outdir = tmp_path_factory.mktemp(name)
    stacks = stacks_of(config, outdir=outdir)
    app = stacks.cluster.node.root
    assert isinstance(app, cdk.App)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    try:
        template = Template.from_stack(stacks.cluster).to_json()
    except Exception:  # a finding, in whichever stack
        (file,) = outdir.glob("*-cluster.template.json")
        template = json.loads(file.read_text())
    return name, template, findings(outdir)


def findings(outdir: Path) -> list[str]:
    """Return cdk-nag's findings about the cluster stack."""
    report = json.loads((outdir / "validation-report.json").read_text())
    return [
        f"{violation['ruleName']} {construct['constructPath']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
        if "-cluster/" in construct["constructPath"]
    ]


def test_nothing_is_left_unexplained(variant: tuple[str, dict[str, Any], list[str]]) -> None:
    assert variant[2] == []


def test_names_fit(variant: tuple[str, dict[str, Any], list[str]]) -> None:
    resources = Resources(variant[1])
    for (kind, key), limit in LIMITS.items():
        given = [properties[key] for properties in resources.of(kind)]
        assert given
        assert all(0 < len(name) <= limit for name in given)


def test_policies_fit(variant: tuple[str, dict[str, Any], list[str]]) -> None:
    name, template, _ = variant
    resources = Resources(template, partition=PARTITIONS.get(name, "aws"))
    managed = resources.of("AWS::IAM::ManagedPolicy")
    assert managed
    for policy in managed:
        assert iam_size(policy["PolicyDocument"]) <= MAX_MANAGED_POLICY
    for role in resources.of("AWS::IAM::Role"):
        inline = sum(iam_size(policy["PolicyDocument"]) for policy in role.get("Policies", []))
        assert inline <= MAX_INLINE_POLICIES


def test_arns_are_of_the_partition(variant: tuple[str, dict[str, Any], list[str]]) -> None:
    name, template, _ = variant
    partition = PARTITIONS.get(name, "aws")
    resolved = json.dumps(Resources(template, partition=partition).resolve(template["Resources"]))
    assert set(re.findall(r"arn:([a-z-]+):", resolved)) == {partition}


def test_registry_hosts_are_of_the_region(variant: tuple[str, dict[str, Any], list[str]]) -> None:
    name, template, _ = variant
    suffix = r"amazonaws\.com\.cn" if name == "china" else r"amazonaws\.com"
    region = VARIANTS[name].get("deployment", {}).get("region", "us-east-1")
    for chart in Resources(template).of("Custom::AWSCDK-EKS-HelmChart"):
        assert re.match(rf"oci://\d{{12}}\.dkr\.ecr\.{region}\.{suffix}/", chart["Repository"])
