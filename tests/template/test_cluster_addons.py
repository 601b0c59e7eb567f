"""Add-ons: which, with what, when, and as whom."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from tests.cloudformation import Resources
from tests.synth import ROOT

EXPECTED = yaml.safe_load((ROOT / "tests/expected/cluster.yaml").read_text())
ADDON = "AWS::EKS::Addon"
GPU_TAINTS = (("nvidia.com/gpu", "NoSchedule"), ("fsx.csi.aws.com/agent-not-ready", "NoExecute"))
SERVING_TAINT = ("sonic-eks/pool", "NoSchedule")


@pytest.fixture(scope="module")
def resources(templates: dict[str, Template]) -> Resources:
    return Resources(templates["cluster"])


@pytest.fixture(scope="module")
def addons(resources: Resources) -> dict[str, dict[str, Any]]:
    return resources.by(ADDON, "AddonName")


def configuration(addon: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration values of an add-on."""
    values: dict[str, Any] = json.loads(addon.get("ConfigurationValues", "{}"))
    return values


def tolerated(tolerations: list[dict[str, str]], taint: tuple[str, str]) -> bool:
    """Tell whether one of the tolerations matches a taint."""
    key, effect = taint
    return any(
        toleration.get("operator") == "Exists"
        and toleration.get("key") in (None, key)
        and toleration.get("effect") in (None, effect)
        for toleration in tolerations
    )


def system_group(resources: Resources) -> str:
    """Return the logical id of the untainted node group."""
    (name,) = (
        name
        for name in resources.ids("AWS::EKS::Nodegroup")
        if "Taints" not in resources.properties(name)
    )
    return name


def test_the_addons(addons: dict[str, dict[str, Any]]) -> None:
    expected = EXPECTED["addons"]["before_nodes"] + EXPECTED["addons"]["on_nodes"]
    assert sorted(addons) == sorted(expected)
    for addon in addons.values():
        assert "AddonVersion" not in addon, "EKS knows the default for the Kubernetes version"
        assert addon["ResolveConflicts"] == "OVERWRITE"
        assert not addon.get("PreserveOnDelete")


def test_addons_with_deployments_come_after_untainted_nodes(resources: Resources) -> None:
    ids = resources.id_by(ADDON, "AddonName")
    for name in EXPECTED["addons"]["on_nodes"]:
        assert system_group(resources) in resources.needs(ids[name])
    for name in EXPECTED["addons"]["before_nodes"]:
        assert system_group(resources) not in resources.needs(ids[name])


def test_the_cni_finds_its_credentials(
    resources: Resources, addons: dict[str, dict[str, Any]]
) -> None:
    ids = resources.id_by(ADDON, "AddonName")
    assert ids["eks-pod-identity-agent"] in resources.needs(ids["vpc-cni"])
    assert [p["ServiceAccount"] for p in addons["vpc-cni"]["PodIdentityAssociations"]] == [
        "aws-node"
    ]


def test_network_policies_are_enforced(addons: dict[str, dict[str, Any]]) -> None:
    values = configuration(addons["vpc-cni"])
    assert values["enableNetworkPolicy"] == "true"
    assert values["env"]["NETWORK_POLICY_ENFORCING_MODE"] == "standard"


def test_agents_reach_every_node(addons: dict[str, dict[str, Any]]) -> None:
    for name in ("eks-pod-identity-agent", "aws-secrets-store-csi-driver-provider"):
        tolerations = configuration(addons[name])["tolerations"]
        for taint in (*GPU_TAINTS, SERVING_TAINT):
            assert tolerated(tolerations, taint), (name, taint)
    gpu_agent = configuration(addons["eks-node-monitoring-agent"])["dcgmAgent"]["tolerations"]
    for taint in GPU_TAINTS:
        assert tolerated(gpu_agent, taint)
    assert not tolerated(gpu_agent, ("other", "NoSchedule"))


def test_files_of_secrets_are_replaced_and_no_secret_is_copied(
    addons: dict[str, dict[str, Any]],
) -> None:
    # README of the AWS provider, "Rotation": at most once an hour. The chart of the driver copies
    # nothing into Kubernetes Secrets unless `syncSecret` asks for it.
    values = configuration(addons["aws-secrets-store-csi-driver-provider"])
    assert values["secrets-store-csi-driver"] == {
        "enableSecretRotation": True,
        "rotationPollInterval": "3600s",
    }


def test_the_default_storage_class_encrypts(resources: Resources) -> None:
    ((name, manifest),) = (
        (name, json.loads(resources.properties(name)["Manifest"]))
        for name in resources.ids("Custom::AWSCDK-EKS-KubernetesResource")
    )
    (storage_class,) = manifest
    default = "storageclass.kubernetes.io/is-default-class"
    assert storage_class["metadata"]["annotations"][default] == "true"
    assert storage_class["provisioner"] == "ebs.csi.aws.com"
    assert storage_class["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
    assert resources.id_by(ADDON, "AddonName")["aws-ebs-csi-driver"] in resources.needs(name)


def test_each_identity_belongs_to_one_service_account(resources: Resources) -> None:
    seen: dict[str, list[str]] = {}
    (cluster,) = resources.ids("AWS::EKS::Cluster")
    for role in resources.of("AWS::IAM::Role"):
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        if statement["Principal"] != {"Service": "pods.eks.amazonaws.com"}:
            continue
        assert sorted(statement["Action"]) == ["sts:AssumeRole", "sts:TagSession"]
        tags = statement["Condition"]["StringEquals"]
        assert tags["aws:RequestTag/eks-cluster-arn"] == f"att-{cluster}-Arn"
        account = "/".join(
            tags[f"aws:RequestTag/kubernetes-{part}"] for part in ("namespace", "service-account")
        )
        assert account not in seen
        seen[account] = [arn.partition(":policy/")[2] for arn in role.get("ManagedPolicyArns", [])]
    assert seen == EXPECTED["pod_identities"]


def test_every_identity_is_associated_once(
    resources: Resources, addons: dict[str, dict[str, Any]]
) -> None:
    by_addon = [
        (f"kube-system/{given['ServiceAccount']}", given["RoleArn"])
        for addon in addons.values()
        for given in addon.get("PodIdentityAssociations", [])
    ]
    alone = [
        (f"{given['Namespace']}/{given['ServiceAccount']}", given["RoleArn"])
        for given in resources.of("AWS::EKS::PodIdentityAssociation")
    ]
    associated = by_addon + alone
    assert sorted(account for account, _ in associated) == sorted(EXPECTED["pod_identities"])
    for account, role in associated:
        properties = resources.properties(role.removeprefix("att-").removesuffix("-Arn"))
        (statement,) = properties["AssumeRolePolicyDocument"]["Statement"]
        tags = statement["Condition"]["StringEquals"]
        assert account.endswith("/" + tags["aws:RequestTag/kubernetes-service-account"])
