"""The deployments that are scheduled: config/*.yaml and those of the manifest tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.k8s.render import RenderedChart
from tests.manifests import deployments
from tests.manifests.scheduler.addons import Passed
from tests.manifests.scheduler.cluster import Order, pack, spread
from tests.manifests.scheduler.world import World
from tests.synth import ROOT, changed, charts_of

ORDERS: dict[str, Order] = {"spread": spread, "pack": pack}
FILES = sorted(path.stem for path in (ROOT / "config").glob("*.yaml"))
THREE_ZONES = "three-zones"

# Whatever a scheduler prefers, no pod may be left over: the files with both extremes, and the
# variations with the one that goes against every preference.
CASES = [
    *((f"{name}.yaml", order) for name in FILES for order in ORDERS),
    *((name, "pack") for name in sorted(deployments.DOCUMENTS)),
    *((THREE_ZONES, order) for order in ORDERS),
]


@cache
def configuration(name: str) -> Configuration:
    """Return a case's configuration."""
    if name.endswith(".yaml"):
        return load_configuration(Path(ROOT / "config" / name))
    if name == THREE_ZONES:
        zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
        return changed(
            deployments.configuration("default"),
            network={"zones": zones, "inferenceZone": "us-east-1b"},
        )
    return deployments.configuration(name)


@cache
def charts(name: str) -> tuple[RenderedChart, ...]:
    """Return a case's charts."""
    if name in deployments.DOCUMENTS:
        return deployments.charts(name)
    return charts_of(configuration(name))


def world(name: str, order: str, passed: Passed, *, at_maximum: bool = False) -> World:
    """Return a case's cluster with every pod placed."""
    return World(configuration(name), charts(name), passed, ORDERS[order], at_maximum=at_maximum)
