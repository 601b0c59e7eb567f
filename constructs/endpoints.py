"""VPC endpoints: how nodes and handlers reach AWS services without the internet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from sonic_eks.config.endpoint_services import ENDPOINT_SERVICES, GATEWAY_SERVICE

# Construct ids, which CloudFormation's logical ids derive from, by service. docs/networking.md says
# for each service which component calls it, from where and as whom.
_IDS = {
    "ec2": "Ec2",
    "ecr.api": "EcrApi",
    "ecr.dkr": "EcrDocker",
    "eks": "Eks",
    "eks-auth": "EksAuth",
    "elasticloadbalancing": "ElasticLoadBalancing",
    "lambda": "Lambda",
    "secretsmanager": "SecretsManager",
    "sqs": "Sqs",
    "ssm": "Ssm",
    "sts": "Sts",
}

# What is called through each endpoint of a VPC of the deployment's own; docs/networking.md says by
# whom. Amazon ECR's two endpoints are the API and the registry of one service, and get the same.
_PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
)
_ACTIONS: Mapping[str, Sequence[str]] = {
    # The add-ons' part of it is in policies of AWS (AmazonEKS_CNI_Policy, AmazonEBSCSIDriverPolicy,
    # AmazonEKSWorkerNodePolicy) that grow with them; a list here would break their next version.
    "ec2": ("ec2:*",),
    "ecr.api": _PULL,
    "ecr.dkr": _PULL,
    "eks": ("eks:DescribeCluster",),
    "elasticloadbalancing": (
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:DescribeTargetGroups",
        "elasticloadbalancing:DescribeTargetHealth",
        "elasticloadbalancing:ModifyTargetGroup",
        "elasticloadbalancing:ModifyTargetGroupAttributes",
        "elasticloadbalancing:RegisterTargets",
    ),
    "lambda": ("lambda:GetFunction", "lambda:InvokeFunction"),
    "secretsmanager": ("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"),
    "sqs": ("sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"),
    "ssm": ("ssm:GetParameter",),
    "sts": ("sts:GetCallerIdentity",),
}

# No document found says that this service takes an endpoint policy, and a refused one fails the
# first deployment. It has one action, which answers only nodes of the account's clusters.
_WITHOUT_POLICY = frozenset({"eks-auth"})


class PrivateEndpoints(Construct):
    """The S3 gateway endpoint and the interface endpoints that the cluster calls.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.
    vpc : aws_ec2.IVpc
        The VPC.
    vpc_cidr : str
        Its IPv4 range, literal; what may call the interface endpoints.
    interface_subnets : sequence of aws_ec2.ISubnet
        Where the interface endpoints are, at most one subnet a zone.
    s3_subnets : sequence of aws_ec2.ISubnet
        Subnets whose route tables lead to S3.
    bootstrap_qualifier : str
        Qualifier of the CDK bootstrap stack, for the name of its asset bucket.
    zones_by_service : mapping of str to sequence of str
        Zones of an endpoint whose service is not offered in every zone.
    there : sequence of str
        Services whose endpoints the VPC has already.
    is_shared : bool
        Whether others use the VPC. Their calls pass through the endpoints too, as private DNS leads
        them there, so then any action of a service is admitted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        vpc_cidr: str,
        interface_subnets: Sequence[ec2.ISubnet],
        s3_subnets: Sequence[ec2.ISubnet],
        bootstrap_qualifier: str,
        zones_by_service: Mapping[str, Sequence[str]],
        there: Sequence[str] = (),
        is_shared: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self._is_shared = is_shared
        missing = [service for service in ENDPOINT_SERVICES if service not in there]
        if GATEWAY_SERVICE in missing:
            missing.remove(GATEWAY_SERVICE)
            self._add_gateway(vpc, s3_subnets, bootstrap_qualifier)
        if not missing:
            return
        group = self._security_group(vpc, vpc_cidr)
        for service in missing:
            zones = zones_by_service.get(service)
            subnets = [s for s in interface_subnets if not zones or s.availability_zone in zones]
            self._add_interface(service, vpc, subnets, group)

    def _add_gateway(
        self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], bootstrap_qualifier: str
    ) -> None:
        gateway = ec2.GatewayVpcEndpoint(
            self,
            "S3",
            vpc=vpc,
            service=ec2.GatewayVpcEndpointAwsService.S3,
            subnets=[ec2.SubnetSelection(subnets=list(subnets))],
        )
        for statement in self._s3_statements(bootstrap_qualifier):
            gateway.add_to_policy(statement)

    def _security_group(self, vpc: ec2.IVpc, vpc_cidr: str) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Interface endpoints: HTTPS from the VPC",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(ec2.Peer.ipv4(vpc_cidr), ec2.Port.tcp(443), "HTTPS from the VPC")
        return group

    def _add_interface(
        self,
        service: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        group: ec2.SecurityGroup,
    ) -> None:
        endpoint = ec2.InterfaceVpcEndpoint(
            self,
            _IDS[service],
            vpc=vpc,
            service=ec2.InterfaceVpcEndpointAwsService(service),
            subnets=ec2.SubnetSelection(subnets=list(subnets)),
            security_groups=[group],
            private_dns_enabled=True,
            open=False,
        )
        if service not in _WITHOUT_POLICY:
            endpoint.add_to_policy(self._calls(service))

    def _calls(self, service: str) -> iam.PolicyStatement:
        """Admit what the deployment calls, as principals of this account.

        No foreign credentials can carry data out. What is called may belong to others, as the
        images of EKS add-ons do. Calls without a principal, such as AssumeRoleWithWebIdentity, are
        refused: pods use Pod Identity.
        """
        stack = cdk.Stack.of(self)
        prefix = _ACTIONS[service][0].partition(":")[0]
        actions = [f"{prefix}:*"] if self._is_shared else list(_ACTIONS[service])
        resources = ["*"]
        if service == "lambda" and not self._is_shared:
            # Of the calls this one carries data: to no function of another account.
            functions = f"{stack.region}:{stack.account}:function:*"
            resources = [f"arn:{stack.partition}:lambda:{functions}"]
        return iam.PolicyStatement(
            sid="Calls",
            principals=[iam.AnyPrincipal()],
            actions=actions,
            resources=resources,
            conditions={
                "StringEquals": {"aws:PrincipalAccount": stack.account},
            },
        )

    def _s3_statements(self, qualifier: str) -> list[iam.PolicyStatement]:
        """List what is read and written through the S3 endpoint, by named buckets.

        The weights bucket is not among them: FSx reads it from its own side.
        """
        stack = cdk.Stack.of(self)
        region, account = stack.region, stack.account

        def objects(*buckets: str) -> list[str]:
            return [f"arn:{stack.partition}:s3:::{bucket}/*" for bucket in buckets]

        def allow(sid: str, action: str, resources: list[str]) -> iam.PolicyStatement:
            return iam.PolicyStatement(
                sid=sid, principals=[iam.AnyPrincipal()], actions=[action], resources=resources
            )

        return [
            # Amazon ECR user guide, "Minimum Amazon S3 bucket permissions for Amazon ECR".
            allow("EcrLayers", "s3:GetObject", objects(f"prod-{region}-starport-layer-bucket")),
            # Packages of Amazon Linux 2023: the suffix is that of every region's bucket (its
            # /etc/yum.repos.d/amazonlinux.repo); a wildcard would admit whoever takes such a name.
            allow(
                "Al2023Packages",
                "s3:GetObject",
                objects(f"al2023-repos-{region}-de612dc2"),
            ),
            allow(
                "CdkAssets", "s3:GetObject", objects(f"cdk-{qualifier}-assets-{account}-{region}")
            ),
            # CloudFormation user guide, "Access CloudFormation using an interface endpoint": the
            # region's name in this bucket's has no hyphens.
            allow(
                "CustomResourceResponses",
                "s3:PutObject",
                objects(f"cloudformation-custom-resource-response-{region.replace('-', '')}"),
            ),
        ]
