"""Karpenter's NodePools and EC2NodeClasses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType
from sonic_eks.k8s.render import Manifest
from tests.manifests.deployments import charts, configuration, kinds, manifests, one
from tests.synth import ROOT, changed, charts_of

EXPECTED = yaml.safe_load((ROOT / "tests/expected/nodes.yaml").read_text())["pools"]
POOLS = sorted(EXPECTED)
GPU_POOLS = ["gpu-burst", "gpu-overflow"]

Pod = dict[str, Any]


def pool(name: str, deployment: str = "default") -> Manifest:
    return one(deployment, "NodePool", name)["spec"]


def node_class(name: str, deployment: str = "default") -> Manifest:
    """Return the class that a pool refers to."""
    reference = pool(name, deployment)["template"]["spec"]["nodeClassRef"]
    assert (reference["group"], reference["kind"]) == ("karpenter.k8s.aws", "EC2NodeClass")
    return one(deployment, "EC2NodeClass", reference["name"])["spec"]


def names(deployment: str) -> set[str]:
    return {p["metadata"]["name"] for p in kinds(deployment, "NodePool")}


def requirements(name: str, deployment: str = "default") -> dict[str, list[str]]:
    given = pool(name, deployment)["template"]["spec"]["requirements"]
    assert {r["operator"] for r in given} == {"In"}
    return {r["key"]: r["values"] for r in given}


def reservations(name: str, deployment: str) -> list[str]:
    terms = node_class(name, deployment).get("capacityReservationSelectorTerms", [])
    return [term["id"] for term in terms]


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration[:-1])


def test_the_pools_of_the_default_deployment() -> None:
    assert names("default") == set(EXPECTED)


@pytest.mark.parametrize("name", POOLS)
def test_a_pool(name: str) -> None:
    expected, spec = EXPECTED[name], pool(name)
    template = spec["template"]
    assert template["metadata"]["labels"] == {"sonic-eks/pool": expected["label"]}
    assert spec["weight"] == expected["weight"]
    assert spec["limits"] == expected["limits"]
    assert requirements(name) == {
        "topology.kubernetes.io/zone": ["us-east-1a"],
        "node.kubernetes.io/instance-type": [expected["instance_type"]],
        "karpenter.sh/capacity-type": expected["capacity_types"],
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
    }
    taints = [[t["key"], t["value"], t["effect"]] for t in template["spec"]["taints"]]
    assert taints == expected["taints"]
    startup = [[t["key"], t["effect"]] for t in template["spec"].get("startupTaints", [])]
    assert startup == expected["startup_taints"]


@pytest.mark.parametrize("name", POOLS)
def test_a_node_class(name: str) -> None:
    expected, spec = EXPECTED[name], node_class(name)
    assert spec["subnetSelectorTerms"] == [{"id": expected["subnet"]}]
    group = expected["placement_group"]
    assert spec.get("placementGroupSelector") == ({"id": group} if group else None)
    golden = ROOT / "tests" / "expected" / expected["user_data"]
    assert spec["userData"] == golden.read_text(), "set up like the managed nodes"
    assert spec.get("instanceStorePolicy") == expected["instance_store"]
    (mapping,) = spec["blockDeviceMappings"]
    assert mapping == {
        "deviceName": "/dev/xvda",
        "rootVolume": True,
        "ebs": {
            "volumeType": "gp3",
            "encrypted": True,
            "deleteOnTermination": True,
            **expected["root_volume"],
        },
    }


@pytest.mark.parametrize("name", POOLS)
def test_nodes_are_closed_to_the_outside(name: str) -> None:
    spec = node_class(name)
    assert spec["associatePublicIPAddress"] is False
    assert spec["securityGroupSelectorTerms"] == [
        {"id": "<<known-after-deploy:ClusterSecurityGroupId>>"}
    ]
    # Only the node itself reaches the metadata service.
    assert spec["metadataOptions"]["httpTokens"] == "required"
    assert spec["metadataOptions"]["httpPutResponseHopLimit"] == 1


@pytest.mark.parametrize("name", POOLS)
def test_nodes_take_a_given_instance_profile_and_no_role(name: str) -> None:
    assert node_class(name)["instanceProfile"] == "sonic-karpenter-node-us-east-1"
    assert "role" not in node_class(name)
    long_name = node_class(name, "long-name-govcloud")["instanceProfile"]
    assert len(long_name) <= 128
    assert long_name.startswith("voice-vvv")


@pytest.mark.parametrize("name", POOLS)
def test_the_release_of_the_machine_image_is_pinned(name: str) -> None:
    (term,) = node_class(name)["amiSelectorTerms"]
    assert term == {"alias": "al2023@v20260724"}


@pytest.mark.parametrize("name", POOLS)
def test_tags_are_those_of_the_deployment(name: str) -> None:
    assert node_class(name)["tags"] == {"sonic-eks:deployment": "sonic"}
    assert node_class(name, "long-name-govcloud")["tags"]["team"] == "voice"


def test_local_disks_are_used_where_the_type_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration("default")
    diskless: InstanceType = replace(config.gpu_type, local_nvme_gb=0)
    monkeypatch.setattr(Configuration, "gpu_type", property(lambda _: diskless))
    (chart,) = [c for c in charts_of(config) if c.name == "nodes"]
    classes = [m["spec"] for m in chart.manifests if m["kind"] == "EC2NodeClass"]
    assert len(classes) == len(POOLS)
    for spec in classes:
        assert "instanceStorePolicy" not in spec
        # Images then lie on the root volume.
        assert spec["blockDeviceMappings"][0]["ebs"]["throughput"] == 250


def test_classes_come_before_pools(deployment: str) -> None:
    order = [m["kind"] for m in manifests(deployment) if m["kind"] in ("EC2NodeClass", "NodePool")]
    assert order == sorted(order), "EC2NodeClass, then NodePool"


@pytest.mark.parametrize("name", POOLS)
def test_a_node_goes_only_when_it_is_empty_and_one_at_a_time(name: str) -> None:
    assert pool(name)["template"]["spec"]["expireAfter"] == "Never"
    disruption = pool(name)["disruption"]
    assert disruption["consolidationPolicy"] == "WhenEmpty"
    assert seconds(disruption["consolidateAfter"]) >= 600
    assert disruption["budgets"] == [{"nodes": "1"}]


@pytest.mark.parametrize(
    # One pod at a time leaves, each replaced first: GPUs of a node x (600 s + load), and a drain.
    ("deployment", "expected"),
    [
        ("default", 1 * (600 + 600) + 780),
        ("multi-gpu", 4 * (600 + 600) + 780),
        ("two-models", 1 * (600 + 901) + 780),
        ("spot", 1 * (600 + 600) + 270),
    ],
)
def test_a_gpu_drain_ends_some_time_but_not_before_the_pods(deployment: str, expected: int) -> None:
    for name in GPU_POOLS:
        spec = pool(name, deployment)["template"]["spec"]
        assert seconds(spec["terminationGracePeriod"]) == expected


def test_a_drain_of_api_pods_ends_some_time_but_not_before_the_pods() -> None:
    # 78 % of 4 vCPUs hold 3 API pods of one, and their gates; each waits for a node (600 s) and to
    # be a healthy target (900 s); the last drains (780 s).
    limit = seconds(pool("cpu")["template"]["spec"]["terminationGracePeriod"])
    assert limit == 3 * (600 + 900) + 780


def test_no_pod_has_longer_than_its_node(deployment: str) -> None:
    for manifest in kinds(deployment, "NodePool"):
        spec = manifest["spec"]["template"]
        for workload in kinds(deployment, "Deployment") + kinds(deployment, "StatefulSet"):
            pod = workload["spec"]["template"]["spec"]
            if pod["nodeSelector"].items() <= spec["metadata"]["labels"].items():
                limit = seconds(spec["spec"]["terminationGracePeriod"])
                assert limit > pod["terminationGracePeriodSeconds"]


@pytest.mark.synth
@pytest.mark.parametrize(
    # Base + burst + overflow nodes, all within maxNodes.
    ("gpu", "burst", "overflow"),
    [
        ({"baseSize": 2, "maxNodes": 9}, 4, 3),
        ({"baseSize": 2, "maxNodes": 10}, 4, 4),
        ({"baseSize": 8, "maxNodes": 9}, 1, 0),
        ({"baseSize": 7, "maxNodes": 9}, 1, 1),
        ({"baseSize": 9, "maxNodes": 9}, 0, 0),
        ({"baseSize": 2, "maxNodes": 9, "overflow": {"enabled": False}}, 7, 0),
        ({"baseSize": 2, "maxNodes": 9, "overflow": {"maxNodes": 7}}, 0, 7),
        ({"baseSize": 2, "maxNodes": 9, "overflow": {"maxNodes": 1}}, 6, 1),
    ],
)
@pytest.mark.parametrize(("instance_type", "gpus"), [("g6e.2xlarge", 1), ("g6e.12xlarge", 4)])
def test_gpu_limits_hold_over_base_burst_and_overflow(
    default_config: Configuration,
    gpu: dict[str, Any],
    burst: int,
    overflow: int,
    instance_type: str,
    gpus: int,
) -> None:
    config = changed(default_config, nodes={"gpu": {**gpu, "instanceType": instance_type}})
    limits = {
        m["metadata"]["name"]: m["spec"]["limits"]
        for chart in charts_of(config)
        for m in chart.manifests
        if m["kind"] == "NodePool" and m["metadata"]["name"] in GPU_POOLS
    }
    expected = {"gpu-burst": burst * gpus, "gpu-overflow": overflow * gpus}
    # Where no node may be added there is no pool.
    assert limits == {k: {"nvidia.com/gpu": str(n)} for k, n in expected.items() if n}
    given = sum(int(limit["nvidia.com/gpu"]) for limit in limits.values())
    assert gpu["baseSize"] * gpus + given == gpu["maxNodes"] * gpus


@pytest.mark.parametrize(
    # API pods of 1 vCPU and 2 GiB: 3 on an m7i.xlarge.
    ("serving", "api", "vcpus"),
    [
        ({}, {}, 4 * 1),
        ({"size": 5}, {}, 4 * 1),
        ({"maxNodes": 8}, {}, 4 * 5),
        ({}, {"maxReplicas": 30}, 4 * 7),
        ({"instanceType": "m7i.2xlarge"}, {"maxReplicas": 60}, 8 * 7),
        ({}, {"maxReplicas": 30, "memoryMib": 6144}, 4 * 12),
    ],
)
def test_the_cpu_pool_has_room_for_every_api_pod(
    default_config: Configuration, serving: dict[str, Any], api: dict[str, Any], vcpus: int
) -> None:
    config = changed(default_config, nodes={"serving": serving}, api=api)
    (limits,) = [
        m["spec"]["limits"]
        for chart in charts_of(config)
        for m in chart.manifests
        if m["kind"] == "NodePool" and m["metadata"]["name"] == "cpu"
    ]
    assert limits == {"cpu": str(vcpus)}


def test_without_room_beyond_the_managed_nodes_there_is_no_pool() -> None:
    assert "nodes" not in [c.name for c in charts("base-only")]
    assert "workers" in [c.name for c in charts("base-only")]
    assert all("nodes" not in c.after for c in charts("base-only"))
    assert kinds("base-only", "NodePool") == kinds("base-only", "EC2NodeClass") == []


def test_the_overflow_can_be_left_out() -> None:
    assert names("no-overflow") == {"cpu", "gpu-burst"}
    assert len(kinds("no-overflow", "EC2NodeClass")) == 2
    assert pool("gpu-burst", "no-overflow")["limits"] == {"nvidia.com/gpu": "7"}


def test_spot_only_where_it_is_asked_for(deployment: str) -> None:
    for name in names(deployment):
        types = requirements(name, deployment)["karpenter.sh/capacity-type"]
        assert ("spot" in types) == (deployment == "spot" and name == "gpu-overflow")
        assert "on-demand" in types, "a way on where nothing else is to be had"


def test_reservations_are_used_where_they_are_given() -> None:
    assert reservations("gpu-burst", "reservations") == ["cr-0000000000000000b", "cr-0000000b"]
    assert reservations("gpu-overflow", "reservations") == ["cr-0000000000000000c"]
    assert reservations("cpu", "reservations") == []
    for name in GPU_POOLS:
        # Karpenter launches into a reservation only with this capacity type.
        assert "reserved" in requirements(name, "reservations")["karpenter.sh/capacity-type"]


def test_karpenter_leaves_the_reservation_of_the_base_alone(deployment: str) -> None:
    base = configuration(deployment).nodes.gpu.base_reservation_id
    for name in names(deployment):
        assert base not in reservations(name, deployment)


def test_a_capacity_block_is_used_outside_the_placement_group() -> None:
    block = "cr-0000000000000000d"
    assert reservations("gpu-overflow", "capacity-block") == [block]
    assert "placementGroupSelector" not in node_class("gpu-overflow", "capacity-block")
    assert reservations("gpu-burst", "capacity-block") == []


def pools_for(pod: Pod, deployment: str) -> list[str]:
    """Return the pools that Karpenter may start a node of for a pod, the first tried first."""
    found = [p for p in kinds(deployment, "NodePool") if _takes(p["spec"]["template"], pod)]
    weights = [p["spec"]["weight"] for p in found]
    assert len(set(weights)) == len(weights), "chance decides between pools of one weight"
    return [p["metadata"]["name"] for p in sorted(found, key=lambda p: -p["spec"]["weight"])]


def _takes(template: dict[str, Any], pod: Pod) -> bool:
    selected: bool = pod.get("nodeSelector", {}).items() <= template["metadata"]["labels"].items()
    return selected and all(
        any(_tolerates(toleration, taint) for toleration in pod.get("tolerations", []))
        # Startup taints are left out: Karpenter expects something to remove them.
        for taint in template["spec"]["taints"]
    )


def _tolerates(toleration: dict[str, str], taint: dict[str, str]) -> bool:
    return (
        toleration.get("key") in (None, taint["key"])
        and toleration.get("effect") in (None, taint["effect"])
        and (toleration.get("operator") == "Exists" or toleration.get("value") == taint["value"])
    )


def pod_of(kind: str, name: str) -> Pod:
    spec: Pod = one("default", kind, name)["spec"]["template"]["spec"]
    return spec


def test_which_pools_a_pod_gets() -> None:
    worker = pod_of("Deployment", "sonic-worker-sonic-3")
    assert pools_for(worker, "default") == ["gpu-burst", "gpu-overflow"], "the group first"
    for kind, name in (("Deployment", "sonic-api"), ("StatefulSet", "nats")):
        assert pools_for(pod_of(kind, name), "default") == ["cpu"]
    assert pools_for({}, "default") == [], "nothing is launched for pods of controllers"
    anywhere = {"tolerations": [{"operator": "Exists"}]}
    assert pools_for(anywhere, "default")[0] == "cpu", "no GPU for who does not ask for one"


def test_nodes_outlive_the_pods_that_may_run_on_them() -> None:
    # Removed the other way round: Deployments first, or their nodes would drain under them.
    after = {chart.name: set(chart.after) for chart in charts("default")}

    def before(name: str) -> set[str]:
        return after[name].union(*(before(earlier) for earlier in after[name]))

    for chart in ("api", "workers", "nats", "license-proxy"):
        assert "nodes" in before(chart)


def test_the_documentation_has_the_same_weights_and_sizes() -> None:
    lines = (ROOT / "docs" / "nodes.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    weights = {
        row[0].strip("`"): row[1] for row in rows if row[0].startswith("`") and len(row) == 3
    }
    sizes = {row[0].strip("`"): row[2] for row in rows if row[0].startswith("`") and len(row) == 5}
    per_node = {"nvidia.com/gpu": 1, "cpu": 4}
    rendered = {name: pool(name) for name in names("default")}
    for name, spec in rendered.items():
        assert weights[name] == str(spec["weight"])
        ((resource, limit),) = spec["limits"].items()
        assert sizes[name] == f"0 to {int(limit) // per_node[resource]}"
    assert sizes.keys() == rendered.keys()
