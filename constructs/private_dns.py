"""The load balancer's name in a private hosted zone."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from constructs import Construct


class PrivateName(Construct):
    """An alias of the load balancer, in a hosted zone of the VPC.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc : aws_ec2.IVpc
        The VPC that a new zone serves.
    load_balancer : aws_elasticloadbalancingv2.NetworkLoadBalancer
        What the name stands for.
    zone_name : str
        Name of the hosted zone.
    record_name : str
        Name of the alias below it.
    hosted_zone_id : str, optional
        Id of a private hosted zone that is there; without it one is made.

    Attributes
    ----------
    domain_name : str
        The whole name, literal.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        load_balancer: elbv2.NetworkLoadBalancer,
        zone_name: str,
        record_name: str,
        hosted_zone_id: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        zone: route53.IHostedZone
        if hosted_zone_id is None:
            zone = route53.PrivateHostedZone(self, "Zone", vpc=vpc, zone_name=zone_name)
        else:
            zone = route53.HostedZone.from_hosted_zone_attributes(
                self, "Zone", hosted_zone_id=hosted_zone_id, zone_name=zone_name
            )
        route53.ARecord(
            self,
            "Alias",
            zone=zone,
            record_name=record_name,
            target=route53.RecordTarget.from_alias(targets.LoadBalancerTarget(load_balancer)),
        )
        self.domain_name = f"{record_name}.{zone_name}"
