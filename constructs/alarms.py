"""Alarms on what a caller would notice, from metrics that AWS services publish themselves."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_sns as sns
from constructs import Construct

_MINUTE = cdk.Duration.minutes(1)


class ServiceAlarms(Construct):
    """Alarms of load balancer, scheduler and file system.

    Metric names and statistics: "CloudWatch metrics for your Network Load Balancer", "Monitor
    cluster data with Amazon CloudWatch" (EKS user guide), "Amazon FSx for Lustre metrics and
    dimensions".

    Parameters
    ----------
    scope, construct_id : Construct, str
        Parent and id.
    load_balancer, target_group : NetworkLoadBalancer, NetworkTargetGroup
        What callers reach, and the pods behind it.
    cluster_name : str
        Name of the EKS cluster.
    file_system_id : str
        Id of the weights' file system.
    min_healthy_targets : int
        Pods below which the service has lost its redundancy.
    unschedulable_minutes : int
        Minutes that a pod may wait for a node: boot of a node, images and weights included.
    min_free_bytes : int
        Free space of the file system in bytes.
    topic : ITopic, optional
        Who is told; without it an alarm only changes state.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        load_balancer: elbv2.NetworkLoadBalancer,
        target_group: elbv2.NetworkTargetGroup,
        cluster_name: str,
        file_system_id: str,
        min_healthy_targets: int,
        unschedulable_minutes: int,
        min_free_bytes: int,
        topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._topic = topic
        self.healthy_targets = target_group.metrics.healthy_host_count(
            statistic=cloudwatch.Stats.MINIMUM, period=_MINUTE
        )
        self.load_balancer_resets = load_balancer.metrics.tcp_elb_reset_count(period=_MINUTE)
        self.unschedulable = _unschedulable(cluster_name)
        self.free_space = _free_space(file_system_id)
        self.alarms = [
            self._alarm(
                "TooFewTargets",
                self.healthy_targets,
                f"fewer than {min_healthy_targets} pods take calls",
                below=min_healthy_targets,
                minutes=3,
                # No target at all is no data point.
                missing=cloudwatch.TreatMissingData.BREACHING,
            ),
            self._alarm(
                "ConnectionsReset",
                self.load_balancer_resets,
                "the load balancer reset connections: callers were cut or sent to a pod that left",
                above=0,
                minutes=5,
                # A single caller that speaks after the idle timeout is reset too.
                breaching_minutes=3,
            ),
            self._alarm(
                "PodsWaitForNodes",
                self.unschedulable,
                f"pods found no node for {unschedulable_minutes} minutes: GPU capacity, quota or"
                " limits of the node pools",
                above=0,
                minutes=unschedulable_minutes,
            ),
            self._alarm(
                "WeightsAlmostFull",
                self.free_space,
                "less than a tenth of the weights' file system is free",
                below=min_free_bytes,
                minutes=15,
            ),
        ]

    def _alarm(
        self,
        construct_id: str,
        metric: cloudwatch.Metric,
        description: str,
        *,
        minutes: int,
        above: float | None = None,
        below: float = 0,
        breaching_minutes: int | None = None,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        operator = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            alarm_description=description,
            threshold=below if above is None else above,
            comparison_operator=(
                operator.LESS_THAN_THRESHOLD if above is None else operator.GREATER_THAN_THRESHOLD
            ),
            evaluation_periods=minutes,
            datapoints_to_alarm=breaching_minutes,
            treat_missing_data=missing,
        )
        if self._topic is not None:
            action = actions.SnsAction(self._topic)
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
        return alarm


def _unschedulable(cluster_name: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/EKS",
        # The gauge, not the attempts: a pod that waits is tried again only now and then.
        metric_name="scheduler_pending_pods_UNSCHEDULABLE",
        dimensions_map={"ClusterName": cluster_name},
        statistic=cloudwatch.Stats.MAXIMUM,
        period=_MINUTE,
    )


def _free_space(file_system_id: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/FSx",
        metric_name="FreeDataStorageCapacity",
        dimensions_map={"FileSystemId": file_system_id},
        statistic=cloudwatch.Stats.SUM,
        period=_MINUTE,
    )
