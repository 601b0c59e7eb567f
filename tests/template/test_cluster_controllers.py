"""The controllers' charts: where from, when, where they run, and what they may do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.constructs import chart_values
from sonic_eks.upstream import UPSTREAMS, Kind
from tests.cloudformation import ACCOUNT, Resources
from tests.iam_evaluator import Decision, Request, evaluate
from tests.synth import ROOT, changed, charts_of, stacks_of

EXPECTED = yaml.safe_load((ROOT / "tests/expected/cluster.yaml").read_text())
CHART = "Custom::AWSCDK-EKS-HelmChart"
HOST = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com"
NAMESPACES = {
    "karpenter-crd": "kube-system",
    "karpenter": "kube-system",
    "aws-load-balancer-controller": "kube-system",
    "keda": "keda",
    "nvidia-device-plugin": "nvidia-device-plugin",
}
# Where a chart's own values name an image, by hand from the values files of the charts.
IMAGE_KEYS = {
    "karpenter": [("controller", "image")],
    "aws-load-balancer-controller": [("image",)],
    "keda": [("image", "keda"), ("image", "metricsApiServer"), ("image", "webhooks")],
    "nvidia-device-plugin": [("image",)],
}


@pytest.fixture(scope="module")
def resources(templates: dict[str, Template]) -> Resources:
    return Resources(templates["cluster"])


@pytest.fixture(scope="module")
def charts(resources: Resources) -> dict[str, dict[str, Any]]:
    return resources.by(CHART, "Release")


@pytest.fixture(scope="module")
def ids(resources: Resources) -> dict[str, str]:
    return resources.id_by(CHART, "Release")


def values_of(chart: dict[str, Any]) -> dict[str, Any]:
    """Return the Helm values of a chart."""
    values: dict[str, Any] = json.loads(chart.get("Values", "{}"))
    return values


def at(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return the mapping at a path."""
    for key in path:
        values = values[key]
    return values


