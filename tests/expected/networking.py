"""Endpoints, buckets, ports and limits of the network, typed by hand from the documents named."""

from __future__ import annotations

# Interface endpoints by the last part of the service's name, and the document that asks for it.
INTERFACE_ENDPOINTS = {
    "ec2": 'Amazon EKS user guide, "Deploy private clusters with limited internet access"',
    "ecr.api": 'Amazon EKS user guide, "Deploy private clusters with limited internet access"',
    "ecr.dkr": 'Amazon EKS user guide, "Deploy private clusters with limited internet access"',
    "eks": 'Amazon EKS user guide, "Deploy private clusters with limited internet access"',
    "eks-auth": 'Amazon EKS user guide, "Deploy private clusters", Pod Identity',
    "elasticloadbalancing": 'Amazon EKS user guide, "Deploy private clusters", load balancers',
    "lambda": "CDK provider framework: its function in the VPC calls GetFunction and Invoke",
    "secretsmanager": "AWS Secrets and Configuration Provider, README",
    "sqs": 'Karpenter, "Getting Started", Private Clusters',
    "ssm": 'Karpenter, "Getting Started", Private Clusters',
    "sts": 'Karpenter, "Getting Started", Private Clusters',
}

# Service names that do not begin with com.amazonaws (Amazon VPC, "AWS PrivateLink" for China).
CHINA_ENDPOINTS = {
    "ec2": "cn.com.amazonaws.cn-north-1.ec2",
    "ecr.api": "cn.com.amazonaws.cn-north-1.ecr.api",
    "ecr.dkr": "cn.com.amazonaws.cn-north-1.ecr.dkr",
    "eks": "cn.com.amazonaws.cn-north-1.eks",
    "lambda": "cn.com.amazonaws.cn-north-1.lambda",
    "sqs": "cn.com.amazonaws.cn-north-1.sqs",
    "sts": "cn.com.amazonaws.cn-north-1.sts",
}

# What passes through the S3 endpoint, by region, for the account 111122223333, and from where:
# "Amazon ECR interface VPC endpoints", minimum S3 permissions; Amazon Linux 2023,
# /etc/yum.repos.d/amazonlinux.repo (mirrorlist); CDK bootstrap template, FileAssetsBucketName;
# "VPC endpoints for CloudFormation", custom resources (region names without dashes).
S3_ENDPOINT_OBJECTS = {
    "us-east-1": {
        ("s3:GetObject", "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/*"),
        ("s3:GetObject", "arn:aws:s3:::al2023-repos-us-east-1-de612dc2/*"),
        ("s3:GetObject", "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-us-east-1/*"),
        ("s3:PutObject", "arn:aws:s3:::cloudformation-custom-resource-response-useast1/*"),
    },
    "us-gov-west-1": {
        ("s3:GetObject", "arn:aws-us-gov:s3:::prod-us-gov-west-1-starport-layer-bucket/*"),
        ("s3:GetObject", "arn:aws-us-gov:s3:::al2023-repos-us-gov-west-1-de612dc2/*"),
        ("s3:GetObject", "arn:aws-us-gov:s3:::cdk-hnb659fds-assets-111122223333-us-gov-west-1/*"),
        (
            "s3:PutObject",
            "arn:aws-us-gov:s3:::cloudformation-custom-resource-response-usgovwest1/*",
        ),
    },
    "cn-north-1": {
        ("s3:GetObject", "arn:aws-cn:s3:::prod-cn-north-1-starport-layer-bucket/*"),
        ("s3:GetObject", "arn:aws-cn:s3:::al2023-repos-cn-north-1-de612dc2/*"),
        ("s3:GetObject", "arn:aws-cn:s3:::cdk-hnb659fds-assets-111122223333-cn-north-1/*"),
        ("s3:PutObject", "arn:aws-cn:s3:::cloudformation-custom-resource-response-cnnorth1/*"),
    },
}
# Requests that the S3 endpoint must refuse in us-east-1: buckets of others, by names that resemble
# those above or not, and other actions on those above.
S3_ENDPOINT_REFUSED = (
    ("s3:GetObject", "arn:aws:s3:::weights-of-another-account/model.bin"),
    ("s3:PutObject", "arn:aws:s3:::weights-of-another-account/model.bin"),
    ("s3:ListBucket", "arn:aws:s3:::weights-of-another-account"),
    ("s3:GetObject", "arn:aws:s3:::prod-us-west-2-starport-layer-bucket/layer"),
    ("s3:PutObject", "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/layer"),
    ("s3:GetObject", "arn:aws:s3:::prod-us-east-1-starport-layer-bucket-2/layer"),
    ("s3:GetObject", "arn:aws:s3:::al2023-repos-us-east-1-attacker/x"),
    ("s3:PutObject", "arn:aws:s3:::al2023-repos-us-east-1-de612dc2/x"),
    ("s3:GetObject", "arn:aws:s3:::cdk-hnb659fds-assets-999900001111-us-east-1/asset.zip"),
    ("s3:PutObject", "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-us-east-1/asset.zip"),
    ("s3:GetObject", "arn:aws:s3:::cloudformation-custom-resource-response-useast1/answer"),
    ("s3:PutObject", "arn:aws:s3:::cloudformation-custom-resource-response-uswest2/answer"),
    ("s3:DeleteObject", "arn:aws:s3:::cloudformation-custom-resource-response-useast1/answer"),
    ("s3:ListAllMyBuckets", "*"),
)

