"""The two topologies: what each needs, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

Changes = list[tuple[str, Any]]

ALONE: Changes = [("topology", "standalone"), ("models", [{"image": "server"}])]
STAND_IN: Changes = [
    ("topology", "standalone"),
    ("standalone.standIn", True),
    ("standalone.metricsPort", 8080),
    ("license.mode", "none"),
    ("nodes.gpu.instanceType", "m7i.large"),
]


@pytest.mark.parametrize(
    "changes",
    [
        ALONE,
        [*ALONE, ("license.mode", "none"), ("network.egress", "none")],
        [*ALONE, ("standalone.port", 65_535), ("standalone.metricsPort", 1024)],
        [*ALONE, ("standalone.metricsPort", 8080), ("standalone.loadMetric", "load_1")],
        [*ALONE, ("standalone.warmUp", {"body": '{"a": 1}', "requests": 100, "path": "/x?y=1"})],
        [*ALONE, ("scaling.generationsPerStream", 0.01)],
        [("topology", "distributed")],
        STAND_IN,
    ],
)
def test_accepted(tmp_path: Path, changes: Changes) -> None:
    config = load(with_values(*changes), tmp_path)
    assert config.has_serving_nodes == (config.topology == "distributed")


NO_GPU = (
    "nodes.gpu.instanceType: got 'm7i.large'; allowed: an x86_64 type with whole NVIDIA GPUs,"
    " Ampere or newer, 24 GB or more"
)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([("standalone.port", 6000)], "standalone: got 'settings'; allowed: none, or topology: s"),
        ([*ALONE, ("api.minReplicas", 4)], "api: got 'settings'; allowed: none, or topology: dist"),
        ([*ALONE, ("nodes.serving.size", 4)], "nodes.serving: got 'settings'; allowed: none, or t"),
        (
            [("topology", "standalone")],
            "models.0.image: got nothing; allowed: the server's repository in the vendor's",
        ),
        (
            [*ALONE, ("models", [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}])],
            "models: got 2; allowed: one model",
        ),
        (
            [*ALONE, ("models", [{"image": "a", "natsUrlEnv": "NATS"}])],
            "models.0.natsUrlEnv: got 'NATS'; allowed: none: topology standalone has no NATS",
        ),
        (
            [
                *ALONE,
                ("license.mode", "none"),
                ("models", [{"image": "a", "licenseUrlEnv": "LICENSE"}]),
            ],
            "models.0.licenseUrlEnv: got 'LICENSE'; allowed: none while license.mode is none",
        ),
        (
            [("license.mode", "none")],
            "license.mode: got 'none'; allowed: connected or airGapped while topology is distribut",
        ),
        (
            [*STAND_IN, ("license.mode", "connected")],
            "license.mode: got 'connected'; allowed: none: standalone.standIn needs no license",
        ),
        (
            [*STAND_IN, ("models", [{"image": "a"}])],
            "models.0.image: got 'a'; allowed: none: standalone.standIn serves",
        ),
        (
            [*STAND_IN, ("nodes.gpu.instanceType", "g6.xlarge")],
            "nodes.gpu.instanceType: got 'g6.xlarge'; allowed: a type without a GPU",
        ),
        ([("nodes.gpu.instanceType", "m7i.large")], NO_GPU),
        ([*ALONE, ("nodes.gpu.instanceType", "m7i.large")], NO_GPU),
        ([*ALONE, ("standalone.port", 8090)], "standalone.port: got 8090; allowed: another port"),
        (
            [*ALONE, ("standalone.metricsPort", 8090)],
            "standalone.metricsPort: got 8090; allowed: another port",
        ),
        (
            [*ALONE, ("standalone.metricsPort", 5000)],
            "standalone.metricsPort: got 5000; allowed: another than port (5000)",
        ),
        (
            [*ALONE, ("standalone.loadMetric", "load")],
            "standalone.loadMetric: got 'load'; allowed: none while metricsPort is unset",
        ),
        (
            [*ALONE, ("standalone.warmUp.body", "hello")],
            "standalone.warmUp.body: got 'hello'; allowed: a JSON object as text",
        ),
        (
            [*ALONE, ("standalone.warmUp.body", "[1]")],
            "standalone.warmUp.body: got '[1]'; allowed: a JSON object as text",
        ),
        (
            [*ALONE, ("standalone.warmUp.body", '{"a": ' + "[" * 1900 + "]" * 1900 + "}")],
            "standalone.warmUp.body: got '{",
        ),
        (
            [*ALONE, ("standalone.warmUp.body", '{"a": NaN}')],
            "standalone.warmUp.body: got '{\"a\": NaN}'; allowed: a JSON object as text",
        ),
        (
            [*ALONE, ("standalone.warmUp.body", '{"a": "<<known-after-deploy:VpcId>>"}')],
            'standalone.warmUp.body: got \'{"a": "<<known-after-deploy:VpcId>>"}\'; allowed: text',
        ),
        (
            [("scaling.generationsPerStream", 2.0)],
            "scaling.generationsPerStream: got 2.0; allowed: none, as nothing is scaled on it",
        ),
        (
            [
                *ALONE,
                ("standalone.metricsPort", 8080),
                ("standalone.loadMetric", "load"),
                ("scaling.generationsPerStream", 2.0),
            ],
            "scaling.generationsPerStream: got 2.0; allowed: none, as nothing is scaled on it",
        ),
        (
            [*ALONE, ("drain.worker", "wait-idle")],
            "drain.worker: got 'wait-idle'; allowed: sigterm",
        ),
        (
            [*ALONE, ("license.mode", "none"), ("license.env", {"A": "b"})],
            "license: got 'settings'; allowed: mode alone while it is none",
        ),
        (
            [*ALONE, ("weights.mountPath", "/opt/sonic/sidecar/stand_in")],
            "weights.mountPath: got '/opt/sonic/sidecar/stand_in'; allowed: a folder of its own",
        ),
        ([*ALONE, ("standalone.readinessPath", "ready")], "standalone.readinessPath: got 'ready'"),
        ([*ALONE, ("standalone.warmUp.path", "/a b")], "standalone.warmUp.path: got '/a b'"),
        (
            [*ALONE, ("standalone.warmUp", {"body": "{}", "keyFile": "key"})],
            "standalone.warmUp.keyFile: got 'key'; allowed: a name of models.0.secretFiles",
        ),
        (
            [*ALONE, ("standalone.warmUp.keyFile", "key")],
            "standalone.warmUp.keyFile: got 'key'; allowed: none while body is unset",
        ),
        (
            [*STAND_IN, ("standalone.metricsPort", None)],
            "standalone.metricsPort: got nothing; allowed: a port for the stand-in's metrics",
        ),
        ([*ALONE, ("topology", "both")], "topology: got 'both'"),
        ([*ALONE, ("scaling.generationsPerStream", 0)], "scaling.generationsPerStream: got 0"),
    ],
)
def test_refused(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*changes), tmp_path).startswith(fault)
