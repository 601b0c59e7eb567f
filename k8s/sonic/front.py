"""The pods that callers reach."""

from __future__ import annotations

from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.k8s.labels import Labels

API = "sonic-api"
STANDALONE = "sonic-standalone"

API_PORT = 5000
READY_PATH = "/status"
HTTP_PORT_NAME = "http"


@dataclass(frozen=True)
class Front:
    """What the load balancer sends streams to.

    Attributes
    ----------
    name : str
        Name of the Deployment, its Service and its binding.
    labels : Labels
        Labels of the pods.
    port : int
        Port of HTTP and WebSocket.
    ready_path : str or None
        Path that answers 200 when a pod serves (API: Cartesia, "Architecture"); None where the
        port alone tells.
    """

    name: str
    labels: Labels
    port: int
    ready_path: str | None


def front_of(config: Configuration) -> Front:
    """Return the front of a deployment: the API pods, or the servers that stand alone."""
    if config.topology == "standalone":
        (model,) = config.models
        labels = Labels.of(config, STANDALONE, component="standalone", model=model.name)
        return Front(STANDALONE, labels, config.standalone.port, config.standalone.readiness_path)
    return Front(API, Labels.of(config, API, component="api"), API_PORT, READY_PATH)
