"""Physical names keep within their services' limits and keep two deployments apart."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonic_eks.names import (
    INSTANCE_PROFILE_LIMIT,
    LOAD_BALANCER_LIMIT,
    SQS_QUEUE_LIMIT,
    Names,
    karpenter_instance_profile,
    physical_name,
)
from tests.expected.config_values import NAME_LIMITS, STACK_NAME_LIMIT

parts = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=120)


def all_names(deployment: str) -> dict[str, str]:
    """Every physical name by what it names; stacks by their own names."""
    values = dict(vars(Names(deployment)))
    values["karpenter_instance_profile"] = karpenter_instance_profile(deployment, "us-east-1")
    return {**values.pop("stacks"), **values}


def test_the_limits_are_the_documented_ones() -> None:
    assert NAME_LIMITS["load_balancer"] == LOAD_BALANCER_LIMIT
    assert NAME_LIMITS["karpenter_instance_profile"] == INSTANCE_PROFILE_LIMIT
    assert NAME_LIMITS["karpenter_queue"] == SQS_QUEUE_LIMIT


def test_the_load_balancer_of_the_default_deployment_is_its_edge() -> None:
    assert Names("sonic").load_balancer == "sonic-edge"


@pytest.mark.parametrize("deployment", ["voice", "v" * 100])
def test_the_instance_profile_of_one_deployment_in_two_regions_is_not_the_same(
    deployment: str,
) -> None:
    # IAM user guide, "IAM and AWS STS quotas": names are unique in an account, not in a region.
    names = {
        karpenter_instance_profile(deployment, region) for region in ("us-east-1", "us-west-2")
    }
    assert len(names) == 2


def test_a_short_name_is_its_parts() -> None:
    assert physical_name("voice", "gpu") == "voice-gpu"
    assert physical_name("voice") == "voice"


@pytest.mark.parametrize("length", [31, 32, 33, 100])
def test_only_a_name_over_the_limit_is_cut(length: int) -> None:
    whole = "v" * length
    name = physical_name(whole, limit=32)
    assert (name == whole) is (length <= 32)
    assert len(name) <= 32


def test_a_cut_name_does_not_double_the_hyphen() -> None:
    name = physical_name("v" * 22 + "-" + "w" * 22, limit=32)
    assert "--" not in name
    assert name.startswith("v" * 22 + "-")


@settings(max_examples=200)
@given(st.lists(parts, min_size=1, max_size=3), st.sampled_from(sorted(NAME_LIMITS.values())))
def test_names_fit_and_are_well_formed(words: list[str], limit: int) -> None:
    name = physical_name(*words, limit=limit)
    assert 1 <= len(name) <= limit
    assert not name.startswith("-")
    assert not name.endswith("-")
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-")
    assert name == physical_name(*words, limit=limit)


@pytest.mark.parametrize("tail", ["a", "ab", "z9"])
def test_long_deployments_with_one_beginning_stay_apart(tail: str) -> None:
    first, second = "v" * 90 + "-x", "v" * 90 + f"-{tail}"
    ours, theirs = all_names(first), all_names(second)
    assert ours.keys() == theirs.keys()
    assert ours.keys() >= NAME_LIMITS.keys()
    for what in ours:
        assert ours[what] != theirs[what], what


@pytest.mark.parametrize("deployment", ["a", "sonic", "voice-eu-2", "v" * 100])
def test_every_name_starts_with_the_deployment_and_fits(deployment: str) -> None:
    for what, name in all_names(deployment).items():
        assert len(name) <= NAME_LIMITS.get(what, STACK_NAME_LIMIT), what
        assert name.startswith(deployment[:20]), what
        assert not name.startswith("internal-"), "CreateLoadBalancer refuses it"


def test_names_of_one_kind_differ_between_deployments_that_extend_each_other() -> None:
    for other in ("voice-gpu", "voice-karpenter", "voice-edge", "voice-karpenter-node-us-east-1"):
        theirs = all_names(other)
        for what, name in all_names("voice").items():
            assert name != theirs[what]
