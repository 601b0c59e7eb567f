"""Versions that belong together, and drains that are too long for a node group's update."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from sonic_eks.config.kubernetes import RELEASES
from tests.configuration import fault_of, load, with_values
from tests.synth import ROOT

Changes = list[tuple[str, Any]]
KEDA = ("keda", "keda-operator", "keda-metrics-apiserver", "keda-admission-webhooks")
NEWER_KEDA = ("registry.versions", dict.fromkeys(KEDA, "2.21.0"))
LAYER = "the kubectl layer (install aws-cdk.lambda-layer-kubectl-v36, in requirements.txt too)"
BUMP = "cluster.version: got '1.36'; allowed: a version that the rest is made for; for 1.36 bump "


@pytest.fixture
def with_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the kubectl layer of 1.36 were installed."""
    real = metadata.distribution

    def distribution(name: str) -> metadata.Distribution:
        return real("pytest" if name == "aws-cdk.lambda-layer-kubectl-v36" else name)

    monkeypatch.setattr(metadata, "distribution", distribution)


def test_a_bump_alone_names_the_kubectl_layer_and_the_charts(tmp_path: Path) -> None:
    fault = fault_of(with_values(("cluster.version", "1.36")), tmp_path)
    assert fault == (
        f"{BUMP}{LAYER}, registry.versions of keda and keda-operator and keda-metrics-apiserver"
        " and keda-admission-webhooks (2.20.2) to 2.21 or newer"
    )


def test_a_bump_without_the_layer_names_it(tmp_path: Path) -> None:
    fault = fault_of(with_values(("cluster.version", "1.36"), NEWER_KEDA), tmp_path)
    assert fault == BUMP + LAYER


@pytest.mark.usefixtures("with_layer")
@pytest.mark.parametrize(
    ("changes", "rest"),
    [
        (
            [("cluster.amiAlias", "al2023@v20260609")],
            "cluster.amiAlias (al2023@v20260609) to al2023@v20260610 or newer",
        ),
        (
            [
                (
                    "cluster.addonVersions",
                    {"kube-proxy": "v1.35.3-eksbuild.13", "vpc-cni": "v1.21.0-eksbuild.1"},
                )
            ],
            (
                "all of cluster.addonVersions (kube-proxy is v1.35.3-eksbuild.13;"
                " aws eks describe-addon-versions --kubernetes-version 1.36 lists them)"
            ),
        ),
        (
            [("registry.versions", {**NEWER_KEDA[1], "karpenter": "1.12.4"})],
            "registry.versions of karpenter (1.12.4) to 1.13 or newer",
        ),
    ],
)
def test_each_part_that_stays_behind_is_named(tmp_path: Path, changes: Changes, rest: str) -> None:
    document = with_values(("cluster.version", "1.36"), NEWER_KEDA, *changes)
    assert fault_of(document, tmp_path) == BUMP + rest


@pytest.mark.usefixtures("with_layer")
def test_a_complete_bump_is_accepted(tmp_path: Path) -> None:
    pins = {"kube-proxy": "v1.36.0-eksbuild.14", "coredns": "v1.13.2-eksbuild.4"}
    config = load(
        with_values(
            ("cluster.version", "1.36"),
            ("cluster.amiAlias", "al2023@v20260610"),
            ("cluster.addonVersions", pins),
            NEWER_KEDA,
        ),
        tmp_path,
    )
    assert config.cluster.version == "1.36"
    assert config.cluster.addon_versions == pins


@pytest.mark.parametrize(
    ("changes", "rest"),
    [
        (
            [("cluster.amiAlias", "al2023@v20260101")],
            "cluster.amiAlias (al2023@v20260101) to al2023@v20260127 or newer",
        ),
        (
            [("registry.versions", {"karpenter": "1.8.9", "karpenter-crd": "1.8.9"})],
            "registry.versions of karpenter-crd and karpenter (1.8.9) to 1.9 or newer",
        ),
        (
            [("cluster.addonVersions", {"kube-proxy": "v1.36.0-eksbuild.14"})],
            (
                "all of cluster.addonVersions (kube-proxy is v1.36.0-eksbuild.14;"
                " aws eks describe-addon-versions --kubernetes-version 1.35 lists them)"
            ),
        ),
    ],
)
def test_parts_that_are_too_old_or_too_new_for_the_version(
    tmp_path: Path, changes: Changes, rest: str
) -> None:
    fault = fault_of(with_values(*changes), tmp_path)
    assert fault == BUMP.replace("1.36", "1.35") + rest


