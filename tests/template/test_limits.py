"""Names, policies, templates and payloads fit their services' limits, for the longest names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.k8s.render import Manifest
from tests.cloudformation import Resources, iam_size
from tests.configuration import with_values
from tests.synth import ROOT, charts_of, stacks_of

LIMITS = yaml.safe_load((ROOT / "tests/expected/limits.yaml").read_text())
LONGEST = "v" * 99
REGIONS: dict[str, tuple[str, str, str | None]] = {
    # region: partition, a second zone, account
    "ap-northeast-2": ("aws", "c", None),
    "us-gov-west-1": ("aws-us-gov", "b", "123456789012"),
    "cn-northwest-1": ("aws-cn", "b", None),
}
FUNCTIONS = ("Ref", "Fn::GetAtt", "Fn::GetStackOutput", "Fn::ImportValue", "Fn::Select")

Body = dict[str, Any]


@dataclass(frozen=True)
class Deployed:
    """A deployment with a name of 100 characters."""

    partition: str
    region: str
    stacks: dict[str, str]
    templates: dict[str, Body]
    bodies: dict[str, str]
    manifests: list[Manifest]


@cache
def deployed(region: str, last: str = "a") -> Deployed:
    """Return a deployment whose name differs from others in its last character alone."""
    partition, zone, account = REGIONS[region]
    config = Configuration.model_validate(
        with_values(
            ("deployment.name", LONGEST + last),
            ("deployment.region", region),
            *([("deployment.account", account)] if account else []),
            ("network.zones", [f"{region}a", f"{region}{zone}"]),
            ("tags", {"k" * 127: "v" * 256}),
            # Twice the node groups, and the longest drains.
            ("nodes.upgrade", "replaceGroup"),
            ("nodes.generations", [9998, 9999]),
            ("drain.maxStreamSeconds", 3600),
        )
    )
    stacks = vars(stacks_of(config))
    root: Any = next(iter(stacks.values())).node.root
    assembly = root.synth()
    return Deployed(
        partition=partition,
        region=region,
        stacks={name: stack.stack_name for name, stack in stacks.items()},
        templates={name: Template.from_stack(stack).to_json() for name, stack in stacks.items()},
        bodies={
            name: Path(assembly.get_stack_by_name(stack.stack_name).template_full_path).read_text()
            for name, stack in stacks.items()
        },
        manifests=[manifest for chart in charts_of(config) for manifest in chart.manifests],
    )


@pytest.fixture(
    params=[
        "ap-northeast-2",
        pytest.param("cn-northwest-1", marks=pytest.mark.synth),
        pytest.param("us-gov-west-1", marks=pytest.mark.synth),
    ]
)
def long(request: pytest.FixtureRequest) -> Deployed:
    """Deployments in regions with long names and other partitions."""
    return deployed(request.param)


def resources(one: Deployed) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Give logical id, type and resolved properties of every resource."""
    for template in one.templates.values():
        read = Resources(template, partition=one.partition, region=one.region)
        for name, resource in template["Resources"].items():
            yield name, resource["Type"], read.properties(name)


def names(templates: dict[str, Body], read: Deployed) -> Iterator[tuple[str, str, str]]:
    """Give type, property and value of every physical name that is not left to CloudFormation."""
    for template in templates.values():
        pseudo = Resources(template, partition=read.partition, region=read.region)
        for resource in template["Resources"].values():
            kind = resource["Type"]
            if kind.startswith("Custom::"):
                continue
            for key, value in resource.get("Properties", {}).items():
                reference = isinstance(value, dict) and set(value) <= set(FUNCTIONS)
                others = LIMITS["names_of_others"].get(kind, ())
                if key.endswith("Name") and not reference and key not in others:
                    yield kind, key, str(pseudo.resolve(value))


def misfits(found: Iterator[tuple[str, str, str]]) -> list[str]:
    """Return what is wrong with names, one line each."""
    wrong = []
    for kind, key, name in found:
        limit = LIMITS["names"].get(kind, {}).get(key)
        if limit is None:
            wrong.append(f"{kind}.{key} is not in tests/expected/limits.yaml: {name}")
        elif len(name) > limit["longest"] or not re.fullmatch(limit["pattern"], name):
            wrong.append(f"{kind}.{key}: {name} ({len(name)} characters)")
    return wrong


def test_names_fit(long: Deployed) -> None:
    found = list(names(long.templates, long))
    assert misfits(iter(found)) == []
    literal = {kind for kind, _, name in found if name.startswith("v" * 20)}
    assert literal >= {
        "AWS::EKS::Cluster",
        "AWS::ECR::Repository",
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "AWS::IAM::InstanceProfile",
        "AWS::SQS::Queue",
    }, "the names that hold the deployment's own"


@pytest.mark.parametrize(
    ("queue_name", "wrong"), [("q" * 80, 0), ("q" * 81, 1), ("q.q", 1), (None, 0)]
)
def test_a_name_that_does_not_fit_is_found(queue_name: str | None, wrong: int) -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    sqs.CfnQueue(stack, "Queue", queue_name=queue_name)
    templates = {"stack": Template.from_stack(stack).to_json()}
    assert len(misfits(names(templates, deployed("ap-northeast-2")))) == wrong


