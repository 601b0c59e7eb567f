"""The standalone topology: one container a GPU that serves HTTP and WebSocket itself.

Keys in YAML are camelCase with the unit in the name; attributes here are snake_case. A section
holds only what the code reads.
"""

from __future__ import annotations

import json
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from sonic_eks.config.base import Bool, Int, Refusal, Section, Str
from sonic_eks.config.secrets import FileName
from sonic_eks.config.values import environment_value

Port = Annotated[Int, Field(ge=1024, le=65_535)]
UrlPath = Annotated[Str, Field(pattern=r"^/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,199}$")]
MetricName = Annotated[Str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,99}$")]

GATE_PORT = 8090
"""Port of the stream gate in every pod that has one."""

BEGIN_DRAIN_PATH = "/begin-drain"
"""Where the gate learns of a pod's end without holding it back."""


def _no_json(name: str) -> None:
    raise ValueError(f"{name} is Python's alone")


class WarmUp(Section):
    """Requests that a server answers before it gets callers; without a body there are none."""

    path: UrlPath = "/tts/bytes"
    """Path that they are posted to."""
    body: Annotated[Str, Field(max_length=4000)] | None = None
    """Body in JSON, such as a short text with a voice that you have; never a secret."""
    requests: Annotated[Int, Field(ge=1, le=100)] = 3
    """Requests that must have been answered."""
    key_file: FileName | None = None
    """Which of the model's `secretFiles` is the API key that goes with them; unset: no key."""

    @model_validator(mode="after")
    def _key(self) -> Self:
        """`keyFile` is given with a `body` alone."""
        if self.key_file is not None and self.body is None:
            raise Refusal(self.key_file, "none while body is unset", field="keyFile")
        return self

    @field_validator("body")
    @classmethod
    def _body(cls, value: str | None) -> str | None:
        """`body` is a JSON object."""
        if value is None:
            return None
        try:
            whole = isinstance(json.loads(value, parse_constant=_no_json), dict)
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            raise Refusal(value, "a JSON object as text")
        return environment_value(value)


class Standalone(Section):
    """How a server that stands alone is reached, watched and warmed up."""

    port: Port = 5000
    """Port of HTTP and WebSocket."""
    metrics_port: Port | None = None
    """Port of GET /metrics, another than `port`; unset: the server's metrics are not read."""
    load_metric: MetricName | None = None
    """Gauge of the generations in progress; unset: scaling is on active streams."""
    readiness_path: UrlPath | None = None
    """Path that answers 200 when the server is ready; unset: the port must accept connections."""
    warm_up: WarmUp = WarmUp()
    """Requests before the first caller."""
    stand_in: Bool = False
    """Whether this project's stand-in serves tones on CPU nodes, without license or GPU."""

    @model_validator(mode="after")
    def _ports(self) -> Self:
        """`port` and `metricsPort` differ and are not 8090.

        `loadMetric` and `standIn` need `metricsPort`.
        """
        if GATE_PORT in (self.port, self.metrics_port):
            name = "port" if self.port == GATE_PORT else "metricsPort"
            raise Refusal(GATE_PORT, "another port: 8090 is the stream gate's", field=name)
        if self.metrics_port == self.port:
            raise Refusal(
                self.metrics_port, f"another than port ({self.port})", field="metricsPort"
            )
        if self.stand_in and self.metrics_port is None:
            raise Refusal(
                None, "a port for the stand-in's metrics, such as 8080", field="metricsPort"
            )
        if self.load_metric is not None and self.metrics_port is None:
            raise Refusal(self.load_metric, "none while metricsPort is unset", field="loadMetric")
        return self
