"""Filling the private registry during a deployment."""

from __future__ import annotations

from constructs import Construct

from sonic_eks.config import Configuration
from sonic_eks.constructs.mirror import MirrorRun
from sonic_eks.constructs.mirror_project import MirrorProject
from sonic_eks.stacks.base import DeploymentStack


class MirrorStack(DeploymentStack):
    """The start of the build that copies every image and chart, and the wait for its end.

    A stack of its own: when a first deployment fails or waits no longer, CloudFormation removes
    this, and neither the repositories with what they hold nor the build that still copies.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    build : MirrorProject
        What is run, in another stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        build: MirrorProject,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: copies into the registry",
        )
        MirrorRun(self, "Mirror", build=build)
