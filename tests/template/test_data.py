"""The weights bucket and its key."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.synth import changed
from tests.template.foundation import ACCOUNT, data_of, only, resources

# FSx for Lustre user guide, "Using service-linked roles": the role of a linked file system.
FSX_ROLE = (
    "arn:{partition}:iam::{account}:role/aws-service-role/"
    "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-0123456789abcdef0"
)
# The same guide, "Working with server-side encrypted Amazon S3 buckets".
FSX_KEY_ACTIONS = {
    "kms:Encrypt",
    "kms:Decrypt",
    "kms:ReEncrypt*",
    "kms:GenerateDataKey*",
    "kms:DescribeKey",
}
REGIONS = {
    "us-east-1": ("aws", "s3.us-east-1.amazonaws.com"),
    "us-gov-west-1": ("aws-us-gov", "s3.us-gov-west-1.amazonaws.com"),
    "cn-north-1": ("aws-cn", "s3.cn-north-1.amazonaws.com.cn"),
}


def in_region(config: Configuration, region: str) -> Template:
    zones = [f"{region}a", f"{region}b"]
    config = changed(
        config, deployment={"region": region, "account": ACCOUNT}, network={"zones": zones}
    )
    return Template.from_stack(data_of(config))


def admits(statement: dict[str, Any], context: dict[str, str]) -> bool:
    """Evaluate a statement's conditions as IAM does, for the operators used here."""
    for operator, conditions in statement["Condition"].items():
        for key, pattern in conditions.items():
            exact = operator == "StringEquals"
            assert exact or operator in {"StringLike", "ArnLike"}
            given = context.get(key, "")
            if not (given == pattern if exact else fnmatchcase(given, pattern)):
                return False
    return True


def test_bucket_and_key_stay(templates: dict[str, Template]) -> None:
    for kind in ("S3::Bucket", "S3::BucketPolicy", "KMS::Key"):
        kept = only(templates["data"], f"AWS::{kind}")
        assert kept["DeletionPolicy"] == kept["UpdateReplacePolicy"] == "Retain"


def test_bucket_is_private_versioned_and_encrypted_with_its_key(
    templates: dict[str, Template],
) -> None:
    bucket = only(templates["data"], "AWS::S3::Bucket")["Properties"]
    (key,) = resources(templates["data"], "AWS::KMS::Key")
    assert bucket["PublicAccessBlockConfiguration"] == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    assert rule["ServerSideEncryptionByDefault"] == {
        "SSEAlgorithm": "aws:kms",
        "KMSMasterKeyID": {"Fn::GetAtt": [key, "Arn"]},
    }
    assert only(templates["data"], "AWS::KMS::Key")["Properties"]["EnableKeyRotation"] is True


def test_old_versions_and_broken_uploads_go_current_objects_stay(
    templates: dict[str, Template],
) -> None:
    bucket = only(templates["data"], "AWS::S3::Bucket")["Properties"]
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == "Enabled"
    assert rule["NoncurrentVersionExpiration"]["NoncurrentDays"] >= 30
    assert rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] <= 7
    assert not {"ExpirationInDays", "ExpirationDate", "Transitions"} & set(rule)


def test_bucket_policy_asks_for_tls_and_for_no_endpoint(templates: dict[str, Template]) -> None:
    policy = only(templates["data"], "AWS::S3::BucketPolicy")["Properties"]["PolicyDocument"]
    # FSx reads from its own side, not through the VPC's endpoint: no aws:sourceVpce.
    (statement,) = policy["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Action"] == "s3:*"
    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (bucket,) = resources(templates["data"], "AWS::S3::Bucket")
    arn = {"Fn::GetAtt": [bucket, "Arn"]}
    assert statement["Resource"] == [arn, {"Fn::Join": ["", [arn, "/*"]]}]


def test_fsx_owns_the_notifications(templates: dict[str, Template]) -> None:
    template = templates["data"]
    assert "NotificationConfiguration" not in only(template, "AWS::S3::Bucket")["Properties"]
    template.resource_count_is("Custom::S3BucketNotifications", 0)


@pytest.mark.parametrize("region", REGIONS)
def test_key_serves_fsx_through_s3_and_nobody_else(
    default_config: Configuration, region: str
) -> None:
    template = in_region(default_config, region)
    policy = only(template, "AWS::KMS::Key")["Properties"]["KeyPolicy"]
    admin, fsx = policy["Statement"]
    partition, service = REGIONS[region]
    assert admin["Principal"] == {"AWS": f"arn:{partition}:iam::{ACCOUNT}:root"}

    assert fsx["Effect"] == "Allow"
    assert set(fsx["Action"]) == FSX_KEY_ACTIONS
    request = {
        "kms:CallerAccount": ACCOUNT,
        "kms:ViaService": service,
        "aws:PrincipalArn": FSX_ROLE.format(partition=partition, account=ACCOUNT),
    }
    assert admits(fsx, request)
    for key, value in (
        ("kms:CallerAccount", "999988887777"),
        ("kms:ViaService", f"secretsmanager.{region}.amazonaws.com"),
        ("kms:ViaService", "s3.eu-west-1.amazonaws.com"),
        ("kms:ViaService", ""),
        ("aws:PrincipalArn", FSX_ROLE.format(partition=partition, account="999988887777")),
        ("aws:PrincipalArn", f"arn:{partition}:iam::{ACCOUNT}:role/AWSServiceRoleForFSxS3Access_x"),
        ("aws:PrincipalArn", f"arn:{partition}:iam::{ACCOUNT}:user/somebody"),
        ("aws:PrincipalArn", request["aws:PrincipalArn"].replace("FSxS3Access", "Other")),
    ):
        assert not admits(fsx, {**request, key: value})


def test_output_names_the_bucket(templates: dict[str, Template]) -> None:
    (bucket,) = resources(templates["data"], "AWS::S3::Bucket")
    outputs = templates["data"].to_json()["Outputs"]
    assert outputs["WeightsBucketName"]["Value"] == {"Ref": bucket}


def test_nothing_replaceable_shares_the_stack(templates: dict[str, Template]) -> None:
    kinds = {r["Type"] for r in templates["data"].to_json()["Resources"].values()}
    assert kinds == {"AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::KMS::Key"}
