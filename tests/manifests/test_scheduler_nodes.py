"""What the scheduler takes for nodes: their size by hand, and the groups of the template."""

from __future__ import annotations

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from sonic_eks.config.instances import instance_types
from tests.cloudformation import Resources
from tests.manifests.scheduler.nodes import allocatable, managed_groups, node_pools

MIB = 2**20
GIB = 2**30

# Worked out by hand from nodeadm's formula, with 7.5 % of the memory taken off first:
# m7i.xlarge has 4 interfaces of 15 addresses, so 4 x 14 + 2 = 58 of them; the kubelet reserves
# 60 + 10 + 10 millicores, 11 x 58 + 255 = 893 MiB, and evicts below 100 MiB:
# 16,384 x 0.925 = 15,155 MiB, less 993. Of the 80 GiB disk, 10 % and 1 GiB are not offered.
# g6e.2xlarge: 8 vCPUs reserve 10 millicores more; 65,536 x 0.925 = 60,620 MiB, less 993; its
# disk is 450 GB of local NVMe.
# p5.48xlarge: 2 interfaces of 50 addresses, 100 in all: 1,355 MiB reserved; 192 vCPUs reserve
# 80 + 470 millicores; 2,097,152 x 0.925 = 1,939,865 MiB; its disk is 30,400 GB.
BY_HAND = [
    ("m7i.xlarge", 80, 3920, 14_162, 72 * GIB - GIB, 58, 0),
    ("g6e.2xlarge", 200, 7910, 59_627, 405 * 10**9 - GIB, 58, 1),
    ("p5.48xlarge", 200, 191_450, 1_938_410, 27_360 * 10**9 - GIB, 100, 8),
]

EFFECTS = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}


@pytest.mark.parametrize(("name", "root", "cpu", "memory", "disk", "pods", "gpus"), BY_HAND)
def test_what_a_node_offers(
    name: str, root: int, cpu: int, memory: int, disk: int, pods: int, gpus: int
) -> None:
    found = allocatable(instance_types()[name], root)
    assert found["cpu"] == cpu
    assert found["memory"] == memory * MIB
    assert found["ephemeral-storage"] == disk
    assert found["pods"] == pods
    assert found["nvidia.com/gpu"] == gpus


def test_groups_are_those_of_the_template(
    templates: dict[str, Template], default_config: Configuration
) -> None:
    resources = Resources(templates["cluster"])
    groups = {g["Labels"]["sonic-eks/pool"]: g for g in resources.of("AWS::EKS::Nodegroup")}
    declared = managed_groups(default_config)
    assert groups.keys() == declared.keys()
    for name, (source, size) in declared.items():
        group = groups[name]
        scaling = group["ScalingConfig"]
        assert scaling == {"MinSize": size, "DesiredSize": size, "MaxSize": size}
        assert group["Labels"].items() <= source.labels.items()
        taints = {(t["key"], t.get("value", ""), EFFECTS[t["effect"]]) for t in source.taints}
        given = {(t["Key"], t["Value"], t["Effect"]) for t in group.get("Taints", [])}
        assert given == taints
        assert (group["UpdateConfig"]["UpdateStrategy"] == "DEFAULT") == source.surge
        assert len(group["Subnets"]) == len(source.zones)
        launch = resources.properties(group["LaunchTemplate"]["Id"].removeprefix("ref-"))
        data = launch["LaunchTemplateData"]
        assert data["InstanceType"] == source.instance_type
        (disk,) = data["BlockDeviceMappings"]
        assert disk["Ebs"]["VolumeSize"] == source.root_volume_gib


def test_node_pools_come_by_weight_with_their_limits() -> None:
    def pool(name: str, weight: int) -> dict[str, object]:
        requirements = [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]},
            {
                "key": "node.kubernetes.io/instance-type",
                "operator": "In",
                "values": ["g6e.2xlarge"],
            },
        ]
        taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
        startup = {"key": "fsx.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
        return {
            "kind": "NodePool",
            "metadata": {"name": name},
            "spec": {
                "weight": weight,
                "limits": {"nvidia.com/gpu": "3", "cpu": "16"},
                "template": {
                    "metadata": {"labels": {"sonic-eks/pool": "gpu"}},
                    "spec": {
                        "nodeClassRef": {"name": "gpu"},
                        "requirements": requirements,
                        "taints": [taint],
                        "startupTaints": [startup],
                    },
                },
            },
        }

    volume = [{"ebs": {"volumeSize": "200Gi"}}]
    node_class = {
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu"},
        "spec": {"blockDeviceMappings": volume},
    }
    light, heavy = pool("light", 1), pool("heavy", 9)
    found = node_pools([node_class, light, heavy])
    assert [source.name for source in found] == ["heavy", "light"]
    assert found[0].limits == {"nvidia.com/gpu": 3, "cpu": 16_000}
    node = found[0].node("us-east-1a")
    assert node.labels["karpenter.sh/nodepool"] == "heavy"
    assert node.labels["sonic-eks/pool"] == "gpu"
    assert [taint["key"] for taint in node.taints] == [
        "nvidia.com/gpu",
        "fsx.csi.aws.com/agent-not-ready",
    ]
