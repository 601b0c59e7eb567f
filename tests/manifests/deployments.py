"""The deployments whose manifests are tested, as configuration documents."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from sonic_eks.config import Configuration
from sonic_eks.k8s.render import Manifest, RenderedChart
from tests.configuration import VALID, with_values
from tests.synth import charts_of

_TWO_MODELS: list[dict[str, Any]] = [
    {"name": "sonic-3", "minReplicas": 3, "maxReplicas": 4},
    {"name": "sonic-2", "image": "cartesia-sonic-2", "loadSeconds": 901, "maxReplicas": 3},
]

_SMOKE: list[tuple[str, Any]] = [
    ("topology", "standalone"),
    ("standalone.standIn", True),
    ("standalone.metricsPort", 8080),
    ("license.mode", "none"),
    ("nodes.gpu.instanceType", "m7i.large"),
]
# With characters that Kubernetes would expand.
_WARM_UP = (
    '{"transcript": "$(A) $$ 5 $", "model_id": "x", "voice": {"mode": "id", "id": "x"},'
    ' "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 16000}}'
)
_SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:"

# What the queries' cases count on: no margin for chance, and 180 s ahead.
_AHEAD: list[tuple[str, Any]] = [
    ("scaling.marginSigmas", 0.0),
    ("scaling.lookAheadSeconds", 180),
    ("scaling.lookAheadWindowSeconds", 180),
]
# So many that what waits counts in full.
_ROOMY = ("scaling.generationsPerGpu", 50)

DOCUMENTS: dict[str, dict[str, Any]] = {
    "default": VALID,
    "air-gapped": with_values(
        ("network.egress", "none"),
        ("license.mode", "airGapped"),
        ("license.dataPath", "/var/lib/license"),
        ("license.volumeGib", 7),
        ("license.env", {"LOG_LEVEL": "info"}),
    ),
    "secrets": with_values(
        ("license.mode", "airGapped"),
        ("license.dataPath", "/var/lib/license/"),
        ("license.seedFile", "v1/license.json"),
        ("license.seedSecretArn", f"{_SECRET}sonic/license-AbCd01"),
        ("license.secretFiles", {"usage-key": f"{_SECRET}sonic/usage-AbCd02"}),
        ("api.secretFiles", {"api-key": f"{_SECRET}sonic/api-AbCd03", "1e3": f"{_SECRET}n-AbCd04"}),
        ("api.env", {"KEY_FILE": "/mnt/secrets/api-key"}),
        ("models", [{"secretFiles": {"token": f"{_SECRET}sonic/token-AbCd05"}}, {"name": "plain"}]),
        ("nodes.gpu.maxNodes", 16),
    ),
    "schedules": with_values(
        *_AHEAD,
        _ROOMY,
        ("models", [_TWO_MODELS[0], _TWO_MODELS[1] | {"queueLabelValue": "sonic-turbo"}]),
        ("scaling.headroomGpus", 2),
        ("scaling.scaleUpTolerance", 0),
        ("scaling.scaleDownTolerance", 0.05),
        ("scaling.queue", {"modelLabel": "offering", "metric": "waiting", "aggregate": "max"}),
        (
            "scaling.schedules",
            [
                {
                    "name": "morning",
                    "timezone": "Europe/Berlin",
                    "start": "30 7 * * 1-5",
                    "end": "0 10 * * mon-fri",
                    "replicas": 3,
                },
                {
                    "name": "sale",
                    "timezone": "UTC",
                    "start": "0 0 1 dec *",
                    "end": "0 0 2 dec *",
                    "replicas": 4,
                    "models": ["sonic-3"],
                },
            ],
        ),
    ),
    # One model has workers only while somebody calls.
    "zero": with_values(
        *_AHEAD,
        _ROOMY,
        ("models", [{"name": "sonic-3"}, {"name": "rare", "minReplicas": 0, "maxReplicas": 4}]),
        ("nodes.gpu.maxNodes", 13),
        ("scaling.queue.modelLabel", "offering"),
        ("scaling.lookAheadSeconds", 0),
        ("scaling.reserveGenerations", 3),
        ("scaling.overCapacity", "queue"),
        ("scaling.zeroAfterSeconds", 1200),
    ),
    "two-models": with_values(*_AHEAD, ("models", _TWO_MODELS), ("scaling.headroomGpus", 2)),
    "no-spare-gpu": with_values(
        ("models", [{"minReplicas": 4, "maxReplicas": 4}]),
        ("nodes.gpu.baseSize", 4),
        ("nodes.gpu.maxNodes", 4),
        ("scaling.headroomGpus", 0),
        ("scaling.rollout", "replace"),
    ),
    "multi-gpu": with_values(("nodes.gpu.instanceType", "g6e.12xlarge"), ("nodes.gpu.maxNodes", 4)),
    "two-models-multi-gpu": with_values(
        ("models", _TWO_MODELS),
        ("nodes.gpu.instanceType", "g6.12xlarge"),
        ("nodes.gpu.maxNodes", 3),
    ),
    "base-only": with_values(
        ("nodes.gpu.baseSize", 8), ("nodes.gpu.maxNodes", 8), ("nodes.serving.maxNodes", 3)
    ),
    "reservations": with_values(
        ("nodes.gpu.baseReservationId", "cr-0000000000000000a"),
        ("nodes.gpu.reservationIds", ["cr-0000000000000000b", "cr-0000000b"]),
        ("nodes.gpu.overflow.reservationIds", ["cr-0000000000000000c"]),
    ),
    "capacity-block": with_values(
        ("nodes.gpu.instanceType", "p5.48xlarge"),
        ("nodes.gpu.maxNodes", 4),
        ("nodes.gpu.overflow.maxNodes", 1),
        ("nodes.gpu.overflow.capacityBlockIds", ["cr-0000000000000000d"]),
        ("drain.maxStreamSeconds", 300),
    ),
    "spot": with_values(
        ("nodes.gpu.overflow.spot", True),
        ("drain.maxStreamSeconds", 90),
    ),
    "no-overflow": with_values(("nodes.gpu.overflow.enabled", False)),
    "vendor-names": with_values(
        (
            "models",
            [
                {
                    "concurrencyEnv": "MAX_STREAMS",
                    "batchSizeEnv": "BATCH",
                    "weightsPathEnv": "WEIGHTS",
                    "natsUrlEnv": "BUS",
                    "licenseUrlEnv": "LICENSE",
                    "maxConcurrentStreams": 6,
                    "env": {"LOG_LEVEL": "debug"},
                }
            ],
        ),
        ("api.natsUrlEnv", "BUS"),
        ("api.licenseUrlEnv", "LICENSE"),
        ("api.env", {"LOG_LEVEL": "debug"}),
        ("api.weightsMountPath", "/voices"),
        ("scaling.generationsPerGpu", 5),
        ("scaling.targetUtilization", 0.7),
        ("weights.mountPath", "/models"),
    ),
    "short-streams": with_values(
        ("drain.maxStreamSeconds", 0),
        ("drain.propagationSeconds", 150),
        ("drain.marginSeconds", 30),
    ),
    "wait-idle": with_values(*_AHEAD, ("drain.worker", "wait-idle"), ("drain.idleSeconds", 5)),
    "standalone": with_values(
        *_AHEAD,
        ("topology", "standalone"),
        ("models", [{"name": "any", "image": "speech-server", "env": {"A": "1"}}]),
        ("scaling.generationsPerStream", 0.25),
    ),
    "standalone-load": with_values(
        *_AHEAD,
        ("topology", "standalone"),
        (
            "models",
            [
                {
                    "image": "speech-server",
                    "weightsPathEnv": "WEIGHTS",
                    "secretFiles": {"key": f"{_SECRET}sonic/key-AbCd06"},
                }
            ],
        ),
        ("license.mode", "none"),
        ("standalone.port", 9000),
        ("standalone.metricsPort", 9090),
        ("standalone.loadMetric", "streams_in_progress"),
        ("standalone.readinessPath", "/ready?deep=1"),
        (
            "standalone.warmUp",
            {"path": "/speak", "body": '{"text": "Hi"}', "requests": 5, "keyFile": "key"},
        ),
    ),
    "smoke": with_values(*_SMOKE),
    "smoke-warm": with_values(
        *_SMOKE,
        ("standalone.loadMetric", "inferno_worker_load"),
        ("standalone.readinessPath", "/status"),
        ("standalone.warmUp.body", _WARM_UP),
    ),
    "long-name-govcloud": with_values(
        ("deployment.name", "voice-" + "v" * 94),
        ("deployment.region", "us-gov-west-1"),
        ("deployment.account", "123456789012"),
        ("network.zones", ["us-gov-west-1a", "us-gov-west-1b"]),
        ("tags", {"team": "voice"}),
    ),
    "china": with_values(
        ("deployment.region", "cn-north-1"), ("network.zones", ["cn-north-1a", "cn-north-1b"])
    ),
}

# Further ones that differ by a query alone: the rules of all deployments would say nothing new.
QUERIES: dict[str, dict[str, Any]] = {
    # Scaled on what is in progress, and on nothing else.
    "present": with_values(*_AHEAD, _ROOMY, ("scaling.lookAheadSeconds", 0)),
    "ahead": with_values(*_AHEAD, _ROOMY),
    "far": with_values(
        *_AHEAD,
        _ROOMY,
        ("scaling.lookAheadSeconds", 1800),
        ("scaling.lookAheadWindowSeconds", 1800),
    ),
    # All defaults but what a GPU takes.
    "eight": with_values(("scaling.generationsPerGpu", 8)),
    "margins": with_values(
        ("scaling.lookAheadSeconds", 0),
        ("scaling.marginSigmas", 1.5),
        ("scaling.reserveGenerations", 4),
    ),
}

# Different in most of what the tests look at; the others are left out of `make test-fast`.
FEW = ("default", "secrets", "smoke", "spot", "standalone", "two-models")
EVERY = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.synth) for name in sorted(DOCUMENTS)
]


@cache
def configuration(name: str) -> Configuration:
    """Return a deployment's configuration."""
    return Configuration.model_validate((DOCUMENTS | QUERIES)[name])


@cache
def charts(name: str) -> tuple[RenderedChart, ...]:
    """Return a deployment's charts; callers copy what they change."""
    return charts_of(configuration(name))


def manifests(name: str) -> list[Manifest]:
    """Return every manifest of a deployment, in apply order."""
    return [manifest for chart in charts(name) for manifest in chart.manifests]


def one(name: str, kind: str, object_name: str) -> Manifest:
    """Return the manifest of one object."""
    (found,) = [
        m for m in manifests(name) if m["kind"] == kind and m["metadata"]["name"] == object_name
    ]
    return found


def kinds(name: str, kind: str) -> list[Manifest]:
    """Return all manifests of a kind."""
    return [m for m in manifests(name) if m["kind"] == kind]


def container(workload: Manifest) -> dict[str, Any]:
    """Return the only container of a workload."""
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found
