"""Factories for probes; every one states its whole budget."""

from __future__ import annotations

from collections.abc import Sequence

from cdk8s_plus_35 import k8s


def http_probe(
    path: str, port: str, *, period_seconds: int, failures: int, timeout_seconds: int = 3
) -> k8s.Probe:
    """Return a probe that wants a 2xx or 3xx answer to GET.

    Parameters
    ----------
    path, port : str, str
        What is asked, and the name of the container's port.
    period_seconds, timeout_seconds : int
        Time between two probes, and until one has failed.
    failures : int
        Consecutive failures until the probe counts as failed.
    """
    return k8s.Probe(
        http_get=k8s.HttpGetAction(path=path, port=k8s.IntOrString.from_string(port)),
        period_seconds=period_seconds,
        failure_threshold=failures,
        timeout_seconds=timeout_seconds,
    )


def tcp_probe(
    port: str, *, period_seconds: int, failures: int, timeout_seconds: int = 3
) -> k8s.Probe:
    """Return a probe that wants the port to accept a connection (see `http_probe`)."""
    return k8s.Probe(
        tcp_socket=k8s.TcpSocketAction(port=k8s.IntOrString.from_string(port)),
        period_seconds=period_seconds,
        failure_threshold=failures,
        timeout_seconds=timeout_seconds,
    )


def exec_probe(
    command: Sequence[str], *, period_seconds: int, failures: int, timeout_seconds: int = 5
) -> k8s.Probe:
    """Return a probe that wants a command in the container to exit 0 (see `http_probe`)."""
    return k8s.Probe(
        exec=k8s.ExecAction(command=list(command)),
        period_seconds=period_seconds,
        failure_threshold=failures,
        timeout_seconds=timeout_seconds,
    )


def patient_liveness(port: str) -> k8s.Probe:
    """Return a liveness probe that kills only what has not accepted a connection for 5 minutes.

    Liveness never looks at readiness or load: a pod that is busy or draining carries streams, and
    a restart would cut them all.
    """
    return tcp_probe(port, period_seconds=20, failures=15, timeout_seconds=5)
