"""What breaks the rules of secrets, in the deployment that has some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sonic_eks.k8s.render import RenderedChart
from tests.manifests.deployments import charts
from tests.manifests.edits import Edit, container, edited, pod, with_object
from tests.manifests.rules_base import Charts

Example = Callable[[], Charts]

API = ("Deployment", "sonic-api")
PROXY = ("Deployment", "sonic-license-proxy")
ACCOUNT = ("ServiceAccount", "sonic-api")
CLASS = ("SecretProviderClass", "sonic-api")


def changed(target: tuple[str, str], edit: Edit) -> Example:
    return lambda: edited(*target, edit, deployment="secrets")


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = (item for item in items if item["name"] == name)
    return found


def volume(edit: Edit) -> Edit:
    return pod(lambda p: edit(named(p["volumes"], "secrets")["csi"]))


def mount(edit: Edit) -> Edit:
    return container(lambda c: edit(named(c["volumeMounts"], "secrets")))


def seed(edit: Edit) -> Edit:
    return pod(lambda p: edit(named(p["initContainers"], "license-seed")))


def more_volume(source: dict[str, Any]) -> Edit:
    return pod(lambda p: p["volumes"].append({"name": "more", **source}))


def variable(value: dict[str, Any]) -> Edit:
    return container(lambda c: c.update(env=[{"name": "KEY", **value}]))


def class_applied_too_late() -> Charts:
    """The classes of the API are in a chart that it does not wait for."""
    moved = [
        manifest
        for chart in charts("secrets")
        if chart.name == "api"
        for manifest in chart.manifests
        if manifest["kind"] == "SecretProviderClass"
    ]
    return [
        RenderedChart(
            chart.name,
            tuple(m for m in chart.manifests if m not in moved)
            + tuple(moved if chart.name == "scaling" else ()),
            chart.after,
        )
        for chart in charts("secrets")
    ]


_FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "vendor", "key": "k"}}}
_ALL_FROM_SECRET = [{"secretRef": {"name": "vendor"}}]
_LIKE_NAMES = "[{objectAlias: a}, {objectAlias: A}]"

_ENVIRONMENT = "no_secret_is_in_an_environment"
_KEPT = "no_secret_is_kept_in_kubernetes"
_READ = "secrets_are_read_by_one_pods_own_account"
_SECURITY = "pods_meet_their_security_level"

# (rule, what breaks it)
BROKEN_SECRETS: list[tuple[str, Example]] = [
    (_ENVIRONMENT, changed(API, variable(_FROM_SECRET))),
    (_ENVIRONMENT, changed(API, container(lambda c: c.update(envFrom=_ALL_FROM_SECRET)))),
    (_ENVIRONMENT, changed(PROXY, seed(lambda c: c.update(envFrom=_ALL_FROM_SECRET)))),
    (_KEPT, lambda: with_object({"kind": "Secret"})),
    (_KEPT, changed(CLASS, lambda m: m["spec"].update(secretObjects=[]))),
    (_KEPT, changed(API, more_volume({"secret": {"secretName": "vendor"}}))),
    (_KEPT, changed(API, more_volume({"projected": {"sources": [{"secret": {"name": "v"}}]}}))),
    (_READ, changed(API, pod(lambda p: p.pop("serviceAccountName")))),
    (_READ, changed(API, pod(lambda p: p.update(serviceAccountName="sonic-license-proxy")))),
    (_READ, changed(API, pod(lambda p: p.update(automountServiceAccountToken=True)))),
    (_READ, changed(ACCOUNT, lambda m: m.pop("automountServiceAccountToken"))),
    (_READ, changed(API, volume(lambda v: v.pop("readOnly")))),
    (_READ, changed(API, mount(lambda m: m.pop("readOnly")))),
    (_READ, changed(API, mount(lambda m: m.update(subPath="api-key")))),
    (_READ, changed(API, container(lambda c: c.pop("volumeMounts")))),
    (_READ, changed(CLASS, lambda m: m["metadata"].update(name="other"))),
    (_READ, changed(CLASS, lambda m: m["spec"]["parameters"].update(usePodIdentity="false"))),
    (_READ, changed(CLASS, lambda m: m["spec"]["parameters"].update(objects=_LIKE_NAMES))),
    (
        "nothing_names_a_secret_but_its_class",
        changed(API, variable({"value": "arn:aws:secretsmanager:"})),
    ),
    (_SECURITY, changed(API, volume(lambda v: v.update(driver="efs.csi.aws.com")))),
    (_SECURITY, changed(PROXY, seed(lambda c: c["securityContext"].pop("capabilities")))),
    ("what_is_needed_is_applied_first", class_applied_too_late),
]