def strings_in(value: Any) -> Iterator[str]:
    """Yield every string of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


def test_the_charts_come_from_the_private_registry(charts: dict[str, dict[str, Any]]) -> None:
    assert {name: chart["Namespace"] for name, chart in charts.items()} == NAMESPACES
    versions = {u.name: u.tag for u in UPSTREAMS if u.kind is Kind.CHART}
    for name, chart in charts.items():
        # CDK's handler pulls this address and opens its last part.
        assert chart["Repository"] == f"oci://{HOST}/sonic/charts/{name}"
        assert chart["Version"] == versions[name]
        assert "ChartAssetURL" not in chart


def test_a_chart_is_ready_before_what_follows(charts: dict[str, dict[str, Any]]) -> None:
    for chart in charts.values():
        assert chart["Wait"] is True
        # Lambda ends the handler after 900 s; Helm must have said by then what is wrong.
        assert 300 <= int(chart["Timeout"].removesuffix("s")) < 900


@pytest.mark.parametrize("name", sorted(IMAGE_KEYS))
def test_every_image_is_private(charts: dict[str, dict[str, Any]], name: str) -> None:
    values = values_of(charts[name])
    known = {u.repository: u.tag for u in UPSTREAMS if u.kind is Kind.IMAGE}
    for path in IMAGE_KEYS[name]:
        image = at(values, path)
        reference = "/".join(
            [*([image["registry"]] if "registry" in image else []), image["repository"]]
        )
        assert reference.startswith(f"{HOST}/sonic/")
        assert known[reference.removeprefix(f"{HOST}/sonic/")] == image["tag"]
    public = re.compile(r"ecr\.aws|\b(docker|ghcr|quay|nvcr|gcr|registry\.k8s)\.io")
    assert [text for text in strings_in(values) if public.search(text)] == []


def test_a_lock_makes_images_exact(default_config: Configuration) -> None:
    digest = "sha256:" + "0" * 64

    class Locked(Catalogue):
        def digest(self, kind: Kind, name: str) -> str | None:
            return digest

    catalogue = Locked(default_config)
    karpenter = chart_values.karpenter(
        catalogue, cluster_name="c", cluster_endpoint="e", queue_name="q", region="r",
        service_account="s",
    )  # fmt: skip
    assert karpenter["controller"]["image"]["digest"] == digest
    assert "@" not in karpenter["controller"]["image"]["tag"]
    keda = chart_values.keda(catalogue)["image"]
    assert all(keda[key]["tag"].endswith(f"@{digest}") for key in ("keda", "webhooks"))
    plugin = chart_values.nvidia_device_plugin(catalogue, gpus=True)["image"]
    assert plugin["tag"].endswith(f"@{digest}")


def test_controllers_run_on_system_nodes_in_pairs(charts: dict[str, dict[str, Any]]) -> None:
    for name in ("karpenter", "aws-load-balancer-controller", "keda"):
        assert values_of(charts[name])["nodeSelector"] == {"sonic-eks/pool": "system"}
    assert values_of(charts["karpenter"])["replicas"] == 2
    assert values_of(charts["aws-load-balancer-controller"])["replicaCount"] == 2
    keda = values_of(charts["keda"])
    assert {keda[part]["replicaCount"] for part in ("operator", "metricsServer", "webhooks")} == {2}
    assert set(keda["podDisruptionBudget"]) == {"operator", "metricServer", "webhooks"}


def test_the_device_plugin_runs_on_every_gpu_node(charts: dict[str, dict[str, Any]]) -> None:
    values = values_of(charts["nvidia-device-plugin"])
    tolerations = {(t["key"], t["operator"], t["effect"]) for t in values["tolerations"]}
    assert tolerations == {
        ("nvidia.com/gpu", "Exists", "NoSchedule"),
        ("fsx.csi.aws.com/agent-not-ready", "Exists", "NoExecute"),
    }
    affinity = values["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "sonic-eks/pool", "operator": "In", "values": ["gpu"]}
    ]
    # Both would bring images that are not mirrored.
    assert values["gfd"]["enabled"] is values["nfd"]["enabled"] is False


def test_karpenter_works_without_internet_and_metadata(
    resources: Resources, charts: dict[str, dict[str, Any]]
) -> None:
    values = values_of(charts["karpenter"])
    (cluster,) = resources.ids("AWS::EKS::Cluster")
    (queue,) = resources.of("AWS::SQS::Queue")
    assert values["settings"] == {
        "clusterName": "sonic",
        "clusterEndpoint": f"att-{cluster}-Endpoint",
        "interruptionQueue": queue["QueueName"],
        "isolatedVPC": True,
    }
    assert {"name": "AWS_REGION", "value": "us-east-1"} in values["controller"]["env"]
    assert values["controller"]["image"]["digest"] == "", "the chart's own is of its own image"


def test_the_load_balancer_controller_only_binds_targets(
    charts: dict[str, dict[str, Any]],
) -> None:
    values = values_of(charts["aws-load-balancer-controller"])
    assert values["clusterName"] == "sonic"
    assert values["region"] == "us-east-1"
    assert values["vpcId"].startswith("out-sonic-network-")
    for key in (
        "enableShield",
        "enableWaf",
        "enableWafv2",
        "enableServiceMutatorWebhook",
        "enableBackendSecurityGroup",
        "createIngressClassResource",
    ):
        assert values[key] is False
    assert values["podMutatorWebhookConfig"] == {"failurePolicy": "Fail"}


TOPOLOGIES: dict[str, dict[str, Any]] = {
    "distributed": {},
    "standalone": {"topology": "standalone", "models": [{"image": "server"}]},
}


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_its_webhook_holds_up_what_the_load_balancer_leads_to_and_nothing_else(
    default_config: Configuration, topology: str
) -> None:
    """Only a pod that it sees gets the readiness gate, and waits to be a healthy target."""
    config = changed(default_config, **TOPOLOGIES[topology])
    cluster = Resources(Template.from_stack(stacks_of(config).cluster))
    (chart,) = (
        c
        for c in cluster.of("Custom::AWSCDK-EKS-HelmChart")
        if c["Release"] == "aws-load-balancer-controller"
    )
    selector = values_of(chart)["objectSelector"]["matchLabels"]
    manifests = [m for chart in charts_of(config) for m in chart.manifests]
    (binding,) = (m for m in manifests if m["kind"] == "TargetGroupBinding")
    (service,) = (
        m
        for m in manifests
        if m["kind"] == "Service" and m["metadata"]["name"] == binding["spec"]["serviceRef"]["name"]
    )
    pods = {
        m["metadata"]["name"]: m["spec"]["template"]["metadata"]["labels"]
        for m in manifests
        if m["kind"] in ("Deployment", "StatefulSet")
    }
    held = {name for name, labels in pods.items() if selector.items() <= labels.items()}
    reached = {
        name
        for name, labels in pods.items()
        if service["spec"]["selector"].items() <= labels.items()
    }
    assert held == reached
    assert len(held) == 1


def test_order(resources: Resources, ids: dict[str, str]) -> None:
    def needs(chart: str) -> set[str]:
        return resources.needs(ids[chart])

    addons = set(resources.ids("AWS::EKS::Addon"))
    groups = resources.ids("AWS::EKS::Nodegroup")
    (system,) = (g for g in groups if "Taints" not in resources.properties(g))
    (gpu,) = (g for g in groups if "nvidia.com/gpu" in str(resources.properties(g)))
    for name in NAMESPACES:
        assert system in needs(name)
        assert addons <= needs(name)
    assert ids["karpenter-crd"] in needs("karpenter")
    assert gpu in needs("nvidia-device-plugin")
    # GPUs that are not to be had must not keep the controllers away that would say so.
    assert gpu not in needs("karpenter")


@pytest.mark.parametrize(
    ("chart", "service_account"),
    [("karpenter", "karpenter"), ("aws-load-balancer-controller", "aws-load-balancer-controller")],
)
def test_identities_are_there_before_their_charts(
    resources: Resources, charts: dict[str, dict[str, Any]], ids: dict[str, str],
    chart: str, service_account: str,
) -> None:  # fmt: skip
    kind = "AWS::EKS::PodIdentityAssociation"
    association = resources.id_by(kind, "ServiceAccount")[service_account]
    assert resources.properties(association)["Namespace"] == charts[chart]["Namespace"]
    assert values_of(charts[chart])["serviceAccount"] == {"name": service_account}
    assert association in resources.needs(ids[chart])


def load_balancer_policies(resources: Resources) -> list[dict[str, Any]]:
    """Return the policies of the load balancer controller's role."""
    (role,) = (
        role
        for role in resources.of("AWS::IAM::Role")
        if "aws-load-balancer-controller" in json.dumps(role["AssumeRolePolicyDocument"])
    )
    return [policy["PolicyDocument"] for policy in role["Policies"]]


