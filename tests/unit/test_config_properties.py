"""Any input gives a configuration or one-line errors; any valid one loads, renders, reloads."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration, load_configuration
from sonic_eks.errors import ConfigurationError, one_line, shown
from sonic_eks.k8s.render import render_charts
from tests.configuration import VALID, load, load_text, with_values
from tests.expected.config_values import GPU_TYPES, REGIONS, SYSTEM_TYPES

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["us-east-1a", "10.0.0.0/16", "latest", "g6e.2xlarge", "1.35", "arn:aws:iam::"]
    )
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


def every_path() -> list[str]:
    """Every key of the model, by its dotted camelCase path."""
    values = Configuration.model_validate(VALID).model_dump(by_alias=True, mode="json")
    found: list[str] = []

    def walk(prefix: str, node: Any) -> None:
        for key, value in node.items():
            found.append(f"{prefix}{key}")
            if isinstance(value, dict):
                walk(f"{prefix}{key}.", value)

    walk("", values)
    return [*found, "unknown", "weights.unknown"]


def outcome(text: str | bytes) -> Configuration | None:
    """Load; None when the file is refused in a way that a person can read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return load_text(text, Path(folder))
        except ConfigurationError as error:
            refusal = error
    assert refusal.exit_status == 2
    assert refusal.faults
    for fault in refusal.faults:
        assert fault.isprintable()
        assert len(fault) < 2000
        assert "pydantic" not in fault
        assert "Input should" not in fault, "a message of pydantic's got through"
    return None


@settings(max_examples=120)
@given(st.sampled_from(every_path()), trees)
def test_any_value_anywhere(path: str, tree: Any) -> None:
    text = yaml.safe_dump(with_values((path, tree)), allow_unicode=True)
    config = outcome(text)
    assert config is None or isinstance(config, Configuration)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(every_path()[:20]) | st.text(max_size=8), trees, max_size=5))
def test_any_document(document: dict[str, Any]) -> None:
    outcome(yaml.safe_dump(document, allow_unicode=True))


@settings(max_examples=150)
@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda s: s.encode("utf-8", "replace")))
def test_any_bytes(raw: bytes) -> None:
    outcome(raw)


@settings(max_examples=150)
@given(st.text("&*!<>[]{}:-?|#%@`\"' \n\tab01=~.,\\", max_size=60))
def test_any_yaml_punctuation(text: str) -> None:
    outcome(text)


@settings(max_examples=150)
@given(st.text() | st.integers() | st.floats() | trees)
def test_anything_is_shown_in_one_printable_line(value: Any) -> None:
    assert one_line(shown(value)).isprintable()
    assert len(shown(value)) <= 80


# --- configurations that are valid by construction ---

env_names = st.text("ABC_9", min_size=1, max_size=8)
environments = st.dictionaries(
    env_names.map("E_{}".format), st.text("ab c=:/", min_size=1), max_size=3
)
words = st.text("abc019", min_size=1, max_size=9)
names = st.builds("v{}-{}".format, words, words)


@st.composite
def replicas(draw: st.DrawFn, most: int) -> dict[str, int]:
    high = draw(st.integers(2, most))
    return {"minReplicas": draw(st.integers(2, high)), "maxReplicas": high}


@st.composite
def models(draw: st.DrawFn, generations: int) -> list[dict[str, Any]]:
    chosen = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    return [
        {
            "name": name,
            **draw(replicas(60)),
            "maxConcurrentStreams": draw(st.none() | st.integers(generations, 1024)),
            "maxBatchSize": draw(st.none() | st.integers(1, 1024)),
            "natsUrlEnv": draw(st.sampled_from([None, "NATS_URL"])),
            "concurrencyEnv": draw(st.sampled_from([None, "CONCURRENCY"])),
            "weightsPathEnv": draw(st.sampled_from([None, "WEIGHTS"])),
            "env": draw(environments),
            "loadSeconds": draw(st.integers(30, 3600)),
        }
        for name in chosen
    ]


@st.composite
def drains(draw: st.DrawFn) -> dict[str, int]:
    propagation = draw(st.integers(120, 600))
    margin = draw(st.integers(10, min(600, 900 - propagation)))
    return {
        "propagationSeconds": propagation,
        "marginSeconds": margin,
        "maxStreamSeconds": draw(st.integers(0, 900 - propagation - margin)),
    }


