"""What is kept: the bucket of model weights and voices, and its key."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.constructs.weights_bucket import WeightsBucket
from sonic_eks.stacks.base import DeploymentStack


class DataStack(DeploymentStack):
    """The weights bucket and its key, which stay when the stack goes.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.

    Attributes
    ----------
    bucket : aws_s3.IBucket
        Weights and voices.
    """

    bucket: s3.IBucket

    def __init__(self, scope: Construct, construct_id: str, *, config: Configuration) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: weights bucket, kept",
        )
        self.bucket = WeightsBucket(self, "Weights").bucket
        cdk.CfnOutput(self, "WeightsBucketName", value=self.bucket.bucket_name)
