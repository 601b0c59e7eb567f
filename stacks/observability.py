"""Dashboard and alarms of a deployment."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_sns as sns
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.constructs.alarms import ServiceAlarms
from sonic_eks.names import Names, physical_name
from sonic_eks.stacks.base import DeploymentStack

_NODE_BOOT_SECONDS = 300
"""Allowance for a GPU node to boot and join before its pod pulls an image."""

_GIB = 1024**3


class ObservabilityStack(DeploymentStack):
    """Alarms on what callers notice, and one dashboard.

    Log groups are not here: each lies beside what writes it, since it must exist first.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    load_balancer, target_group : NetworkLoadBalancer, NetworkTargetGroup
        The edge.
    file_system_id : str
        Id of the weights' file system.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        load_balancer: elbv2.NetworkLoadBalancer,
        target_group: elbv2.NetworkTargetGroup,
        file_system_id: str,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: dashboard and alarms",
        )
        topic_arn = config.observability.alarm_topic_arn
        slowest_load = max(model.load_seconds for model in config.models)
        alarms = ServiceAlarms(
            self,
            "Alarms",
            load_balancer=load_balancer,
            target_group=target_group,
            cluster_name=Names(config.deployment.name).cluster,
            file_system_id=file_system_id,
            # One pod may be rolling or replaced without loss of redundancy.
            min_healthy_targets=max(2, config.api_min_replicas - 1),
            unschedulable_minutes=-(-(_NODE_BOOT_SECONDS + slowest_load) // 60),
            min_free_bytes=config.weights.capacity_gib * _GIB // 10,
            topic=None if topic_arn is None else sns.Topic.from_topic_arn(self, "Topic", topic_arn),
        )
        self._dashboard(config, alarms, load_balancer, file_system_id)

    def _dashboard(
        self,
        config: Configuration,
        alarms: ServiceAlarms,
        load_balancer: elbv2.NetworkLoadBalancer,
        file_system_id: str,
    ) -> None:
        period = cdk.Duration.minutes(1)
        metrics = load_balancer.metrics
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=physical_name(config.deployment.name, config.deployment.region),
            default_interval=cdk.Duration.hours(3),
            widgets=[
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms.alarms, width=24)],
                [
                    cloudwatch.GraphWidget(
                        title="Connections of callers",
                        left=[metrics.active_flow_count(period=period)],
                        right=[metrics.new_flow_count(period=period)],
                    ),
                    cloudwatch.GraphWidget(
                        title="Pods that take calls", left=[alarms.healthy_targets]
                    ),
                    cloudwatch.GraphWidget(
                        title="Resets",
                        left=[
                            alarms.load_balancer_resets,
                            metrics.tcp_target_reset_count(period=period),
                            metrics.tcp_client_reset_count(period=period),
                        ],
                    ),
                    cloudwatch.GraphWidget(
                        title="Pods without a node", left=[alarms.unschedulable]
                    ),
                ],
                [
                    cloudwatch.GraphWidget(
                        title="Weights: bytes read",
                        left=[
                            cloudwatch.Metric(
                                namespace="AWS/FSx",
                                metric_name="DataReadBytes",
                                dimensions_map={"FileSystemId": file_system_id},
                                statistic=cloudwatch.Stats.SUM,
                                period=period,
                            )
                        ],
                    ),
                    cloudwatch.GraphWidget(title="Weights: bytes free", left=[alarms.free_space]),
                ],
            ],
        )
