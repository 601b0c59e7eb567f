"""Filling the private registry during a deployment."""

from __future__ import annotations

from constructs import Construct

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.constructs.mirror import MirrorBuild
from sonic_eks.stacks.base import DeploymentStack


class MirrorStack(DeploymentStack):
    """The build that copies every image and chart, and the wait for its end.

    A stack of its own: a first copy that fails must not roll the repositories back, and with
    them what it has copied.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    catalogue : Catalogue
        The list.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Configuration,
        catalogue: Catalogue,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: copies into the registry",
        )
        MirrorBuild(self, "Mirror", artifacts=catalogue.artifacts)
