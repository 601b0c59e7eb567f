"""cdk-nag over the stacks below and beside the cluster, in every shape they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2

from sonic_eks.config import Configuration
from tests.synth import cdk_context, changed
from tests.template.foundation import ACCOUNT, foundation

CERTIFICATE = f"arn:aws:acm:us-east-1:{ACCOUNT}:certificate/0f0f0f0f-0000-4000-8000-000000000000"
SHAPES: dict[str, dict[str, Any]] = {
    "default": {},
    "account": {"deployment": {"account": ACCOUNT, "name": "a" * 100}},
    "isolated": {
        "network": {"egress": "none", "vpcCidr": "10.0.0.0/22"},
        "license": {"mode": "airGapped", "dataPath": "/data"},
    },
    "tls": {
        "network": {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"]},
        "edge": {"certificateArn": CERTIFICATE, "clientCidrs": ["10.0.0.0/8"]},
    },
    "china": {
        "deployment": {"region": "cn-north-1"},
        "network": {"zones": ["cn-north-1a", "cn-north-1b"]},
    },
}


def findings(app: cdk.App) -> str:
    """Run the checks as a synthesis does; return what they refuse, or an empty text."""
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    try:
        app.synth()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("shape", SHAPES)
def test_no_unexplained_finding(default_config: Configuration, shape: str, tmp_path: Path) -> None:
    app = foundation(changed(default_config, **SHAPES[shape]), outdir=tmp_path).app
    assert findings(app) == ""
    assert (tmp_path / "validation-report.json").exists()


def test_checks_refuse_what_is_not_explained(tmp_path: Path) -> None:
    app = cdk.App(context=cdk_context(), outdir=str(tmp_path))
    stack = cdk.Stack(app, "Bad")
    ec2.Vpc(stack, "Vpc", availability_zones=["us-east-1a"], nat_gateways=0)
    assert "AwsSolutions" in findings(app)
    assert "VPC7" in (tmp_path / "validation-report.json").read_text()
