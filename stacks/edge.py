"""Where callers connect: the internal load balancer, its name and its endpoint service."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.constructs.load_balancer import StreamLoadBalancer
from sonic_eks.constructs.private_dns import PrivateName
from sonic_eks.constructs.private_link import StreamEndpointService
from sonic_eks.k8s.sonic.front import front_of
from sonic_eks.late import Late
from sonic_eks.names import Names
from sonic_eks.stacks.base import DeploymentStack


class EdgeStack(DeploymentStack):
    """The internal load balancer and the target group of the API pods.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    vpc : aws_ec2.IVpc
        The VPC.
    subnet : aws_ec2.ISubnet
        The serving subnet.
    cluster_security_group : aws_ec2.ISecurityGroup
        Security group of nodes and pods.

    Attributes
    ----------
    load_balancer : aws_elasticloadbalancingv2.NetworkLoadBalancer
        The load balancer.
    target_group : aws_elasticloadbalancingv2.NetworkTargetGroup
        The API pods.
    """

    load_balancer: elbv2.NetworkLoadBalancer
    target_group: elbv2.NetworkTargetGroup

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        cluster_security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: load balancer",
        )
        edge = StreamLoadBalancer(
            self,
            "Edge",
            vpc=vpc,
            subnet=subnet,
            name=Names(config.deployment.name).load_balancer,
            client_cidrs=config.client_cidrs,
            target_security_group=cluster_security_group,
            port=config.edge.port,
            target_port=front_of(config).port,
            health_path=front_of(config).ready_path,
            certificate_arn=config.edge.certificate_arn,
            tcp_idle_timeout_seconds=config.edge.tcp_idle_timeout_seconds,
            drain_seconds=config.drain.budget_seconds,
            deletion_protection=config.deployment.termination_protection,
            private_link=config.edge.private_link is not None,
        )
        self.load_balancer = edge.load_balancer
        self.target_group = edge.target_group
        self.give_out(Late.TARGET_GROUP, self.target_group.target_group_arn)
        cdk.CfnOutput(self, "LoadBalancerDnsName", value=self.load_balancer.load_balancer_dns_name)
        self._add_private_link(config)
        self._add_private_dns(config, vpc)

    def _add_private_link(self, config: Configuration) -> None:
        link = config.edge.private_link
        if link is None:
            return
        service = StreamEndpointService(
            self,
            "PrivateLink",
            load_balancer=self.load_balancer,
            allowed_principal_arns=link.allowed_principal_arns,
            acceptance_required=link.acceptance_required,
        )
        cdk.CfnOutput(self, "EndpointServiceName", value=service.service_name)

    def _add_private_dns(self, config: Configuration, vpc: ec2.IVpc) -> None:
        dns = config.edge.private_dns
        if dns is None:
            return
        name = PrivateName(
            self,
            "PrivateDns",
            vpc=vpc,
            load_balancer=self.load_balancer,
            zone_name=dns.zone_name,
            record_name=dns.record_name,
            hosted_zone_id=dns.hosted_zone_id,
        )
        cdk.CfnOutput(self, "PrivateDnsName", value=name.domain_name)
