"""The internal network load balancer in front of the pods that serve."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

# Network Load Balancers guide, "Edit target group attributes": the deregistration delay is 3,600 s
# at most, and at least 120 s is advised so that requests complete.
_DEREGISTRATION_SECONDS = (120, 3600)

# The guide's "Health checks": interval 5-300 s, thresholds 2-10. Two checks let a new pod in after
# 20 s; three take one out after 30 s, so that a single slow answer does not.
_HEALTH_INTERVAL_SECONDS = 10
_HEALTH_TIMEOUT_SECONDS = 6
_HEALTHY_CHECKS = 2
_UNHEALTHY_CHECKS = 3


class StreamLoadBalancer(Construct):
    """An internal load balancer that never cuts a connection to a pod that still serves it.

    It is in one subnet, that of its targets: cross-zone balancing would have nothing to do.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc : aws_ec2.IVpc
        The VPC.
    subnet : aws_ec2.ISubnet
        Where its addresses are, in the zone of the pods.
    name : str
        Physical name, 32 characters at most.
    client_cidrs : sequence of str
        IPv4 ranges that may call the listener.
    target_security_group : aws_ec2.ISecurityGroup
        Security group of the pods; this construct opens it for the load balancer.
    port : int
        The listener's port.
    target_port : int
        The pods' port.
    health_path : str or None
        Path that answers 200 when a pod serves; None where the port alone tells.
    certificate_arn : str, optional
        ARN of an ACM certificate; makes the listener TLS.
    tcp_idle_timeout_seconds : int
        Idle timeout of a TCP listener, 60 to 6000; a TLS listener has 350, fixed.
    drain_seconds : int
        How long a pod that goes may keep serving what it has.
    deletion_protection : bool
        Whether the load balancer refuses to be deleted.
    private_link : bool
        Whether an endpoint service leads here: its traffic then passes by the inbound rules.

    Attributes
    ----------
    load_balancer : aws_elasticloadbalancingv2.NetworkLoadBalancer
        The load balancer.
    target_group : aws_elasticloadbalancingv2.NetworkTargetGroup
        The pods that serve, registered by the load balancer controller.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        name: str,
        client_cidrs: Sequence[str],
        target_security_group: ec2.ISecurityGroup,
        port: int,
        target_port: int,
        health_path: str | None,
        certificate_arn: str | None,
        tcp_idle_timeout_seconds: int,
        drain_seconds: int,
        deletion_protection: bool,
        private_link: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self._target_port = target_port
        targets = target_security_group.security_group_id
        self.load_balancer = elbv2.NetworkLoadBalancer(
            self,
            "LoadBalancer",
            load_balancer_name=name,
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=[subnet]),
            internet_facing=False,
            # A load balancer made without a security group can never get one.
            security_groups=[self._security_group(vpc, client_cidrs, port, targets)],
            cross_zone_enabled=False,
            deletion_protection=deletion_protection,
            # Network Load Balancers guide, "Update the security groups": the rules would match the
            # callers' own addresses, which belong to other networks and may overlap. Who connects
            # is up to the endpoint service: its allowed principals, and acceptance.
            enforce_security_group_inbound_rules_on_private_link_traffic=(
                False if private_link else None
            ),
        )
        cdk.Validations.of(self.load_balancer).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-ELB2",
                reason="Access logs of a network load balancer cover TLS listeners only and are"
                " best effort; the VPC's flow logs record every connection of either listener.",
            )
        )
        self.target_group = self._target_group(vpc, drain_seconds, health_path)
        self._add_listener(port, certificate_arn, tcp_idle_timeout_seconds)

    def _security_group(
        self, vpc: ec2.IVpc, client_cidrs: Sequence[str], port: int, targets: str
    ) -> ec2.ISecurityGroup:
        """Make the load balancer's group, and open the targets' group for it."""
        group = ec2.CfnSecurityGroup(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            group_description="Load balancer: listener from clients, API pods",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=port,
                    to_port=port,
                    cidr_ip=cidr,
                    description="Clients",
                )
                for cidr in client_cidrs
            ],
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="tcp",
                    from_port=self._target_port,
                    to_port=self._target_port,
                    destination_security_group_id=targets,
                    description="API pods",
                )
            ],
        )
        ec2.CfnSecurityGroupIngress(
            self,
            "TargetIngress",
            group_id=targets,
            ip_protocol="tcp",
            from_port=self._target_port,
            to_port=self._target_port,
            source_security_group_id=group.attr_group_id,
            description="API pods from the load balancer",
        )
        return ec2.SecurityGroup.from_security_group_id(
            self, "Imported", group.attr_group_id, mutable=False
        )

    def _target_group(
        self, vpc: ec2.IVpc, drain_seconds: int, health_path: str | None
    ) -> elbv2.NetworkTargetGroup:
        least, most = _DEREGISTRATION_SECONDS
        group = elbv2.NetworkTargetGroup(
            self,
            "Api",
            vpc=vpc,
            protocol=elbv2.Protocol.TCP,
            port=self._target_port,
            target_type=elbv2.TargetType.IP,
            preserve_client_ip=False,
            deregistration_delay=cdk.Duration.seconds(min(most, max(least, drain_seconds))),
            connection_termination=False,
            health_check=elbv2.HealthCheck(
                protocol=elbv2.Protocol.HTTP if health_path else elbv2.Protocol.TCP,
                path=health_path,
                port=str(self._target_port),
                interval=cdk.Duration.seconds(_HEALTH_INTERVAL_SECONDS),
                timeout=cdk.Duration.seconds(_HEALTH_TIMEOUT_SECONDS),
                healthy_threshold_count=_HEALTHY_CHECKS,
                unhealthy_threshold_count=_UNHEALTHY_CHECKS,
            ),
        )
        # By default a target that fails its checks loses its connections at once.
        health = "target_health_state.unhealthy"
        group.set_attribute(f"{health}.connection_termination.enabled", "false")
        group.set_attribute(f"{health}.draining_interval_seconds", str(drain_seconds))
        return group

    def _add_listener(
        self, port: int, certificate_arn: str | None, tcp_idle_timeout_seconds: int
    ) -> None:
        if certificate_arn is None:
            self.load_balancer.add_listener(
                "Listener",
                port=port,
                protocol=elbv2.Protocol.TCP,
                tcp_idle_timeout=cdk.Duration.seconds(tcp_idle_timeout_seconds),
                default_target_groups=[self.target_group],
            )
            return
        self.load_balancer.add_listener(
            "Listener",
            port=port,
            protocol=elbv2.Protocol.TLS,
            certificates=[elbv2.ListenerCertificate.from_arn(certificate_arn)],
            ssl_policy=elbv2.SslPolicy.TLS13_RES,
            default_target_groups=[self.target_group],
        )