def test_the_load_balancer_controllers_permissions(resources: Resources) -> None:
    policies = load_balancer_policies(resources)
    expected = EXPECTED["load_balancer_controller"]
    target_group = (
        f"arn:aws:elasticloadbalancing:us-east-1:{ACCOUNT}:targetgroup/sonic-Api-1/0123456789abcdef"
    )

    def decide(action: str, resource: str, **tags: str) -> Decision:
        context = {f"aws:ResourceTag/{key.replace('_', ':')}": tag for key, tag in tags.items()}
        return evaluate(policies, Request(action, resource, context))

    granted = {a for p in policies for s in p["Statement"] for a in s["Action"]}
    assert granted == {*expected["describe"], *expected["change"]}
    for action in expected["describe"]:
        assert decide(action, "*") is Decision.ALLOW
    own = {"sonic-eks:deployment": "sonic"}
    for action in expected["change"]:
        assert decide(action, target_group, **own) is Decision.ALLOW
        assert decide(action, target_group) is Decision.IMPLICIT_DENY
        other = {"sonic-eks:deployment": "other"}
        assert decide(action, target_group, **other) is Decision.IMPLICIT_DENY
        foreign = target_group.replace(ACCOUNT, "444455556666")
        assert decide(action, foreign, **own) is Decision.IMPLICIT_DENY


def test_the_target_group_carries_the_tag_that_the_policy_asks_for(
    templates: dict[str, Template],
) -> None:
    groups = Resources(templates["edge"]).of("AWS::ElasticLoadBalancingV2::TargetGroup")
    assert groups
    for group in groups:
        assert {"Key": "sonic-eks:deployment", "Value": "sonic"} in group["Tags"]


@pytest.mark.synth
def test_an_account_in_the_configuration_is_in_the_addresses(
    default_config: Configuration,
) -> None:
    config = changed(default_config, deployment={"account": "444455556666"})
    charts = Resources(Template.from_stack(stacks_of(config).cluster)).by(CHART, "Release")
    for name, chart in charts.items():
        assert chart["Repository"].startswith("oci://444455556666.dkr.ecr.us-east-1.")
        assert ACCOUNT not in json.dumps(values_of(charts[name]))


def test_the_device_plugin_waits_on_nodes_without_gpus(default_config: Configuration) -> None:
    """With its own default it would exit again and again, and the chart never be ready."""
    catalogue = Catalogue(default_config)
    assert "failOnInitError" not in chart_values.nvidia_device_plugin(catalogue, gpus=True)
    without = chart_values.nvidia_device_plugin(catalogue, gpus=False)
    assert without["failOnInitError"] == "false"
