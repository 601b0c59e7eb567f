"""The bucket that keeps model weights and voices, and its key."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

# FSx for Lustre user guide, "Working with server-side encrypted Amazon S3 buckets": the role that
# FSx makes for each linked file system, and what it needs of the bucket's key.
_FSX_ROLES = (
    "aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
)
_FSX_KEY_ACTIONS = (
    "kms:Encrypt",
    "kms:Decrypt",
    "kms:ReEncrypt*",
    "kms:GenerateDataKey*",
    "kms:DescribeKey",
)

_NONCURRENT_DAYS = 90
_MULTIPART_DAYS = 7


class WeightsBucket(Construct):
    """A versioned bucket encrypted with its own key; both outlive the stack.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The stack and the construct's id.

    Attributes
    ----------
    bucket : aws_s3.Bucket
        The bucket. Its notifications belong to FSx, which writes them when it links the bucket.
    key : aws_kms.Key
        The bucket's key.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.key = kms.Key(
            self,
            "Key",
            description="Weights bucket",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        self._let_fsx_use_the_key()
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    noncurrent_version_expiration=cdk.Duration.days(_NONCURRENT_DAYS),
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(_MULTIPART_DAYS),
                )
            ],
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        # A kept bucket that loses its policy would answer over plain HTTP again.
        policy = self.bucket.policy
        if policy is not None:
            policy.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
        cdk.Validations.of(self.bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-S1",
                reason="Holds vendor weights, written at a release and read by FSx alone; whoever"
                " reads or writes also uses the bucket's own key, and CloudTrail records that."
                " An access log would need a second bucket to be kept with this one.",
            )
        )

    def _let_fsx_use_the_key(self) -> None:
        """Let the roles of FSx use the key through S3.

        A role is made with its file system, so it cannot be named as the principal; and naming
        the account instead would only delegate to IAM policies, which these roles lack for KMS.
        The bucket's ARN is no condition, since key and bucket would then wait for each other;
        nothing but the bucket is encrypted with the key.
        """
        stack = cdk.Stack.of(self)
        roles = f"arn:{stack.partition}:iam::{stack.account}:role/{_FSX_ROLES}"
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="FsxThroughS3",
                principals=[iam.AnyPrincipal()],
                actions=list(_FSX_KEY_ACTIONS),
                resources=["*"],
                conditions={
                    "StringEquals": {"kms:CallerAccount": stack.account},
                    # Ends in .cn in some partitions; only AWS services can set this key.
                    "StringLike": {"kms:ViaService": f"s3.{stack.region}.amazonaws.com*"},
                    "ArnLike": {"aws:PrincipalArn": roles},
                },
            )
        )
