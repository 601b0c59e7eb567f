"""What every stack of a deployment shares: its environment, name, tags and outputs."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.late import Late


class DeploymentStack(cdk.Stack):
    """A stack in the deployment's account and region.

    Parameters
    ----------
    scope : Construct
        The app.
    construct_id : str
        Id and name of the stack; it starts with the deployment's name.
    config : Configuration
        The deployment.
    description : str
        What the stack holds, for the CloudFormation console.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Configuration, description: str
    ) -> None:
        deployment = config.deployment
        self._zones = list(config.network.zones)
        super().__init__(
            scope,
            construct_id,
            env=cdk.Environment(account=deployment.account, region=deployment.region),
            description=description,
            termination_protection=deployment.termination_protection,
            synthesizer=cdk.DefaultStackSynthesizer(qualifier=deployment.bootstrap_qualifier),
        )
        boundary = deployment.permissions_boundary_arn
        if boundary is not None:
            policy = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", boundary)
            iam.PermissionsBoundary.of(self).apply(policy)

    @property
    def availability_zones(self) -> list[str]:
        """Names of the zones, as configured: for a known account the CDK would look them up."""
        return self._zones

    def give_out(self, value: Late, token: str) -> None:
        """Make a late value an output of the stack, for ``sonic-eks render --outputs``."""
        cdk.CfnOutput(self, value.value, value=token).override_logical_id(value.value)