# What each interface endpoint must let through: Amazon ECR user guide, "Using Amazon ECR images
# with Amazon EKS" (both of its endpoints); Karpenter 1.14, "CloudFormation" (eks, sqs, ssm: its
# controller's policies); AWS Load Balancer Controller, installation guide, permissions for
# TargetGroupBindings; AWS Secrets and Configuration Provider, README; CDK 2.275, provider framework
# (lambda) and kubectl handler (eks, ecr). Of ec2 everything: AmazonEKS_CNI_Policy,
# AmazonEBSCSIDriverPolicy and AmazonEKSWorkerNodePolicy are AWS's, and grow.
PULL = {
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
}
INTERFACE_ACTIONS = {
    "ec2": {"ec2:*"},
    "ecr.api": PULL,
    "ecr.dkr": PULL,
    "eks": {"eks:DescribeCluster"},
    "elasticloadbalancing": {
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:DescribeTargetGroups",
        "elasticloadbalancing:DescribeTargetHealth",
        "elasticloadbalancing:ModifyTargetGroup",
        "elasticloadbalancing:ModifyTargetGroupAttributes",
        "elasticloadbalancing:RegisterTargets",
    },
    "lambda": {"lambda:GetFunction", "lambda:InvokeFunction"},
    "secretsmanager": {"secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"},
    "sqs": {"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"},
    "ssm": {"ssm:GetParameter"},
    "sts": {"sts:GetCallerIdentity"},
}
# Requests of principals of the account that an endpoint must refuse all the same: they change what
# others rely on, or carry data out.
INTERFACE_REFUSED = {
    "ec2": ("s3:PutObject", "ecr:PutImage"),
    "ecr.api": ("ecr:PutImage", "ecr:CreateRepository", "ecr:SetRepositoryPolicy"),
    "ecr.dkr": ("ecr:PutImage", "ecr:UploadLayerPart", "ecr:InitiateLayerUpload"),
    "eks": ("eks:CreateAccessEntry", "eks:DeleteCluster", "eks:UpdateClusterConfig"),
    "elasticloadbalancing": (
        "elasticloadbalancing:CreateListener",
        "elasticloadbalancing:DeleteTargetGroup",
        "elasticloadbalancing:ModifyLoadBalancerAttributes",
    ),
    "lambda": ("lambda:AddPermission", "lambda:UpdateFunctionCode"),
    "secretsmanager": ("secretsmanager:CreateSecret", "secretsmanager:PutSecretValue"),
    "sqs": ("sqs:SendMessage", "sqs:PurgeQueue"),
    "ssm": ("ssm:PutParameter", "ssm:SendCommand"),
    "sts": ("sts:AssumeRole", "sts:GetFederationToken"),
}

# docs/networking.md, "Who calls which AWS API": one call of each kind through each interface
# endpoint, and the resource that it names.
INTERFACE_CALLS = {
    "ec2": ("ec2:DescribeInstances", "*"),
    "ecr.api": ("ecr:GetAuthorizationToken", "*"),
    "ecr.dkr": (
        "ecr:BatchGetImage",
        # Images of EKS add-ons are in accounts of AWS ("Amazon container image registries for EKS
        # add-ons").
        "arn:aws:ecr:us-east-1:602401143452:repository/eks/coredns",
    ),
    "eks": ("eks:DescribeCluster", "arn:aws:eks:us-east-1:111122223333:cluster/sonic"),
    "elasticloadbalancing": ("elasticloadbalancing:RegisterTargets", "*"),
    "lambda": ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:111122223333:function:handler"),
    "secretsmanager": (
        "secretsmanager:GetSecretValue",
        "arn:aws:secretsmanager:us-east-1:111122223333:secret:sonic-api-key",
    ),
    "sqs": ("sqs:ReceiveMessage", "arn:aws:sqs:us-east-1:111122223333:sonic-karpenter"),
    "ssm": ("ssm:GetParameter", "arn:aws:ssm:us-east-1::parameter/aws/service/eks/x"),
    "sts": ("sts:GetCallerIdentity", "*"),
}

# Amazon FSx for Lustre user guide, "File system access control with Amazon VPC": TCP ports.
LUSTRE_PORTS = {(988, 988), (1018, 1023)}

# Elastic Load Balancing, "Edit target group attributes for your Network Load Balancer": attribute
# names, deregistration delay of 0-3600 s with 120 s or more advised.
DEREGISTRATION_DELAY = "deregistration_delay.timeout_seconds"
DEREGISTRATION_CUTS = "deregistration_delay.connection_termination.enabled"
UNHEALTHY_CUTS = "target_health_state.unhealthy.connection_termination.enabled"
UNHEALTHY_DRAINING = "target_health_state.unhealthy.draining_interval_seconds"
PRESERVE_CLIENT_IP = "preserve_client_ip.enabled"
LEAST_DEREGISTRATION_SECONDS = 120
MOST_DEREGISTRATION_SECONDS = 3600

# Elastic Load Balancing API reference, CreateLoadBalancer, Name.
LOAD_BALANCER_NAME_LIMIT = 32

# Elastic Load Balancing, "Security policies for your Network Load Balancer": policies that offer
# TLS 1.3 and 1.2 alone, with forward secrecy and authenticated encryption only.
MODERN_TLS_POLICIES = {
    "ELBSecurityPolicy-TLS13-1-2-Res-2021-06",
    "ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09",
    "ELBSecurityPolicy-TLS13-1-3-2021-06",
    "ELBSecurityPolicy-TLS13-1-3-PQ-2025-09",
}

# Amazon VPC user guide, "VPC CIDR blocks" and "Subnet CIDR blocks": prefix lengths.
SMALLEST_SUBNET_PREFIX = 28

# Amazon VPC, "AWS PrivateLink": names of endpoint services begin with this, by partition.
ENDPOINT_SERVICE_PREFIXES = {
    "us-east-1": "com.amazonaws.vpce.",
    "us-gov-west-1": "com.amazonaws.vpce.",
    "cn-north-1": "cn.com.amazonaws.vpce.",
}
