"""Cost: sums by hand, what is not priced, what is old."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonic_eks.config import Configuration, load_configuration
from sonic_eks.plan.cost import endpoint_count, has_nat_gateway, items, not_priced, total
from sonic_eks.plan.fleet import Fleet, least, most
from sonic_eks.plan.prices import PriceList, Prices, shipped_prices
from sonic_eks.plan.sections import Context, Section, sections
from tests.configuration import load, with_values
from tests.synth import ROOT

# Round figures, so that every sum below can be done in one's head.
PRICES = {
    "sheets": [
        {
            "region": "us-east-1",
            "dated": "2026-11-01",
            "source": "agreement",
            "instanceHour": {"g6e.2xlarge": 2.0, "g6e.12xlarge": 9.0, "m7i.xlarge": 0.25},
            "hour": {
                "eksCluster": 0.1,
                "natGateway": 0.05,
                "publicIpv4": 0.01,
                "networkLoadBalancer": 0.02,
                "interfaceEndpoint": 0.01,
            },
            "gbMonth": {"gp3": 0.073, "lustre250": 0.146},
        }
    ]
}
TODAY = date(2026, 11, 30)


def context(config: Configuration, prices: dict[str, Any] = PRICES) -> Context:
    return Context(
        config, PriceList(config.deployment.region, Prices.model_validate(prices)), TODAY
    )


def cost_of(given: Context) -> Section:
    return sections(given)["cost"]


def test_sums_of_the_default_by_hand(tmp_path: Path) -> None:
    """Two workers at least, eight at most, and a GPU of headroom; 730 hours a month.

    GPU nodes: 3 or 9 at 2.00, and 200 GB each at 0.073 / 730 = 0.0001 an hour and GB: 0.02.
    The rest: 2 system and 3 serving nodes at 0.25 with 80 GB (0.008); cluster 0.10; balancer 0.02;
    11 endpoints in 2 zones at 0.01; NAT 0.06; 1200 GB of Lustre at 0.0002: 0.24.
    """
    lines = items(load(with_values(), tmp_path), context(load(with_values(), tmp_path)).prices)
    gpu = [line for line in lines if line.is_gpu]
    rest = [line for line in lines if not line.is_gpu]
    assert total(gpu) == pytest.approx((3 * 2.02, 9 * 2.02))
    fixed = 5 * 0.258 + 0.10 + 0.02 + 0.22 + 0.06 + 0.24
    assert total(rest) == pytest.approx((fixed, fixed))
    assert fixed == pytest.approx(1.93)
    assert total(lines) == pytest.approx((7.99, 20.11))
    assert not_priced(lines) == []


def test_the_section_says_the_sums(tmp_path: Path) -> None:
    data = cost_of(context(load(with_values(), tmp_path))).data
    assert data["gpuHoursPerMonth"] == {"trough": 2190, "peak": 6570}
    assert data["gpu"] == {
        "troughPerHour": 6.06,
        "peakPerHour": 18.18,
        "troughPerMonth": 4423.8,
        "complete": True,
    }
    assert data["all"]["troughPerMonth"] == 5832.7
    rows = {row[0]: row for row in cost_of(context(load(with_values(), tmp_path))).rows}
    assert rows["GPU nodes together"][4:] == ("6.060", "18.180", "4,424", "")
    assert rows["the rest together"][4:] == ("1.930", "1.930", "1,409", "")
    assert rows["all"][4:] == ("7.990", "20.110", "5,833", "")


FLEETS: dict[str, tuple[list[tuple[str, Any]], Fleet, Fleet]] = {
    "default": (
        [],
        Fleet(gpu=3, gpus=3, serving=3, system=2),
        Fleet(gpu=9, gpus=9, serving=3, system=2),
    ),
    "no headroom": (
        [("scaling.headroomGpus", 0)],
        Fleet(gpu=2, gpus=2, serving=3, system=2),
        Fleet(gpu=8, gpus=8, serving=3, system=2),
    ),
    "headroom beyond the limit": (
        [("scaling.headroomGpus", 5), ("nodes.gpu.maxNodes", 9)],
        Fleet(gpu=7, gpus=7, serving=3, system=2),
        Fleet(gpu=9, gpus=9, serving=3, system=2),
    ),
    "a base larger than the workers": (
        [("nodes.gpu.baseSize", 6)],
        Fleet(gpu=6, gpus=6, serving=3, system=2),
        Fleet(gpu=9, gpus=9, serving=3, system=2),
    ),
    "four GPUs a node": (
        # 3 of 4 GPUs of a node at least, but two nodes always; 9 GPUs are on three.
        [("nodes.gpu.instanceType", "g6e.12xlarge")],
        Fleet(gpu=2, gpus=8, serving=3, system=2),
        Fleet(gpu=3, gpus=12, serving=3, system=2),
    ),
    "two generations of groups": (
        [("nodes.upgrade", "replaceGroup"), ("nodes.generations", [1, 2])],
        Fleet(gpu=4, gpus=4, serving=6, system=4),
        Fleet(gpu=9, gpus=9, serving=6, system=4),
    ),
    "the second base comes on top of the limit": (
        [
            ("nodes.upgrade", "replaceGroup"),
            ("nodes.generations", [1, 2]),
            ("scaling.headroomGpus", 5),
            ("nodes.gpu.maxNodes", 9),
        ],
        Fleet(gpu=7, gpus=7, serving=6, system=4),
        Fleet(gpu=11, gpus=11, serving=6, system=4),
    ),
    "more API pods than the serving nodes hold": (
        # 78 % of 4 vCPUs are 3120 millicores: three pods of 1000, with 20 each for their gates.
        [("api.maxReplicas", 12)],
        Fleet(gpu=3, gpus=3, serving=3, system=2),
        Fleet(gpu=9, gpus=9, serving=4, system=2),
    ),
    "more API pods at least, too": (
        [("api.minReplicas", 10), ("api.maxReplicas", 13)],
        Fleet(gpu=3, gpus=3, serving=4, system=2),
        Fleet(gpu=9, gpus=9, serving=5, system=2),
    ),
    # 60 + 2 sqrt(60) = 75.5 slots are 38 workers of 2, and 300 + 2 sqrt(300) = 334.6 are 168.
    # Spare: 10 a minute for 210 s are 35, 16 are free in the trough; 19 are 10 workers.
    "lower bounds below what the trough needs": (
        [
            (
                "models",
                [
                    {
                        "minReplicas": 2,
                        "traffic": {
                            "peakGenerations": 300,
                            "troughGenerations": 60,
                            "rampGenerationsPerMinute": 10,
                        },
                    }
                ],
            ),
            ("api.minReplicas", 2),
            ("scaling.generationsPerApiPod", 10),
        ],
        # 180 streams in pods of 10: 18, three a node; 900: 90 and one.
        Fleet(gpu=48, gpus=48, serving=6, system=2),
        Fleet(gpu=178, gpus=178, serving=31, system=2),
    ),
    # 100 generations are 300 streams: 30 pods of 10, of which 12 may run, three a node. Workers:
    # 100 + 2 sqrt(100) are 60 of two, and 400 + 40 are 220.
    "no more API pods in the trough than at the peak": (
        [
            ("models", [{"traffic": {"peakGenerations": 400, "troughGenerations": 100}}]),
            ("api.maxReplicas", 12),
            ("scaling.generationsPerApiPod", 10),
        ],
        Fleet(gpu=61, gpus=61, serving=4, system=2),
        Fleet(gpu=221, gpus=221, serving=4, system=2),
    ),
    # Nobody says what they carry, so the API has its three pods.
    "many workers without traffic": (
        [("models", [{"minReplicas": 200, "maxReplicas": 200}]), ("api.maxReplicas", 30)],
        Fleet(gpu=201, gpus=201, serving=3, system=2),
        Fleet(gpu=201, gpus=201, serving=10, system=2),
    ),
    # Two at least, but a reserve of 10 is five workers of two.
    "a reserve without traffic": (
        [("scaling.reserveGenerations", 10)],
        Fleet(gpu=6, gpus=6, serving=3, system=2),
        Fleet(gpu=9, gpus=9, serving=3, system=2),
    ),
    "a reserve of a model that may have no worker": (
        [("scaling.reserveGenerations", 10), ("models", [{"minReplicas": 0}])],
        Fleet(gpu=2, gpus=2, serving=3, system=2),
        Fleet(gpu=9, gpus=9, serving=3, system=2),
    ),
    "nobody at night": (
        [("models", [{"minReplicas": 0, "traffic": {"peakGenerations": 3}}])],
        Fleet(gpu=2, gpus=2, serving=3, system=2),
        # 3 + 2 sqrt(3) = 6.5: four workers of 2, and one to spare.
        Fleet(gpu=5, gpus=5, serving=3, system=2),
    ),
    "standing alone": (
        [("topology", "standalone"), ("models", [{"image": "sonic-server"}])],
        Fleet(gpu=3, gpus=3, serving=0, system=2),
        Fleet(gpu=9, gpus=9, serving=0, system=2),
    ),
    "two models": (
        [("models", [{"name": "a"}, {"name": "b", "maxReplicas": 4}]), ("nodes.gpu.maxNodes", 20)],
        Fleet(gpu=5, gpus=5, serving=3, system=2),
        Fleet(gpu=13, gpus=13, serving=3, system=2),
    ),
}


@pytest.mark.parametrize("case", FLEETS)
def test_nodes_at_trough_and_peak(tmp_path: Path, case: str) -> None:
    changes, low, high = FLEETS[case]
    config = load(with_values(*changes), tmp_path)
    assert (least(config), most(config)) == (low, high)


def test_a_stand_in_has_no_gpu_hours() -> None:
    config = load_configuration(ROOT / "config" / "smoke.yaml")
    assert (least(config).gpu, least(config).gpus, most(config).gpus) == (3, 0, 0)
    section = cost_of(context(config))
    assert section.data["gpuHoursPerMonth"] == {"trough": 0, "peak": 0}
    assert not any("GPU" in cell for row in section.rows for cell in row)
    assert not any("GPU-hours" in note for note in section.notes)


# docs/networking.md: eleven services have an interface endpoint, S3 has a gateway.
@pytest.mark.parametrize(
    ("name", "endpoints", "nat"),
    [
        ("default", 22, True),
        ("isolated", 22, False),
        ("production", 33, True),
        ("existing-vpc", 14, False),  # four of them are there; its owner has the way out
    ],
)
def test_what_the_network_is_billed_for(name: str, endpoints: int, nat: bool) -> None:
    config = load_configuration(ROOT / "config" / f"{name}.yaml")
    assert endpoint_count(config) == endpoints
    assert has_nat_gateway(config) is nat
    names = [line.name for line in items(config, context(config).prices)]
    assert ("NAT gateway" in names) is nat


def test_an_endpoint_in_fewer_zones_costs_less(tmp_path: Path) -> None:
    config = load(with_values(("network.endpointZones", {"sqs": ["us-east-1b"]})), tmp_path)
    assert endpoint_count(config) == 21


def without(*names: str) -> dict[str, Any]:
    (sheet,) = PRICES["sheets"]
    kept = {
        key: {name: usd for name, usd in value.items() if name not in names}
        if isinstance(value, dict)
        else value
        for key, value in sheet.items()
    }
    return {"sheets": [kept]}


def test_what_is_not_priced_is_named_and_in_no_sum(tmp_path: Path) -> None:
    config = load(with_values(), tmp_path)
    section = cost_of(context(config, without("lustre250", "natGateway")))
    lustre = "weights, 1200 GiB of Lustre at 250 MB/s for each TiB"
    assert section.data["notPriced"] == ["NAT gateway", lustre]
    assert section.data["all"]["troughPerHour"] == pytest.approx(7.99 - 0.24 - 0.05)
    assert section.data["all"]["complete"] is False
    rows = {row[0]: row for row in section.rows}
    assert rows[lustre][3:] == ("", "", "", "", "not priced")
    assert rows["all"][-1] == "without the 2 not priced"
    assert rows["GPU nodes together"][-1] == ""
    assert any(lustre in note and "--prices" in note for note in section.notes)


def test_an_unknown_gpu_price_leaves_the_gpu_sum_out(tmp_path: Path) -> None:
    config = load(with_values(), tmp_path)
    section = cost_of(context(config, without("g6e.2xlarge", "gp3")))
    rows = {row[0]: row for row in section.rows}
    assert rows["GPU nodes together"][4:] == ("", "", "", "not priced")
    assert section.data["gpu"]["complete"] is False


def test_a_region_without_prices_has_no_sums(tmp_path: Path) -> None:
    config = load(
        with_values(
            ("deployment.region", "eu-west-1"), ("network.zones", ["eu-west-1a", "eu-west-1b"])
        ),
        tmp_path,
    )
    section = cost_of(Context(config, PriceList("eu-west-1", shipped_prices()), TODAY))
    assert {row[-1] for row in section.rows} == {"not priced"}
    assert len(section.data["notPriced"]) == len(section.data["lines"]) == 12
    nothing = {"troughPerHour": None, "peakPerHour": None, "troughPerMonth": None}
    assert section.data["all"] == {**nothing, "complete": False}
    assert "no price of eu-west-1 is known; --prices FILE gives yours" in section.notes


def test_old_figures_are_marked_and_say_their_source(tmp_path: Path) -> None:
    config = load(with_values(), tmp_path)
    older = yaml.safe_load(yaml.safe_dump(PRICES))
    older["sheets"][0]["dated"] = "2025-11-29"
    section = cost_of(context(config, older))
    assert {row[-1] for row in section.rows} == {"[1], old", ""}
    assert "[1] 2025-11-29: agreement" in section.notes
    assert any(note.startswith("old: ") for note in section.notes)
    assert all(line["price"]["old"] for line in section.data["lines"])
    fresh = cost_of(context(config))
    assert {row[-1] for row in fresh.rows} == {"[1]", ""}
    assert not any(note.startswith("old: ") for note in fresh.notes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("nodes.gpu.baseReservationId", "cr-0a1b2c3d")], "used or not"),
        ([("nodes.gpu.reservationIds", ["cr-0a1b2c3d"])], "used or not"),
        ([("nodes.gpu.overflow.reservationIds", ["cr-0a1b2c3d"])], "used or not"),
        (
            [("nodes.gpu.overflow.spot", True), ("drain.maxStreamSeconds", 60)],
            "Spot nodes cost less",
        ),
    ],
)
def test_where_a_node_costs_something_else(
    tmp_path: Path, changes: list[tuple[str, Any]], said: str
) -> None:
    plain = cost_of(context(load(with_values(), tmp_path)))
    assert not any(said in note for note in plain.notes)
    given = cost_of(context(load(with_values(*changes), tmp_path)))
    assert any(said in note for note in given.notes)
