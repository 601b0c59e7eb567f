"""What an upgrade changes in the templates, and what it leaves alone."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.config.kubernetes import ADDONS
from tests.cloudformation import Resources
from tests.configuration import with_values
from tests.synth import stacks_of

ADDON = "AWS::EKS::Addon"
NODE_GROUP = "AWS::EKS::Nodegroup"
POOLS = ("system", "serving", "gpu")
Changes = tuple[tuple[str, Any], ...]

PINS = {"kube-proxy": "v1.35.3-eksbuild.13", "coredns": "v1.13.2-eksbuild.4"}
REPLACED: Changes = (("nodes.upgrade", "replaceGroup"), ("drain.maxStreamSeconds", 3600))
# What makes EKS replace the nodes of a group that it may update.
NEWER: Changes = (
    ("nodes.system.instanceType", "m6i.xlarge"),
    ("nodes.serving.rootVolumeGib", 100),
    ("nodes.gpu.instanceType", "g6.2xlarge"),
    ("tags", {"team": "voice"}),
)


@cache
def _cluster_of(changes: str) -> Resources:
    config = Configuration.model_validate(with_values(*json.loads(changes)))
    return Resources(Template.from_stack(stacks_of(config).cluster))


def cluster(*changes: tuple[str, Any]) -> Resources:
    """Return the cluster stack of a configuration; the same changes give the same stack."""
    return _cluster_of(json.dumps(changes))


def groups(resources: Resources, generation: int | None = None) -> dict[str, dict[str, Any]]:
    """Return the node groups by pool, of one generation where there are several."""
    return {
        group["Labels"]["sonic-eks/pool"]: group | {"id": name}
        for name in resources.ids(NODE_GROUP)
        for group in [resources.properties(name)]
        if generation is None or group["Labels"]["sonic-eks/generation"] == str(generation)
    }


@pytest.mark.synth
def test_addons_are_pinned_where_the_configuration_says_so() -> None:
    addons = cluster(("cluster.addonVersions", PINS)).by(ADDON, "AddonName")
    assert {name: a.get("AddonVersion") for name, a in addons.items()} == {
        name: PINS.get(name) for name in addons
    }
    assert set(addons) == set(ADDONS), "each of them can be pinned, and no other"


@pytest.mark.synth
def test_every_addon_can_be_pinned() -> None:
    pins = {name: f"v1.35.0-eksbuild.{number}" for number, name in enumerate(ADDONS)}
    addons = cluster(("cluster.addonVersions", pins)).by(ADDON, "AddonName")
    assert {name: a["AddonVersion"] for name, a in addons.items()} == pins


def test_rolling_groups_follow_the_cluster_and_their_template() -> None:
    resources = cluster()
    for group in groups(resources).values():
        assert group["Version"] == "1.35"
        template = group["LaunchTemplate"]["Id"].removeprefix("ref-")
        assert group["LaunchTemplate"]["Version"] == f"att-{template}-LatestVersionNumber"
        assert "sonic-eks/generation" not in group["Labels"]


@pytest.mark.synth
@pytest.mark.parametrize("generations", [[1], [1, 2]])
def test_replaced_groups_are_never_updated_in_place(generations: list[int]) -> None:
    before = groups(cluster(*REPLACED, ("nodes.generations", [1])), 1)
    after = groups(cluster(*REPLACED, *NEWER, ("nodes.generations", generations)), 1)
    assert set(before) == set(after) == set(POOLS)
    for pool in POOLS:
        # Tags change without an update of the nodes.
        assert before[pool] | {"Tags": None} == after[pool] | {"Tags": None}
        # Without a version EKS leaves the group on the one that it was made with; the first
        # version of a launch template never changes.
        assert "Version" not in after[pool]
        assert "ReleaseVersion" not in after[pool]
        assert after[pool]["LaunchTemplate"]["Version"] == "1"


@pytest.mark.synth
def test_a_new_generation_stands_beside_the_old_one() -> None:
    resources = cluster(*REPLACED, *NEWER, ("nodes.generations", [1, 2]))
    old, new = groups(resources, 1), groups(resources, 2)
    assert set(old) == set(new) == set(POOLS)
    for pool in POOLS:
        assert old[pool]["id"] != new[pool]["id"]
        assert old[pool]["LaunchTemplate"]["Id"] != new[pool]["LaunchTemplate"]["Id"]
        assert new[pool]["LaunchTemplate"]["Version"] == "1"
        for same in ("Subnets", "Taints", "ScalingConfig", "NodeRole", "AmiType"):
            assert old[pool].get(same) == new[pool].get(same)
    launch = resources.properties(new["gpu"]["LaunchTemplate"]["Id"].removeprefix("ref-"))
    assert launch["LaunchTemplateData"]["InstanceType"] == "g6.2xlarge"
    # What needs nodes waits for those that stay.
    ids = resources.id_by(ADDON, "AddonName")
    assert new["system"]["id"] in resources.needs(ids["coredns"])


@pytest.mark.synth
def test_an_old_generation_goes_alone() -> None:
    both = cluster(*REPLACED, *NEWER, ("nodes.generations", [1, 2]))
    after = cluster(*REPLACED, *NEWER, ("nodes.generations", [2]))
    gone = set(both.template["Resources"]) - set(after.template["Resources"])
    old = groups(both, 1).values()
    templates = {group["LaunchTemplate"]["Id"].removeprefix("ref-") for group in old}
    assert gone == {group["id"] for group in old} | templates
    kept = after.template["Resources"]
    changed = {n for n, resource in kept.items() if resource != both.template["Resources"][n]}
    assert {kept[name]["Type"] for name in changed} <= {ADDON, "Custom::AWSCDK-EKS-HelmChart"}
    for name in changed:
        # In what they wait for, and in nothing that CloudFormation would act on.
        properties = both.template["Resources"][name]["Properties"]
        assert kept[name]["Properties"] == properties
