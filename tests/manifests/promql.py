"""Rendered queries, and series in promtool's notation: one sample a scrape, five seconds apart.

``1+2x3`` is 1, 3, 5, 7; ``_`` a missing sample; ``stale`` the marker that Prometheus writes for a
failed scrape and for a target that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.manifests.deployments import one

WORKER = "sonic-worker-sonic-3"

Series = dict[str, str]


def query(name: str = WORKER, deployment: str = "present") -> str:
    """The first trigger's query; `present` has one model, and neither look-ahead nor margin."""
    trigger = one(deployment, "ScaledObject", name)["spec"]["triggers"][0]
    return str(trigger["metadata"]["query"])


def labels(pod: str, model: str = "sonic-3", namespace: str = "sonic", port: int = 8080) -> str:
    """Labels of a worker's target: its server, or its gate on port 8090."""
    where = f'component="worker",model="{model}",pod="{pod}",instance="{pod}:{port}"'
    return f'{{namespace="{namespace}",{where}}}'


def api_labels(pod: str, port: int = 8090) -> str:
    """Labels of an API pod's target: its gate, or its server on port 8080."""
    return f'{{namespace="sonic",component="api",pod="{pod}",instance="{pod}:{port}"}}'


def standalone_labels(pod: str, port: int = 8090) -> str:
    """Labels of a target of a server that stands alone."""
    where = f'component="standalone",model="any",pod="{pod}",instance="{pod}:{port}"'
    return f'{{namespace="sonic",{where}}}'


def series(pod: str, load: str, up: str = "1x500", **where: Any) -> list[Series]:
    """Load of a worker, and whether its scrapes worked."""
    found = [{"series": f"up{labels(pod, **where)}", "values": up}]
    return [*found, {"series": f"inferno_worker_load{labels(pod, **where)}", "values": load}]


def measured(metric: str, labelled: str, values: str, up: str = "1x500") -> list[Series]:
    """A metric of any target, and whether its scrapes worked."""
    return [
        {"series": f"up{labelled}", "values": up},
        {"series": f"{metric}{labelled}", "values": values},
    ]


def document(
    expression: str, data: Sequence[Series], expected: Mapping[str, float | None]
) -> dict[str, Any]:
    """The file of a promtool test: a query's values at times, None for no value at all.

    Values are compared to a thousandth: floats are not added up in one order only.
    """
    cases: list[dict[str, Any]] = [
        {
            "expr": f"round({expression}, 0.001)",
            "eval_time": time,
            "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
        }
        for time, value in expected.items()
    ]
    tests = [{"interval": "5s", "input_series": list(data), "promql_expr_test": cases}]
    return {"evaluation_interval": "5s", "tests": tests}


def write(path: Path, content: Mapping[str, Any]) -> Path:
    """Write a promtool test's file."""
    path.write_text(yaml.safe_dump(dict(content)))
    return path
