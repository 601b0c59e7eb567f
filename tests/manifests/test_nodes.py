"""Karpenter's GPU nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonic_eks.config import Configuration
from sonic_eks.config.instances import InstanceType
from sonic_eks.k8s.render import Manifest
from tests.manifests.deployments import charts, configuration, kinds, one
from tests.synth import ROOT, charts_of

REQUIREMENTS = {
    "topology.kubernetes.io/zone": ["us-east-1a"],
    "node.kubernetes.io/instance-type": ["g6e.2xlarge"],
    "karpenter.sh/capacity-type": ["reserved", "on-demand"],
    "kubernetes.io/arch": ["amd64"],
    "kubernetes.io/os": ["linux"],
}


def pool(deployment: str = "default") -> Manifest:
    return one(deployment, "NodePool", "gpu-burst")["spec"]


def node_class(deployment: str = "default") -> Manifest:
    return one(deployment, "EC2NodeClass", "gpu")["spec"]


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration[:-1])


def test_nodes_are_of_one_type_in_one_zone_and_never_spot() -> None:
    found = {r["key"]: r["values"] for r in pool()["template"]["spec"]["requirements"]}
    assert found == REQUIREMENTS


def test_nodes_lie_in_the_placement_group_and_the_gpu_subnet() -> None:
    spec = node_class()
    assert spec["placementGroupSelector"] == {"id": "<<known-after-deploy:PlacementGroupId>>"}
    assert spec["subnetSelectorTerms"] == [{"id": "<<known-after-deploy:GpuSubnetId>>"}]
    assert spec["securityGroupSelectorTerms"] == [
        {"id": "<<known-after-deploy:ClusterSecurityGroupId>>"}
    ]
    assert spec["associatePublicIPAddress"] is False


def test_nodes_take_a_given_instance_profile_and_no_role() -> None:
    assert node_class()["instanceProfile"] == "sonic-karpenter-node"
    assert "role" not in node_class()
    long_name = node_class("long-name-govcloud")["instanceProfile"]
    assert len(long_name) <= 128
    assert long_name.startswith("voice-vvv")


def test_only_the_node_itself_reaches_the_metadata_service() -> None:
    options = node_class()["metadataOptions"]
    assert options["httpTokens"] == "required"
    assert options["httpPutResponseHopLimit"] == 1


def test_the_root_volume_is_encrypted_and_sized() -> None:
    (mapping,) = node_class()["blockDeviceMappings"]
    assert mapping["deviceName"] == "/dev/xvda"
    assert mapping["ebs"]["encrypted"] is True
    assert mapping["ebs"]["volumeSize"] == "200Gi"
    assert mapping["ebs"]["volumeType"] == "gp3"


def test_the_release_of_the_machine_image_is_pinned() -> None:
    (term,) = node_class()["amiSelectorTerms"]
    assert term == {"alias": "al2023@v20260724"}


def test_local_disks_are_used_where_the_type_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert node_class()["instanceStorePolicy"] == "RAID0"
    config = configuration("default")
    diskless: InstanceType = replace(config.gpu_type, local_nvme_gb=0)
    monkeypatch.setattr(Configuration, "gpu_type", property(lambda _: diskless))
    (chart,) = [c for c in charts_of(config) if c.name == "nodes"]
    (spec,) = [m["spec"] for m in chart.manifests if m["kind"] == "EC2NodeClass"]
    assert "instanceStorePolicy" not in spec


def test_burst_nodes_are_set_up_like_the_managed_ones() -> None:
    golden = ROOT / "tests" / "expected" / "node_user_data_nvme.txt"
    assert node_class()["userData"] == golden.read_text()


def test_tags_are_those_of_the_deployment() -> None:
    assert node_class()["tags"] == {"sonic-eks:deployment": "sonic"}
    assert node_class("long-name-govcloud")["tags"]["team"] == "voice"


def test_only_gpu_pods_come_and_only_once_weights_can_be_mounted() -> None:
    spec = pool()["template"]["spec"]
    assert spec["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
    assert spec["startupTaints"] == [
        {"key": "fsx.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
    ]
    assert pool()["template"]["metadata"]["labels"] == {"sonic-eks/pool": "gpu"}


def test_a_node_goes_only_when_it_is_empty_and_one_at_a_time() -> None:
    assert pool()["template"]["spec"]["expireAfter"] == "Never"
    disruption = pool()["disruption"]
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
    ],
)
def test_a_drain_ends_some_time_but_not_before_the_pods(deployment: str, expected: int) -> None:
    limit = seconds(pool(deployment)["template"]["spec"]["terminationGracePeriod"])
    assert limit == expected
    pods = [d["spec"]["template"]["spec"] for d in kinds(deployment, "Deployment")]
    assert limit > max(p["terminationGracePeriodSeconds"] for p in pods)


@pytest.mark.parametrize(
    # (largest - base) nodes x GPUs of one
    ("deployment", "gpus"),
    [("default", (9 - 2) * 1), ("multi-gpu", (4 - 2) * 4), ("two-models-multi-gpu", (3 - 2) * 4)],
)
def test_gpus_are_limited_to_those_beyond_the_base(deployment: str, gpus: int) -> None:
    assert pool(deployment)["limits"] == {"nvidia.com/gpu": str(gpus)}


def test_without_room_beyond_the_base_there_is_no_pool() -> None:
    names = [c.name for c in charts("base-only")]
    assert "nodes" not in names
    assert "workers" in names
    assert all("nodes" not in c.after for c in charts("base-only"))
    assert kinds("base-only", "NodePool") == kinds("base-only", "EC2NodeClass") == []
