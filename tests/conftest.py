"""Set-up that every test shares."""

from __future__ import annotations

import gc
import os

# Before aws_cdk is imported: CDK's own template validation costs 5 s a process and one test of
# the whole app keeps it; jsii's notice about the Node release is not what a test reads.
os.environ.setdefault("CDK_VALIDATION", "false")
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("CDK_DISABLE_STACK_TRACE", "1")

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

# The CDK is imported where it is used: the process that hands out the tests needs none of it.
if TYPE_CHECKING:
    from aws_cdk.assertions import Template

    from sonic_eks.config import Configuration
    from sonic_eks.k8s.render import RenderedChart
    from sonic_eks.stacks.deployment import Stacks

# No dice, and no limit of time: a failure in a pipeline is one on every desk, and what a busy
# machine makes slow is no fault. Some values are those of constants in the modules that are loaded,
# so that examples still differ a little between a whole run and a part of it.
settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """Spare the collector the tests themselves, which stay to the end: a twentieth of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def default_config() -> Configuration:
    """config/default.yaml."""
    from sonic_eks.config import load_configuration
    from tests.synth import ROOT

    return load_configuration(ROOT / "config" / "default.yaml")


@pytest.fixture(scope="session")
def default_charts(default_config: Configuration) -> tuple[RenderedChart, ...]:
    """The rendered charts of config/default.yaml."""
    from tests.synth import charts_of

    return charts_of(default_config)


@pytest.fixture(scope="session")
def stacks(default_config: Configuration) -> Stacks:
    """The stacks of config/default.yaml, in one app for all tests."""
    from tests.synth import stacks_of

    return stacks_of(default_config)


@pytest.fixture(scope="session")
def templates(stacks: Stacks) -> dict[str, Template]:
    """Template by stack, under the attribute names of `Stacks`."""
    from aws_cdk.assertions import Template

    return {name: Template.from_stack(stack) for name, stack in stacks.by_name.items()}
