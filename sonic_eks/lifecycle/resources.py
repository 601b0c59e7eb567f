"""What an update and a destroy do to each type of resource, typed by hand.

The source of `replaced` is the CloudFormation Template Reference, page of the type, "Update
requires: Replacement", for the properties that the stacks set; the tests hold it against the
resource provider schemas and against the templates.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResourceType:
    """The life cycle of a type of resource.

    Attributes
    ----------
    name : str
        The type, as in a template.
    replaced : tuple of str
        Properties whose change replaces the resource; a change of any other is made in place.
    named_by : str, optional
        Property with a literal name. CloudFormation makes the new resource before it deletes the
        old one, so it refuses to replace one whose name stays the same.
    kept_in : tuple of str
        Stacks that keep it when they are destroyed.
    on_update, on_destroy : str
        What else there is to know.
    """

    name: str
    replaced: tuple[str, ...] = ()
    named_by: str | None = None
    kept_in: tuple[str, ...] = ()
    on_update: str = ""
    on_destroy: str = ""


_T = ResourceType

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    # Network
    _T(
        "AWS::EC2::VPC",
        ("CidrBlock", "InstanceTenancy"),
        on_update="a new VPC is a new deployment: everything in it is replaced",
    ),
    _T(
        "AWS::EC2::Subnet",
        ("AvailabilityZone", "CidrBlock", "VpcId"),
        on_update="fails while interfaces are in it: replace nodes and file system first",
        on_destroy="fails while an interface is in it: run `sonic-eks teardown` again",
    ),
    _T("AWS::EC2::RouteTable", ("VpcId",)),
    _T("AWS::EC2::SubnetRouteTableAssociation", ("RouteTableId", "SubnetId")),
    _T("AWS::EC2::Route", ("DestinationCidrBlock", "RouteTableId")),
    _T("AWS::EC2::InternetGateway"),
    _T("AWS::EC2::VPCGatewayAttachment", ("VpcId",)),
    _T("AWS::EC2::EIP", on_destroy="the address is given back; a vendor's allow-list loses it"),
    _T("AWS::EC2::NatGateway", ("AllocationId", "SubnetId")),
    _T(
        "AWS::EC2::FlowLog",
        (
            "DeliverLogsPermissionArn",
            "LogDestinationType",
            "LogGroupName",
            "ResourceId",
            "ResourceType",
            "TrafficType",
        ),
    ),
    _T("AWS::EC2::VPCEndpoint", ("ServiceName", "VpcEndpointType", "VpcId")),
    _T(
        "AWS::EC2::SecurityGroup",
        ("GroupDescription", "VpcId"),
        on_update="rules change in place; what uses the group moves to the new one first",
    ),
    _T(
        "AWS::EC2::SecurityGroupIngress",
        ("CidrIp", "FromPort", "GroupId", "IpProtocol", "SourceSecurityGroupId", "ToPort"),
    ),
    _T(
        "AWS::Logs::LogGroup",
        ("LogGroupName",),
        named_by="LogGroupName",
        on_destroy="its writer may make it anew; `sonic-eks teardown` deletes it then",
    ),
    # Registry
    _T(
        "AWS::ECR::Repository",
        ("RepositoryName",),
        named_by="RepositoryName",
        on_destroy="emptied first: it holds copies",
    ),
    _T(
        "AWS::ECR::ReplicationConfiguration",
        on_update="all rules of the account in the region are replaced",
        on_destroy="all rules of the account in the region go; copies in other regions stay",
    ),
    _T("AWS::CodeBuild::Project", on_destroy="its builds' records stay"),
    # Mirror
    _T("AWS::StepFunctions::StateMachine"),
    _T(
        "Custom::RegistryMirror",
        on_update="copies again when the list changed, and waits",
        on_destroy="nothing; the copies go with their repositories",
    ),
    # Data and weights
    _T("AWS::KMS::Key", kept_in=("data",), on_destroy="scheduled for deletion in 30 days"),
    _T("AWS::S3::Bucket", kept_in=("data",)),
    _T("AWS::S3::BucketPolicy", ("Bucket",), kept_in=("data",)),
    _T(
        "AWS::FSx::FileSystem",
        ("FileSystemType", "SecurityGroupIds", "SubnetIds"),
        on_update="the old one goes with the Weights stack's update, so a worker that starts"
        " before the Workload stack is updated finds no weights; after it, volume, claim and"
        " workers are on the new one",
        on_destroy="a cache of the bucket; waits for data repository tasks, which"
        " `sonic-eks teardown` cancels",
    ),
    _T(
        "AWS::FSx::DataRepositoryAssociation",
        ("BatchImportMetaDataOnCreate", "DataRepositoryPath", "FileSystemId", "FileSystemPath"),
        on_destroy="the bucket and its objects stay",
    ),
    # Cluster
    _T(
        "AWS::EKS::Cluster",
        (
            "AccessConfig/BootstrapClusterCreatorAdminPermissions",
            "BootstrapSelfManagedAddons",
            "EncryptionConfig",
            "KubernetesNetworkConfig/IpFamily",
            "KubernetesNetworkConfig/ServiceIpv4Cidr",
            "Name",
            "RoleArn",
        ),
        named_by="Name",
        on_update="the version goes up by one minor release at a time",
    ),
    _T("AWS::EKS::AccessEntry", ("ClusterName", "PrincipalArn", "Type")),
    _T("AWS::EKS::Addon", ("AddonName", "ClusterName")),
    _T(
        "AWS::EKS::Nodegroup",
        ("AmiType", "ClusterName", "NodeRole", "Subnets"),
        on_update="another version, AMI or launch template: a node at a time, each drained",
        on_destroy="each node has 5 minutes to drain, so its pods are gone before",
    ),
    _T("AWS::EKS::PodIdentityAssociation", ("ClusterName", "Namespace", "ServiceAccount")),
    _T("AWS::EC2::LaunchTemplate", on_update="a new version, which its node group rolls out"),
    _T(
        "AWS::EC2::PlacementGroup",
        ("Strategy", "Tags"),
        on_update="a changed tag replaces it: GPU nodes move to the new group a node at a time",
        on_destroy="fails while an instance or a Capacity Reservation is in it; the node guard and"
        " `sonic-eks teardown` stop for them before",
    ),
    _T(
        "AWS::IAM::InstanceProfile",
        ("InstanceProfileName",),
        named_by="InstanceProfileName",
    ),
    _T("AWS::IAM::ManagedPolicy", ("Description", "Path")),
    _T("AWS::IAM::Policy"),
    _T("AWS::IAM::Role"),
    _T("AWS::Lambda::Function"),
    _T("AWS::Lambda::LayerVersion", ("Content", "Description", "LicenseInfo")),
    _T("AWS::SQS::Queue", ("QueueName",), named_by="QueueName"),
    _T("AWS::SQS::QueuePolicy"),
    _T("AWS::Events::Rule"),
    _T("AWS::SSM::Parameter"),
    _T(
        "Custom::AWSCDK-EKS-HelmChart",
        on_update="`helm upgrade` that waits for the new pods",
        on_destroy="`helm uninstall` that waits; an error is logged and counts as done",
    ),
    # Workload
    _T(
        "Custom::AWSCDK-EKS-KubernetesResource",
        on_update="`kubectl apply`; does not wait for pods",
        on_destroy="`kubectl delete` that waits for finalizers; an error is logged and counts as"
        " done, which is why there is a node guard",
    ),
    _T(
        "Custom::NodeGuard",
        on_update="nothing",
        on_destroy="waits until no instance of Karpenter is left, fails if one stays",
    ),
    _T("Custom::VpcRestrictDefaultSG", on_destroy="the default group gets its rules back"),
    # Edge
    _T(
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        ("Name", "Scheme", "Type"),
        named_by="Name",
        on_destroy="every connection ends",
    ),
    _T("AWS::ElasticLoadBalancingV2::Listener", ("LoadBalancerArn",)),
    _T(
        "AWS::ElasticLoadBalancingV2::TargetGroup",
        ("Port", "Protocol", "TargetType", "VpcId"),
        on_update="a binding cannot change its target group: run `sonic-eks teardown"
        " --keep-stacks` before a"
        " replacement",
    ),
    _T(
        "AWS::EC2::VPCEndpointService",
        on_destroy="fails while a consumer is connected; `sonic-eks teardown` stops for it before",
    ),
    _T("AWS::EC2::VPCEndpointServicePermissions", ("ServiceId",)),
    _T("AWS::Route53::HostedZone", ("Name",), on_destroy="fails while it has other records"),
    _T("AWS::Route53::RecordSet", ("HostedZoneId",)),
    # Observability
    _T("AWS::CloudWatch::Alarm"),
    _T("AWS::CloudWatch::Dashboard", ("DashboardName",), named_by="DashboardName"),
)
"""Every type of resource in the stacks, by stack."""
