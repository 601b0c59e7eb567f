"""What AWS, Kubernetes or the handler would refuse later is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

CIDRS = [f"10.{i}.0.0/16" for i in range(51)]
ROLES = [f"arn:aws:iam::111122223333:role/r{i}" for i in range(21)]


def document(values: dict[str, Any]) -> dict[str, Any]:
    """Return the valid configuration with keys of sections replaced."""
    if "tags" in values:
        return with_values(("tags", values["tags"]))
    return with_values(
        *(
            (f"{section}.{key}", value)
            for section, keys in values.items()
            for key, value in keys.items()
        )
    )


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        # VPC quotas: 60 inbound rules a security group.
        ({"edge": {"clientCidrs": CIDRS}}, "edge.clientCidrs", "50"),
        ({"cluster": {"adminRoleArns": ROLES}}, "cluster.adminRoleArns", "20"),
        # IAM user guide, "Rules for tagging": keys are not case-sensitive.
        ({"tags": {"team": "a", "Team": "b"}}, "tags", "case"),
        ({"tags": {"karpenter.sh/nodepool": "x"}}, "tags", "karpenter.sh/"),
        ({"api": {"env": {"A": "a\0b"}}}, "api.env.A", "control"),
        ({"license": {"env": {"A": "\x1b[2J"}}}, "license.env.A", "control"),
        (
            {"api": {"env": {"A": "<<known-after-deploy:VpcId>>"}}},
            "api.env.A",
            "only a deployment knows",
        ),
        ({"api": {"env": {f"A{i}": "x" * 4000 for i in range(16)}}}, "models", "60000"),
        # As text in text a quote takes four bytes, and an emoji fourteen.
        ({"api": {"env": {f"A{i}": '"' * 4000 for i in range(4)}}}, "models", "60000"),
        ({"api": {"env": {f"A{i}": "🎤" * 4000 for i in range(2)}}}, "models", "60000"),
        ({"weights": {"mountPath": "/proc"}}, "weights.mountPath", "folder of its own"),
        ({"weights": {"mountPath": "/etc/weights"}}, "weights.mountPath", "folder of its own"),
        ({"weights": {"mountPath": "/usr"}}, "weights.mountPath", "folder of its own"),
        ({"weights": {"mountPath": "/mnt/../etc"}}, "weights.mountPath", "'..'"),
        (
            {"registry": {"versions": {"karpenter": "1.15.0"}}},
            "registry.versions.karpenter",
            "one version for",
        ),
    ],
)
def test_refused(values: dict[str, Any], field: str, said: str, tmp_path: Path) -> None:
    fault = fault_of(document(values), tmp_path)
    assert fault.startswith(f"{field}: ")
    assert said in fault


@pytest.mark.parametrize(
    "values",
    [
        {"edge": {"clientCidrs": CIDRS[:50]}},
        {"tags": {"team": "a", "teams": "b"}},
        {"api": {"env": {"A": "two\nlines and a\ttab", "B": "<<x>>"}}},
        {"weights": {"mountPath": "/usr/share/weights"}},
        {
            "registry": {
                "versions": {
                    "karpenter": "1.15.0",
                    "karpenter-crd": "1.15.0",
                    "karpenter-controller": "1.15.0",
                }
            }
        },
    ],
)
def test_accepted(values: dict[str, Any], tmp_path: Path) -> None:
    loaded = load(document(values), tmp_path).model_dump(by_alias=True, mode="json")
    for section, keys in values.items():
        assert {key: loaded[section][key] for key in keys} == keys
