"""What holds for the templates of a deployment as a whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk import cx_api
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.names import STACKS
from sonic_eks.stacks.deployment import Stacks
from tests.synth import ROOT, changed, stacks_of

# AWS CloudFormation quotas: template body in an S3 object, resources in a template.
MAX_TEMPLATE_BYTES = 1_000_000
MAX_RESOURCES = 500
# AWS Lambda quotas: an asynchronous invocation's payload, into which a manifest is inlined.
MAX_PAYLOAD_BYTES = 262_144

PUBLIC_REGISTRIES = re.compile(
    r"public\.ecr\.aws|docker\.io|ghcr\.io|quay\.io|nvcr\.io|registry\.k8s\.io|gcr\.io"
    r"|github\.io|aws\.github\.io"
)


def assembly_of(stacks: Stacks) -> cx_api.CloudAssembly:
    """Return the cloud assembly of the app that holds `stacks`."""
    return stacks.network.node.root.synth()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture(scope="module")
def bodies(stacks: Stacks) -> dict[str, str]:
    """Template files by stack, as the CLI uploads them."""
    assembly = assembly_of(stacks)
    return {
        name: Path(assembly.get_stack_by_name(f"sonic-{name}").template_full_path).read_text()
        for name in STACKS
    }


def flattened(value: Any) -> str:
    """Return a template value as text, with every intrinsic function as a short marker."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return str(separator).join(flattened(part) for part in parts)
    return "<token-of-at-most-eighty-characters-is-what-an-arn-or-a-host-name-comes-to-here->"


@pytest.mark.parametrize("stack", STACKS)
def test_templates_fit_cloudformation(bodies: dict[str, str], stack: str) -> None:
    assert len(bodies[stack].encode()) < MAX_TEMPLATE_BYTES * 0.9
    assert 0 < len(json.loads(bodies[stack])["Resources"]) < MAX_RESOURCES * 0.9


def test_manifests_fit_the_handlers_payload(templates: dict[str, Template]) -> None:
    manifests = [
        resource["Properties"]["Manifest"]
        for template in templates.values()
        for resource in template.find_resources("Custom::AWSCDK-EKS-KubernetesResource").values()
    ]
    assert manifests
    assert (
        max(len(flattened(manifest).encode()) for manifest in manifests) < MAX_PAYLOAD_BYTES * 0.75
    )


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_cfn_lint_finds_only_what_is_explained(bodies: dict[str, str], stack: str) -> None:
    # It takes most of a second to import, in every process that collects this file.
    from cfnlint import api as cfn_lint
    from cfnlint.config import ManualArgs

    accepted = yaml.safe_load((ROOT / "tests" / "expected" / "cfn_lint.yaml").read_text())
    accepted = {(entry["rule"], entry["resource"]) for entry in accepted if entry["stack"] == stack}
    resources = json.loads(bodies[stack])["Resources"]
    # cfn-lint 1.58 does not know that Fn::GetStackOutput, like Fn::ImportValue, gives a string.
    known = re.sub(
        r'\{\s*"Fn::GetStackOutput": \{[^}]*\}\s*\}', '{"Fn::ImportValue": "x"}', bodies[stack]
    )
    found = cfn_lint.lint(known, config=ManualArgs(regions=["us-east-1"]))
    seen = {
        (match.rule.id, resources[str(match.path[1])]["Type"] if len(match.path) > 1 else "")
        for match in found
    }
    assert seen == accepted, "\n".join(str(match) for match in found)


def test_stacks_deploy_in_an_order_that_serves_what_they_need(stacks: Stacks) -> None:
    assembly = assembly_of(stacks)
    needs: dict[str, set[str]] = {}
    for name in STACKS:
        artifact = assembly.get_stack_by_name(f"sonic-{name}")
        needs[name] = {
            dependency.id.removeprefix("sonic-")
            for dependency in artifact.dependencies
            if dependency.id.removeprefix("sonic-") in STACKS
        }
    assert needs["network"] == needs["data"] == needs["registry"] == set()
    assert needs["weights"] >= {"network", "data"}
    # The cluster's charts and images come from the registry.
    assert needs["mirror"] == {"registry"}
    assert needs["cluster"] >= {"network", "mirror"}
    # The cluster outlives the weights, which are a cache: neither needs the other.
    assert "weights" not in needs["cluster"]
    assert needs["edge"] >= {"network", "cluster"}
    assert "edge" not in needs["cluster"]
    assert needs["workload"] >= {"network", "weights", "cluster", "edge"}
    assert needs["observability"] >= {"edge", "weights"}


def test_references_between_stacks_are_weak(bodies: dict[str, str]) -> None:
    for body in bodies.values():
        assert "Fn::ImportValue" not in body
        assert '"Export"' not in body
    assert "Fn::GetStackOutput" in bodies["workload"]


def test_the_cluster_reads_nothing_from_a_public_registry(bodies: dict[str, str]) -> None:
    for stack in ("cluster", "workload"):
        assert PUBLIC_REGISTRIES.findall(bodies[stack]) == []


def test_charts_come_from_the_private_registry(templates: dict[str, Template]) -> None:
    charts = templates["cluster"].find_resources("Custom::AWSCDK-EKS-HelmChart").values()
    assert {flattened(chart["Properties"]["Release"]) for chart in charts}
    for chart in charts:
        properties = chart["Properties"]
        repository = flattened(properties["Repository"])
        assert re.fullmatch(
            r"oci://<[^>]+>\.dkr\.ecr\.us-east-1\.amazonaws\.com/sonic/charts/[a-z-]+", repository
        )
        assert properties["Wait"] is True


@pytest.mark.parametrize("stack", STACKS)
def test_resources_carry_the_deployments_tags(templates: dict[str, Template], stack: str) -> None:
    tagged = 0
    for resource in templates[stack].to_json()["Resources"].values():
        tags = resource.get("Properties", {}).get("Tags")
        if isinstance(tags, list):
            pairs = {tag["Key"]: tag["Value"] for tag in tags}
            assert pairs.get("sonic-eks:deployment") == "sonic", resource["Type"]
            tagged += 1
        elif isinstance(tags, dict):
            assert tags.get("sonic-eks:deployment") == "sonic", resource["Type"]
            tagged += 1
    assert tagged or stack == "workload"


@pytest.mark.synth
def test_configured_tags_reach_the_resources(default_config: Configuration) -> None:
    config = changed(default_config, tags={"cost-center": "voice"})
    template = Template.from_stack(stacks_of(config).data)
    (bucket,) = template.find_resources("AWS::S3::Bucket").values()
    assert {"Key": "cost-center", "Value": "voice"} in bucket["Properties"]["Tags"]


def test_no_zone_or_account_is_guessed(bodies: dict[str, str]) -> None:
    for body in bodies.values():
        assert "dummy" not in body
        assert not re.search(r'[:"]\d{12}[:".]', body)