def test_a_name_of_an_unknown_kind_is_found() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    cdk.CfnResource(stack, "X", type="AWS::Any::Thing", properties={"ThingName": "x"})
    templates = {"stack": Template.from_stack(stack).to_json()}
    (line,) = misfits(names(templates, deployed("ap-northeast-2")))
    assert "AWS::Any::Thing.ThingName" in line


@pytest.mark.synth
def test_names_that_are_cut_stay_apart() -> None:
    region = "us-gov-west-1"
    one, other = deployed(region), deployed(region, "b")
    taken = set(names(one.templates, one))
    own = {name for name in taken if name[2].startswith("v" * 20)}
    assert own
    assert own & set(names(other.templates, other)) == set()
    assert not set(one.stacks.values()) & set(other.stacks.values())


def test_templates_fit(long: Deployed) -> None:
    limit = LIMITS["cloudformation"]
    for name, template in long.templates.items():
        assert len(long.stacks[name]) <= limit["stack_name"]
        assert len(template["Description"]) <= limit["description"]
        assert len(long.bodies[name].encode()) <= limit["template_bytes"]
        assert len(template["Resources"]) <= limit["resources"]
        outputs = template.get("Outputs", {})
        assert len(outputs) <= limit["outputs"]
        assert all(len(key) <= limit["output_key"] for key in outputs)
        assert all(len(key) <= limit["logical_id"] for key in template["Resources"])
        assert not any("Export" in output for output in outputs.values())


def test_payloads_fit(long: Deployed) -> None:
    sizes = [
        len(str(properties["Manifest"]).encode())
        for _, kind, properties in resources(long)
        if kind == "Custom::AWSCDK-EKS-KubernetesResource"
    ]
    # A tenth is left for the rest of the event.
    assert 0 < max(sizes) <= LIMITS["payload_bytes"] * 0.9


def test_policies_fit(long: Deployed) -> None:
    limit = LIMITS["iam"]
    inline: dict[str, int] = {}
    seen = set()
    for name, kind, properties in resources(long):
        if kind == "AWS::IAM::ManagedPolicy":
            assert iam_size(properties["PolicyDocument"]) <= limit["managed_policy"], name
        elif kind == "AWS::IAM::Policy":
            for role in properties["Roles"]:
                role_id = role.removeprefix("ref-")
                size = iam_size(properties["PolicyDocument"])
                inline[role_id] = inline.get(role_id, 0) + size
        elif kind == "AWS::IAM::Role":
            trust = iam_size(properties["AssumeRolePolicyDocument"])
            assert trust <= limit["trust_policy"], name
            assert (
                len(properties.get("ManagedPolicyArns", []))
                <= (limit["managed_policies_of_a_role"])
            )
            own = [iam_size(policy["PolicyDocument"]) for policy in properties.get("Policies", [])]
            inline[name] = inline.get(name, 0) + sum(own)
        elif kind in LIMITS["resource_policies"]:
            document = next(
                (properties[key] for key in ("PolicyDocument", "KeyPolicy") if key in properties),
                {},
            )
            assert iam_size(document) <= LIMITS["resource_policies"][kind], name
        seen.add(kind)
    assert max(inline.values()) <= limit["inline_policies_of_a_role"], inline
    assert seen >= {"AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::S3::BucketPolicy"}


def test_user_data_and_tags_fit(long: Deployed) -> None:
    limit = LIMITS["tags"]
    tagged = templates = 0
    for name, kind, properties in resources(long):
        lists = [properties["Tags"]] if isinstance(properties.get("Tags"), list) else []
        if kind == "AWS::EC2::LaunchTemplate":
            data = properties["LaunchTemplateData"]
            assert len(data["UserData"].encode()) <= LIMITS["user_data_bytes"]
            lists += [specification["Tags"] for specification in data["TagSpecifications"]]
            templates += 1
        for tags in lists:
            assert len(tags) <= limit["of_a_resource"], name
            for tag in tags:
                assert 0 < len(tag["Key"]) <= limit["key"], name
                assert len(tag["Value"]) <= limit["value"], name
                tagged += 1
    assert tagged > 100
    assert templates == 6, "two generations of three node groups"


def test_kubernetes_names_and_labels_fit(long: Deployed) -> None:
    limit = LIMITS["kubernetes"]

    def labels(value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("labels", "matchLabels") and isinstance(inner, dict):
                    yield from inner.items()
                else:
                    yield from labels(inner)
        elif isinstance(value, list):
            for item in value:
                yield from labels(item)

    found = [pair for manifest in long.manifests for pair in labels(manifest)]
    assert len(found) > 100
    for key, value in found:
        assert len(key.rpartition("/")[2]) <= limit["label_name"]
        assert len(value) <= limit["label_value"]
        assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?", value), (key, value)
    for manifest in long.manifests:
        assert len(manifest["metadata"]["name"]) <= limit["object_name"]
