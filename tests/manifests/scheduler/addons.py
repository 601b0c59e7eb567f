"""The pods of add-ons and charts: typed by hand, joined with the values that we pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from tests.cloudformation import Resources
from tests.manifests.scheduler.pods import Budget, Workload, priority_of, rollout_of
from tests.synth import ROOT

Values = Mapping[str, Any]
Passed = dict[str, Values]
"""Values that the cluster's template passes, by ``addon/NAME`` and ``chart/NAME``."""


@cache
def typed() -> list[dict[str, Any]]:
    """Return the entries of tests/expected/addon_pods.yaml."""
    entries: list[dict[str, Any]] = yaml.safe_load(
        (ROOT / "tests/expected/addon_pods.yaml").read_text()
    )
    return entries


def passed_values(cluster: Resources) -> Passed:
    """Return the configuration values of every add-on and chart in a cluster's template."""
    found: Passed = {}
    for addon in cluster.of("AWS::EKS::Addon"):
        found[f"addon/{addon['AddonName']}"] = json.loads(addon.get("ConfigurationValues", "{}"))
    for chart in cluster.of("Custom::AWSCDK-EKS-HelmChart"):
        found[f"chart/{chart['Release']}"] = json.loads(chart.get("Values", "{}"))
    return found


def key_of(entry: Mapping[str, Any]) -> str:
    """Return the name of the add-on or chart that an entry comes from."""
    return f"addon/{entry['addon']}" if "addon" in entry else f"chart/{entry['chart']}"


def addon_workloads(passed: Passed) -> tuple[list[Workload], list[Budget]]:
    """Return the workloads and budgets of every entry with what we pass in place."""
    workloads, budgets = [], []
    for entry in typed():
        values = passed[key_of(entry)]
        paths = entry.get("values", {})

        def given(part: str, default: Any, paths: Any = paths, values: Any = values) -> Any:
            own = _at(values, paths[part]) if part in paths else None
            return _joined(default, own)

        spec = copy.deepcopy(entry["spec"])
        for part in ("nodeSelector", "affinity", "tolerations", "priorityClassName"):
            spec[part] = given(part, spec.get(part))
        if "resources" in paths:
            container = spec["containers"][0]
            container["resources"] = given("resources", container.get("resources"))
        labels = entry.get("labels", {"app": entry["name"]})
        replicas = given("replicas", entry.get("replicas", 0))
        workloads.append(
            Workload(
                entry["kind"],
                entry["namespace"],
                entry["name"],
                replicas,
                labels,
                spec,
                rollout_of(entry["kind"], replicas, {"rollingUpdate": entry.get("strategy")}),
                priority=priority_of(spec),
                covers=tuple(entry.get("covers", ())),
                removes_taint=entry.get("removesTaint"),
                source=key_of(entry),
            )
        )
        budget = given("budget", entry.get("budget"))
        if budget:
            budgets.append(
                Budget(
                    entry["namespace"],
                    {"matchLabels": labels},
                    budget.get("maxUnavailable"),
                    budget.get("minAvailable"),
                )
            )
    return workloads, budgets


def _at(values: Values, path: str) -> Any:
    found: Any = values
    for part in path.split("."):
        found = (found or {}).get(part)
    return found


def _joined(default: Any, own: Any) -> Any:
    """Join as Helm does: mappings key by key, all else replaced."""
    if own is None:
        return default
    if isinstance(default, dict) and isinstance(own, dict):
        return default | {key: _joined(default.get(key), value) for key, value in own.items()}
    return own
