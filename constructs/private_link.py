"""The endpoint service: callers in other VPCs and accounts, by AWS PrivateLink."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_iam as iam
from constructs import Construct


class StreamEndpointService(Construct):
    """An endpoint service in front of the load balancer, open to named principals.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    load_balancer : aws_elasticloadbalancingv2.NetworkLoadBalancer
        What it leads to. It must not enforce its inbound rules on PrivateLink traffic.
    allowed_principal_arns : sequence of str
        ARNs of accounts, roles and users that may make an endpoint for it.
    acceptance_required : bool
        Whether each endpoint waits until the owner accepts it.

    Attributes
    ----------
    service_name : str
        The name that callers give their endpoint, a token.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        load_balancer: elbv2.NetworkLoadBalancer,
        allowed_principal_arns: Sequence[str],
        acceptance_required: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        service = ec2.VpcEndpointService(
            self,
            "Service",
            vpc_endpoint_service_load_balancers=[load_balancer],
            acceptance_required=acceptance_required,
            allowed_principals=[iam.ArnPrincipal(arn) for arn in allowed_principal_arns],
        )
        self.service_name = service.vpc_endpoint_service_name
