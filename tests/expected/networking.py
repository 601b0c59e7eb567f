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

# What the S3 endpoint lets through, by partition and region, for the account 111122223333:
# "Amazon ECR interface VPC endpoints", minimum S3 permissions; "AL2023 repositories";
# CDK bootstrap template, FileAssetsBucketName; "VPC endpoints for CloudFormation", custom
# resources (region names without dashes).
S3_ENDPOINT_OBJECTS = {
    "us-east-1": {
        ("s3:GetObject", "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/*"),
        ("s3:GetObject", "arn:aws:s3:::al2023-repos-us-east-1-*/*"),
        ("s3:GetObject", "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-us-east-1/*"),
        ("s3:PutObject", "arn:aws:s3:::cloudformation-custom-resource-response-useast1/*"),
    },
    "us-gov-west-1": {
        ("s3:GetObject", "arn:aws-us-gov:s3:::prod-us-gov-west-1-starport-layer-bucket/*"),
        ("s3:GetObject", "arn:aws-us-gov:s3:::al2023-repos-us-gov-west-1-*/*"),
        ("s3:GetObject", "arn:aws-us-gov:s3:::cdk-hnb659fds-assets-111122223333-us-gov-west-1/*"),
        (
            "s3:PutObject",
            "arn:aws-us-gov:s3:::cloudformation-custom-resource-response-usgovwest1/*",
        ),
    },
    "cn-north-1": {
        ("s3:GetObject", "arn:aws-cn:s3:::prod-cn-north-1-starport-layer-bucket/*"),
        ("s3:GetObject", "arn:aws-cn:s3:::al2023-repos-cn-north-1-*/*"),
        ("s3:GetObject", "arn:aws-cn:s3:::cdk-hnb659fds-assets-111122223333-cn-north-1/*"),
        ("s3:PutObject", "arn:aws-cn:s3:::cloudformation-custom-resource-response-cnnorth1/*"),
    },
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
