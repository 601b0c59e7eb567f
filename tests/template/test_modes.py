"""The configurations of the project as wholes: what each promises, across all its stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
import yaml
from cfnlint import api as cfn_lint
from cfnlint.config import ManualArgs

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.names import STACKS
from tests.cloudformation import Resources
from tests.synth import ROOT, changed, stacks_of

# Six whole deployments with cdk-nag and cfn-lint.
pytestmark = pytest.mark.slow

FILES = ["default", "isolated", "existing-vpc", "production", "standalone", "smoke"]
OTHERS = [name for name in FILES if name != "default"]


@dataclass(frozen=True, eq=False)
class Mode:
    """A synthesized configuration."""

    config: Configuration
    folder: Path
    finding: str

    @property
    def name(self) -> str:
        return self.config.deployment.name

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text())
        return found

    def body(self, stack: str) -> str:
        return (self.folder / f"{self.name}-{stack}.template.json").read_text()

    @cache  # noqa: B019 (a handful of modes, as long as the tests run)
    def resources(self, stack: str) -> Resources:
        return Resources(json.loads(self.body(stack)))

    def of(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the properties of every resource of a type, with its stack."""
        for stack in STACKS:
            for properties in self.resources(stack).of(kind):
                yield stack, properties


def synthesize(config: Configuration, folder: Path) -> Mode:
    """Synthesize with cdk-nag, as app.py does; what it refuses is kept for a test."""
    app = stacks_of(config, outdir=folder).network.node.root
    assert isinstance(app, cdk.App)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    finding = ""
    try:
        app.synth()
    except RuntimeError as error:
        finding = str(error)
    return Mode(config, folder, finding)


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Mode]:
    return {
        name: synthesize(
            load_configuration(ROOT / "config" / f"{name}.yaml"), tmp_path_factory.mktemp(name)
        )
        for name in FILES
    }


@pytest.fixture
def mode(request: pytest.FixtureRequest, modes: dict[str, Mode]) -> Mode:
    return modes[request.param]


every = pytest.mark.parametrize("mode", FILES, indirect=True)


def test_these_are_all_the_configurations() -> None:
    assert {path.stem for path in (ROOT / "config").glob("*.yaml")} == set(FILES)


@every
def test_nothing_is_unexplained(mode: Mode) -> None:
    assert mode.finding == ""
    assert (mode.folder / "validation-report.json").exists()


@every
def test_nothing_is_looked_up(mode: Mode) -> None:
    assert "missing" not in mode.manifest
    for stack in STACKS:
        assert "dummy" not in mode.body(stack)


@every
def test_the_cluster_waits_for_endpoints_and_images(mode: Mode) -> None:
    artifacts = mode.manifest["artifacts"]
    needed: set[str] = set()
    waiting = [f"{mode.name}-cluster"]
    while waiting:
        new = set(artifacts[waiting.pop()].get("dependencies", ())) - needed
        needed |= new
        waiting += new
    assert {f"{mode.name}-network", f"{mode.name}-registry"} <= needed


@every
def test_control_plane_spans_zones(mode: Mode) -> None:
    ((_, cluster),) = mode.of("AWS::EKS::Cluster")
    subnets = cluster["ResourcesVpcConfig"]["SubnetIds"]
    assert len(set(subnets)) == len(mode.config.network.zones) >= 2
    assert cluster["ResourcesVpcConfig"]["EndpointPublicAccess"] is False


@every
def test_every_role_may_be_bounded(mode: Mode) -> None:
    boundary = mode.config.deployment.permissions_boundary_arn
    roles = [properties for _, properties in mode.of("AWS::IAM::Role")]
    assert len(roles) > 10
    assert {role.get("PermissionsBoundary") for role in roles} == {boundary}


@every
def test_every_stack_is_protected_as_configured(mode: Mode) -> None:
    artifacts = mode.manifest["artifacts"]
    for stack in STACKS:
        properties = artifacts[f"{mode.name}-{stack}"]["properties"]
        protected = mode.config.deployment.termination_protection
        assert properties.get("terminationProtection", False) is protected


@every
def test_internet_gateways_and_nat_are_where_they_may_be(mode: Mode) -> None:
    may = mode.config.network.existing is None and mode.config.network.egress == "system"
    for kind in ("InternetGateway", "NatGateway", "EIP"):
        assert len(list(mode.of(f"AWS::EC2::{kind}"))) == int(may), kind


