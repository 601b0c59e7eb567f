"""Services: every address that a client uses leads to ready pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.deployments import configuration, kinds, one

WORKLOADS = ("Deployment", "StatefulSet")
# Services by hand: namespace, port, and the workload that answers. Callers do not use one: the
# load balancer has the API pods' addresses (TargetGroupBinding).
SERVICES = {
    "nats": ("sonic", 4222, "nats"),
    "sonic-license-proxy": ("sonic", None, "sonic-license-proxy"),
}


def selected(service: dict[str, Any], deployment: str) -> list[dict[str, Any]]:
    """Return the workloads whose pods a Service selects."""
    return [
        workload
        for kind in WORKLOADS
        for workload in kinds(deployment, kind)
        if workload["metadata"]["namespace"] == service["metadata"]["namespace"]
        and service["spec"]["selector"].items()
        <= workload["spec"]["template"]["metadata"]["labels"].items()
    ]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_there_and_leads_to_its_pods(name: str) -> None:
    namespace, port, answers = SERVICES[name]
    service = one("default", "Service", name)
    assert service["metadata"]["namespace"] == namespace
    (workload,) = selected(service, "default")
    assert workload["metadata"]["name"] == answers
    ports = [p["port"] for p in service["spec"]["ports"]]
    assert port is None or port in ports


def test_every_service_selects_one_workload(deployment: str) -> None:
    for service in kinds(deployment, "Service"):
        (workload,) = selected(service, deployment)
        declared = {
            port.get("name"): port["containerPort"]
            for container in workload["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports", [])
        }
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            assert target in declared or target in declared.values(), service["metadata"]["name"]


def test_the_members_of_a_stateful_set_have_names(deployment: str) -> None:
    several = [s for s in kinds(deployment, "StatefulSet") if s["spec"]["replicas"] > 1]
    assert bool(several) == (configuration(deployment).topology == "distributed")
    for stateful in several:
        (service,) = (
            service
            for service in kinds(deployment, "Service")
            if service["metadata"]["name"] == stateful["spec"]["serviceName"]
            and service["metadata"]["namespace"] == stateful["metadata"]["namespace"]
        )
        # Kubernetes documentation, "StatefulSets", stable network ID: a headless Service.
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True, "members find each other first"