@pytest.mark.parametrize("tag", ["1.9.0", "v1.14.0-patched", "our-build"])
def test_tags_that_are_new_enough_or_say_nothing(tmp_path: Path, tag: str) -> None:
    config = load(with_values(("registry.versions", {"karpenter-controller": tag})), tmp_path)
    assert config.registry.versions == {"karpenter-controller": tag}


@pytest.mark.parametrize(
    ("pins", "fault"),
    [
        (
            {"kube-proxy": "v1.35.3-eksbuild.13", "core-dns": "v1.13.2-eksbuild.4"},
            (
                "cluster.addonVersions: got 'core-dns'; allowed: add-ons: aws-ebs-csi-driver,"
                " aws-fsx-csi-driver, aws-secrets-store-csi-driver-provider, coredns,"
                " eks-node-monitoring-agent, eks-pod-identity-agent, kube-proxy,"
                " kube-state-metrics, vpc-cni; nearest: coredns"
            ),
        ),
        (
            {"coredns": "v1.13.2-eksbuild.4"},
            (
                "cluster.addonVersions: got 'coredns'; allowed: these with a pin of kube-proxy,"
                " whose version tells for which Kubernetes version the others were chosen"
            ),
        ),
    ],
)
def test_pins_that_make_no_sense(tmp_path: Path, pins: dict[str, str], fault: str) -> None:
    assert fault_of(with_values(("cluster.addonVersions", pins)), tmp_path) == fault


@pytest.mark.parametrize(
    "version", ["1.35.3", "v1.35.3", "v1.35.3-eksbuild", "v1.35.3-eksbuild.x", "latest"]
)
def test_addon_versions_have_the_form_of_eks(tmp_path: Path, version: str) -> None:
    document = with_values(("cluster.addonVersions", {"kube-proxy": version}))
    fault = fault_of(document, tmp_path)
    assert fault.startswith(f"cluster.addonVersions.kube-proxy: got '{version}'; allowed: ")


@pytest.mark.parametrize("seconds", [721, 3600])
def test_longer_streams_need_groups_that_are_replaced(tmp_path: Path, seconds: int) -> None:
    longer = ("drain.maxStreamSeconds", seconds)
    fault = fault_of(with_values(longer), tmp_path)
    assert fault == (
        f"drain.maxStreamSeconds: got {seconds}; allowed: at most 720: a managed node group's"
        " update gives pods 15 minutes to leave, of which propagationSeconds and marginSeconds"
        " take 180; for more set nodes.upgrade: replaceGroup (docs/upgrading.md); nearest: 720"
    )
    config = load(with_values(longer, ("nodes.upgrade", "replaceGroup")), tmp_path)
    assert config.drain.grace_seconds == seconds + 180


@pytest.mark.parametrize(
    ("upgrade", "generations", "rest"),
    [
        ("rolling", [2], "allowed: [1] while upgrade is rolling"),
        ("rolling", [1, 2], "allowed: [1] while upgrade is rolling"),
        ("replaceGroup", [2, 1], "allowed: rising numbers, each once"),
        ("replaceGroup", [2, 2], "allowed: rising numbers, each once"),
        ("replaceGroup", [1, 2, 3], "allowed: a list of 1 to 2 entries"),
        ("replaceGroup", [], "allowed: a list of 1 to 2 entries"),
        ("replaceGroup", [0], "allowed: a whole number, 1 to 9999"),
    ],
)
def test_generations_refused(
    tmp_path: Path, upgrade: str, generations: list[int], rest: str
) -> None:
    document = with_values(("nodes.upgrade", upgrade), ("nodes.generations", generations))
    fault = fault_of(document, tmp_path)
    assert fault.startswith("nodes.generations")
    assert rest in fault


@pytest.mark.parametrize("generations", [[1], [7], [1, 2], [3, 9]])
def test_generations_accepted(tmp_path: Path, generations: list[int]) -> None:
    document = with_values(("nodes.upgrade", "replaceGroup"), ("nodes.generations", generations))
    assert list(load(document, tmp_path).nodes.generations) == generations


def test_the_guide_says_what_belongs_to_each_version() -> None:
    guide = (ROOT / "docs" / "upgrading.md").read_text()
    rows = {
        cells[0]: cells[1:]
        for line in guide.splitlines()
        if re.match(r"\| 1\.", line)
        for cells in [[cell.strip(" `") for cell in line.strip("|").split("|")]]
    }
    assert set(rows) == set(RELEASES)
    for version, (layer, karpenter, keda, alias) in rows.items():
        release = RELEASES[version]
        assert layer.split()[0] == release.kubectl_layer_package
        charts = {"karpenter": karpenter, "keda": keda}
        assert {k: ".".join(map(str, v)) for k, v in release.oldest_charts.items()} == charts
        assert alias == f"al2023@{release.ami_release}"