@every
def test_every_tagged_resource_carries_the_tags(mode: Mode) -> None:
    wanted = {"sonic-eks:deployment": mode.name, **mode.config.tags}
    tagged = 0
    for stack in STACKS:
        resources = mode.resources(stack)
        for name, resource in resources.template["Resources"].items():
            tags = resource.get("Properties", {}).get("Tags")
            pairs = {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else tags
            if resource["Type"] == "AWS::EC2::PlacementGroup":
                # Its tags are create-only (CloudFormation): a change would replace the group.
                assert pairs == {"sonic-eks:deployment": mode.name}
            elif pairs is not None:
                assert pairs.items() >= wanted.items(), f"{stack}: {name}"
                tagged += 1
    assert tagged > 30


def test_production_asks_for_all_that_it_may(modes: dict[str, Mode]) -> None:
    config = modes["production"].config
    assert len(config.network.zones) == 3
    assert config.deployment.account
    assert config.deployment.termination_protection
    assert config.deployment.permissions_boundary_arn
    assert config.nodes.gpu.base_reservation_id
    assert config.tags


def test_production_serves_tls_under_its_name_and_by_private_link(modes: dict[str, Mode]) -> None:
    mode = modes["production"]
    ((_, listener),) = mode.of("AWS::ElasticLoadBalancingV2::Listener")
    assert listener["Protocol"] == "TLS"
    assert listener["Certificates"] == [{"CertificateArn": mode.config.edge.certificate_arn}]
    ((_, permissions),) = mode.of("AWS::EC2::VPCEndpointServicePermissions")
    assert permissions["AllowedPrincipals"] == ["arn:aws:iam::444455556666:root"]
    ((_, record),) = mode.of("AWS::Route53::RecordSet")
    assert record["Name"] == "sonic.voice.internal."


def test_production_alarms_somebody(modes: dict[str, Mode]) -> None:
    mode = modes["production"]
    alarms = [properties for _, properties in mode.of("AWS::CloudWatch::Alarm")]
    assert alarms
    for alarm in alarms:
        assert alarm["AlarmActions"] == [mode.config.observability.alarm_topic_arn]


def test_production_uses_its_reservation(modes: dict[str, Mode]) -> None:
    templates = [
        properties["LaunchTemplateData"]
        for _, properties in modes["production"].of("AWS::EC2::LaunchTemplate")
    ]
    reserved = [
        data["CapacityReservationSpecification"]["CapacityReservationTarget"]
        for data in templates
        if "CapacityReservationSpecification" in data
    ]
    assert reserved == [{"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}]


def test_nodes_are_in_the_subnets_of_an_existing_vpc(modes: dict[str, Mode]) -> None:
    groups = [
        properties["Subnets"] for _, properties in modes["existing-vpc"].of("AWS::EKS::Nodegroup")
    ]
    subnet = "subnet-0a1b2c3d4e5f6000"
    assert sorted(groups) == [[f"{subnet}1", f"{subnet}2"], [f"{subnet}3"], [f"{subnet}4"]]


def test_karpenter_launches_into_the_subnets_of_an_existing_vpc(modes: dict[str, Mode]) -> None:
    body = modes["existing-vpc"].body("workload")
    used = set(re.findall(r"subnetSelectorTerms[^]]*?(subnet-[0-9a-f]+)", body))
    assert used == {"subnet-0a1b2c3d4e5f60003", "subnet-0a1b2c3d4e5f60004"}


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["network", "weights", "cluster", "edge", "observability"])
@pytest.mark.parametrize("mode", OTHERS, indirect=True)
def test_cfn_lint_finds_only_what_is_explained(mode: Mode, stack: str) -> None:
    entries = yaml.safe_load((ROOT / "tests" / "expected" / "cfn_lint.yaml").read_text())
    accepted = {(entry["rule"], entry["resource"]) for entry in entries if entry["stack"] == stack}
    body = mode.body(stack)
    # cfn-lint 1.58 does not know that Fn::GetStackOutput, like Fn::ImportValue, gives a string.
    known = re.sub(r'\{\s*"Fn::GetStackOutput": \{[^}]*\}\s*\}', '{"Fn::ImportValue": "x"}', body)
    resources = json.loads(body)["Resources"]
    found = cfn_lint.lint(known, config=ManualArgs(regions=["us-east-1"]))
    seen = {
        (match.rule.id, resources[str(match.path[1])]["Type"] if len(match.path) > 1 else "")
        for match in found
    }
    assert seen <= accepted, "\n".join(str(match) for match in found)


# What two deployments may not both have: physical names, by property. A private hosted zone has an
# id of its own, and each VPC resolves its own zone of a name.
NAMES = {
    "BucketName", "ClusterName", "DashboardName", "FunctionName", "GroupName",
    "InstanceProfileName", "LaunchTemplateName", "LogGroupName", "ManagedPolicyName", "Name",
    "NodegroupName", "QueueName", "RepositoryName", "RoleName", "RuleName", "AliasName",
}  # fmt: skip
NOT_NAMES = ("AWS::EKS::AccessEntry", "AWS::EKS::Addon", "AWS::Route53::", "Custom::")


def names_of(mode: Mode) -> set[str]:
    """Return the literal physical names in all stacks."""
    found = set()
    for stack in STACKS:
        for resource in mode.resources(stack).template["Resources"].values():
            kind = resource["Type"]
            for key, name in resource.get("Properties", {}).items():
                reference = key == "ClusterName" and kind != "AWS::EKS::Cluster"
                owns = key in NAMES and not kind.startswith(NOT_NAMES) and not reference
                if owns and isinstance(name, str):
                    found.add(f"{kind} {name}")
    return found


@every
def test_a_second_deployment_shares_no_physical_name(mode: Mode, tmp_path: Path) -> None:
    name = f"{mode.name}-2"
    other = synthesize(changed(mode.config, deployment={"name": name}), tmp_path)
    ours = names_of(mode)
    assert len(ours) > 10
    assert ours & names_of(other) == set()


def test_no_two_configurations_share_a_physical_name(modes: dict[str, Mode]) -> None:
    names = [name for mode in modes.values() for name in names_of(mode)]
    assert len(names) == len(set(names))


def test_two_deployments_may_share_a_vpc(modes: dict[str, Mode], tmp_path: Path) -> None:
    """The second finds the first one's endpoints: a private DNS name exists once in a VPC."""
    first = modes["existing-vpc"]
    existing = first.config.network.existing
    assert existing is not None
    made = {
        properties["ServiceName"].split("us-east-1.")[1]
        for _, properties in first.of("AWS::EC2::VPCEndpoint")
    }
    second = changed(
        first.config,
        deployment={"name": "second"},
        network={"existing": {"endpoints": sorted({*existing.endpoints, *made})}},
    )
    assert list(synthesize(second, tmp_path).of("AWS::EC2::VPCEndpoint")) == []
