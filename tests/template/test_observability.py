"""The dashboard and alarms."""

from __future__ import annotations

import json

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.synth import changed, stacks_of

TOPIC = "arn:aws:sns:us-east-1:111122223333:oncall"

# "CloudWatch metrics for your Network Load Balancer"; "Monitor cluster data with Amazon
# CloudWatch" (EKS); "Amazon FSx for Lustre metrics and dimensions": names and dimensions.
PUBLISHED = {
    ("AWS/NetworkELB", "HealthyHostCount"): {"LoadBalancer", "TargetGroup"},
    ("AWS/NetworkELB", "TCP_ELB_Reset_Count"): {"LoadBalancer"},
    ("AWS/EKS", "scheduler_pending_pods_UNSCHEDULABLE"): {"ClusterName"},
    ("AWS/FSx", "FreeDataStorageCapacity"): {"FileSystemId"},
}


@pytest.fixture(scope="module")
def notified(default_config: Configuration) -> Template:
    """The observability template of a deployment whose alarms have a topic."""
    config = changed(
        default_config,
        observability={"alarmTopicArn": TOPIC},
        api={"minReplicas": 5, "maxReplicas": 9},
        weights={"capacityGib": 4800},
    )
    return Template.from_stack(stacks_of(config).observability)


def alarms(template: Template) -> dict[str, dict]:
    """Alarm properties by metric name."""
    found = template.find_resources("AWS::CloudWatch::Alarm").values()
    return {alarm["Properties"]["MetricName"]: alarm["Properties"] for alarm in found}


def test_alarms_watch_metrics_that_aws_publishes(templates: dict[str, Template]) -> None:
    seen = {}
    for alarm in alarms(templates["observability"]).values():
        dimensions = {dimension["Name"] for dimension in alarm["Dimensions"]}
        seen[alarm["Namespace"], alarm["MetricName"]] = dimensions
    assert seen == PUBLISHED


def test_alarms_without_a_topic_have_no_action(templates: dict[str, Template]) -> None:
    for alarm in alarms(templates["observability"]).values():
        assert "AlarmActions" not in alarm


def test_alarms_notify_the_topic_on_both_edges(notified: Template) -> None:
    found = alarms(notified)
    assert len(found) == 4
    for alarm in found.values():
        assert alarm["AlarmActions"] == [TOPIC]
        assert alarm["OKActions"] == [TOPIC]


def test_thresholds_follow_the_configuration(notified: Template) -> None:
    found = alarms(notified)
    targets = found["HealthyHostCount"]
    assert (targets["Threshold"], targets["ComparisonOperator"]) == (4, "LessThanThreshold")
    assert targets["TreatMissingData"] == "breaching"
    # A tenth of 4,800 GiB.
    assert found["FreeDataStorageCapacity"]["Threshold"] == 515_396_075_520
    # 300 s of boot and 600 s of loading.
    assert found["scheduler_pending_pods_UNSCHEDULABLE"]["EvaluationPeriods"] == 15


def test_dashboard_shows_every_alarm_and_the_callers_connections(
    templates: dict[str, Template],
) -> None:
    template = templates["observability"]
    (dashboard,) = template.find_resources("AWS::CloudWatch::Dashboard").values()
    body = json.dumps(dashboard["Properties"]["DashboardBody"])
    assert "ActiveFlowCount" in body
    for logical_id in template.find_resources("AWS::CloudWatch::Alarm"):
        assert logical_id in body
