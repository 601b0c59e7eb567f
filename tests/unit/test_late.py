"""Late values: markers in manifests and what replaces them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sonic_eks.errors import SonicEksError
from sonic_eks.late import Late, markers_in, resolve

NAMES = {
    "AccountId",
    "VpcId",
    "ClusterSecurityGroupId",
    "GpuSubnetId",
    "ServingSubnetId",
    "FileSystemId",
    "FileSystemDnsName",
    "FileSystemMountName",
    "TargetGroupArn",
}


def test_output_names_are_a_contract() -> None:
    # `sonic-eks render --outputs` reads files that earlier deployments wrote.
    assert {late.value for late in Late} >= NAMES


def test_a_marker_cannot_be_taken_for_a_value() -> None:
    for late in Late:
        assert late.marker.startswith("<<")
        assert late.value in late.marker
        assert json.loads(json.dumps(late.marker)) == late.marker


def test_resolve_replaces_every_marker_and_nothing_else() -> None:
    document: dict[str, Any] = {
        "whole": Late.VPC.marker,
        "inside": f"{Late.ACCOUNT.marker}.dkr.ecr/{Late.ACCOUNT.marker}",
        "list": [1, None, True, 2.5, {"deep": [Late.FILE_SYSTEM.marker]}],
        "plain": "<<not a marker>>",
        Late.VPC.marker: "a key is left alone",
    }
    before = json.dumps(document)
    assert resolve(document, lambda late: f"={late.name}=") == {
        "whole": "=VPC=",
        "inside": "=ACCOUNT=.dkr.ecr/=ACCOUNT=",
        "list": [1, None, True, 2.5, {"deep": ["=FILE_SYSTEM="]}],
        "plain": "<<not a marker>>",
        Late.VPC.marker: "a key is left alone",
    }
    assert json.dumps(document) == before, "the document itself is unchanged"


def test_a_value_is_taken_literally() -> None:
    assert resolve(Late.VPC.marker, lambda _: r"\1 \g<0>") == r"\1 \g<0>"
    assert resolve(Late.VPC.marker, lambda _: Late.ACCOUNT.marker) == Late.ACCOUNT.marker


def test_markers_in() -> None:
    document = [{"a": Late.VPC.marker}, f"x{Late.ACCOUNT.marker}y{Late.VPC.marker}", 3]
    assert markers_in(document) == {Late.VPC, Late.ACCOUNT}
    assert markers_in({"a": "b"}) == set()


def test_a_marker_of_an_unknown_value_is_an_error_in_one_line() -> None:
    with pytest.raises(SonicEksError) as caught:
        markers_in({"env": "<<known-after-deploy:Other>>"})
    text = str(caught.value)
    assert text.startswith("a manifest waits for 'Other', which no stack gives out; known: ")
    assert text.isprintable()


def test_the_charts_of_the_default_configuration_wait_for_known_values_only(
    default_charts: Any,
) -> None:
    for chart in default_charts:
        assert markers_in(list(chart.manifests)) <= set(Late)
