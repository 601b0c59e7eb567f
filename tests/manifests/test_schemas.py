"""Every manifest is one that its API server accepts."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.manifests.deployments import manifests, one

KUBERNETES = "1.35"
SCHEMAS = Path(__file__).parent.parent / "expected" / "custom_objects"


@cache
def custom_schemas() -> dict[tuple[str, str], jsonschema.Draft202012Validator]:
    found = {}
    for path in sorted(SCHEMAS.glob("*.yaml")):
        schema = yaml.safe_load(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        names = schema["properties"]
        key = (names["apiVersion"]["const"], names["kind"]["const"])
        found[key] = jsonschema.Draft202012Validator(schema)
    return found


def check(manifest: dict[str, Any]) -> None:
    """Raise unless the manifest is valid, unknown keys and unknown kinds included."""
    _check(json.dumps(manifest))


# Most objects are the same in many deployments.
@cache
def _check(text: str) -> None:
    manifest = json.loads(text)
    custom = custom_schemas().get((manifest["apiVersion"], manifest["kind"]))
    if custom is not None:
        custom.validate(manifest)
    else:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_every_manifest_is_valid(deployment: str) -> None:
    for manifest in manifests(deployment):
        check(manifest)


def test_custom_kinds_have_a_schema_with_version_and_source() -> None:
    used = {
        (m["apiVersion"], m["kind"])
        for name in ("default", "secrets")
        for m in manifests(name)
        if "." in m["apiVersion"]
    }
    core = {"networking.k8s.io/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1"}
    assert {key for key in used if key[0] not in core} == set(custom_schemas())
    for path in SCHEMAS.glob("*.yaml"):
        head = path.read_text().split("$schema")[0]
        assert re.search(r"Version: .*\d+\.\d+\.\d+\.", head)
        assert "Source, typed by hand:" in head


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("SecretProviderClass", "sonic-api", "spec.secretObjects", []),
        ("SecretProviderClass", "sonic-api", "spec.parameters.usePodIdentity", True),
        ("SecretProviderClass", "sonic-api", "spec.parameters.objects", [{"objectName": "x"}]),
        ("SecretProviderClass", "sonic-api", "apiVersion", "secrets-store.csi.x-k8s.io/v2"),
        ("EC2NodeClass", "gpu-burst", "spec.role", "some-role"),
        ("EC2NodeClass", "gpu-burst", "spec.placementGroupSelector.name", "sonic-gpu"),
        ("EC2NodeClass", "gpu-burst", "spec.instance_store_policy", "RAID0"),
        ("EC2NodeClass", "gpu-burst", "metadata.namespace", "sonic"),
        ("EC2NodeClass", "gpu-burst", "spec.capacityReservationSelectorTerms", [{"id": "res-1"}]),
        ("NodePool", "gpu-burst", "spec.weight", 101),
        ("NodePool", "gpu-burst", "spec.template.spec.expireAfter", "30d"),
        ("NodePool", "gpu-burst", "spec.disruption.consolidateAfter", "600"),
        ("NodePool", "gpu-burst", "spec.template.kubelet", {}),
        ("ScaledObject", "sonic-api", "spec.maxReplicas", 3),
        ("ScaledObject", "sonic-api", "spec.minReplicaCount", "3"),
        ("ScaledObject", "sonic-api", "spec.triggers.0.metadata.maxReplicaCount", "9"),
        ("ScaledObject", "sonic-api", "spec.triggers.0.metadata.threshold", 50),
        ("TargetGroupBinding", "sonic-api", "spec.networking", {}),
        ("TargetGroupBinding", "sonic-api", "spec.vpcId", "vpc-1"),
        ("Deployment", "sonic-api", "spec.replica", 3),
        ("Deployment", "sonic-api", "apiVersion", "apps/v9"),
        ("PodDisruptionBudget", "sonic-api", "spec.maxUnavailable", True),
    ],
)
def test_a_wrong_key_or_value_is_refused(kind: str, name: str, path: str, value: Any) -> None:
    deployment = "secrets" if kind == "SecretProviderClass" else "default"
    manifest = copy.deepcopy(one(deployment, kind, name))
    check(manifest)
    *parents, last = path.split(".")
    section: Any = manifest
    for part in parents:
        section = section[int(part)] if isinstance(section, list) else section[part]
    section[last] = value
    with pytest.raises(
        (
            jsonschema.ValidationError,
            kubernetes_validate.ValidationError,
            kubernetes_validate.SchemaNotFoundError,
        )
    ):
        check(manifest)


def test_a_kind_without_a_schema_is_refused() -> None:
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        check({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})