def overflows(beyond: int) -> st.SearchStrategy[dict[str, Any]]:
    choices = [st.just({}), st.just({"enabled": False})]
    if beyond:
        choices.append(st.integers(1, min(beyond, 498)).map(lambda nodes: {"maxNodes": nodes}))
    return st.one_of(choices)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    region = draw(st.sampled_from(sorted(REGIONS)))
    letters = draw(st.lists(st.sampled_from("abcd"), min_size=2, max_size=3, unique=True))
    generations = draw(st.none() | st.integers(1, 64))
    air_gapped = draw(st.booleans())
    chosen = draw(models(generations or 16))  # the most that the H100's published table allows
    workers = sum(model["maxReplicas"] for model in chosen)
    base = draw(st.integers(2, 50))
    nodes = draw(st.integers(max(base, workers, 2), 500))
    # What the H100's published table allows, where nothing is pinned: 55 ms at its lowest.
    floor = 1 if generations else 55
    ttfb = draw(st.integers(max(10, floor), 10_000))
    return {
        "deployment": {
            "name": draw(names),
            "region": region,
            "account": draw(st.none() | st.integers(10**11, 10**12 - 1).map(str)),
            "terminationProtection": draw(st.booleans()),
        },
        "network": {
            "zones": [region + letter for letter in letters],
            "inferenceZone": draw(st.none() | st.sampled_from([region + x for x in letters])),
            "vpcCidr": f"10.{draw(st.integers(0, 255))}.0.0/{draw(st.integers(16, 22))}",
            "egress": "none" if air_gapped else "system",
        },
        "nodes": {
            "system": {"instanceType": draw(st.sampled_from(SYSTEM_TYPES))},
            "serving": {"size": draw(st.integers(3, 100))},
            "gpu": {
                "instanceType": draw(st.sampled_from(GPU_TYPES)),
                "baseSize": base,
                "maxNodes": nodes,
                "overflow": draw(overflows(nodes - base)),
            },
        },
        "api": {**draw(replicas(200)), "env": draw(environments)},
        "models": chosen,
        "weights": {"capacityGib": 2400 * draw(st.integers(1, 1000))},
        "slo": {"ttfbMs": ttfb, "pathBudgetMs": draw(st.integers(0, min(ttfb - floor, 5000)))},
        "drain": draw(drains()),
        "scaling": {
            "generationsPerGpu": generations,
            "acceptAssumedCapacity": True,
            "targetUtilization": draw(st.floats(0.1, 1.0)),
            "headroomGpus": draw(st.integers(0, min(nodes - workers, 50))),
            "rollout": draw(
                st.sampled_from(["surge", "replace"] if nodes > workers else ["replace"])
            ),
        },
        "edge": {"listenerPort": draw(st.none() | st.integers(1, 65_535))},
        "license": {
            "mode": "airGapped" if air_gapped else "connected",
            "dataPath": "/data" if air_gapped else None,
        },
        "tags": draw(st.dictionaries(st.text("abc 09", min_size=1), names, max_size=4)),
    }


@settings(max_examples=30)
@given(documents())
def test_what_is_within_the_bounds_loads_and_loads_again(document: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = load(document, Path(folder))
        again = load(config.model_dump(by_alias=True, mode="json"), Path(folder))
    assert again == config
    assert config.drain.grace_seconds <= 900
    assert config.network.gpu_zone in config.network.zones
    gpu = config.nodes.gpu
    assert (
        gpu.base_size + config.gpu_burst_nodes + config.gpu_overflow_nodes == config.gpu_max_nodes
    )
    assert min(config.gpu_burst_nodes, config.gpu_overflow_nodes) >= 0
    assert config.serving_max_nodes > config.nodes.serving.size
    for model in config.models:
        assert config.worker_cpu_millicores(model) <= config.gpu_type.vcpus * 1000
        assert config.worker_memory_mib(model) <= config.gpu_type.memory_mib
        assert (model.max_concurrent_streams or 1024) >= config.generations_per_gpu


@pytest.mark.slow
@settings(max_examples=5)
@given(documents())
def test_what_loads_renders(document: dict[str, Any]) -> None:
    config = Configuration.model_validate(document)
    charts = render_charts(config, Catalogue(config))
    assert charts
    assert all(chart.manifests for chart in charts)


def test_the_strategy_reaches_what_it_should() -> None:
    """A strategy that only makes defaults would prove little."""
    seen: list[Configuration] = []

    @settings(max_examples=25)
    @given(documents())
    def collect(document: dict[str, Any]) -> None:
        seen.append(Configuration.model_validate(document))

    collect()
    assert {config.license.mode for config in seen} == {"connected", "airGapped"}
    assert {config.partition for config in seen} == {"aws", "aws-cn", "aws-us-gov"}
    assert len({len(config.models) for config in seen}) > 1
    assert any(config.nodes.gpu.workers_per_node > 1 for config in seen)
    assert any(config.deployment.account for config in seen)


def test_the_default_file_loads_the_same_twice(
    default_config: Configuration, tmp_path: Path
) -> None:
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(default_config.model_dump(by_alias=True, mode="json")))
    assert load_configuration(path) == default_config
