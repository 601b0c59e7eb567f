"""The private registry: a repository for every image and chart, and the build that fills them."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.constructs.mirror_project import MirrorProject
from sonic_eks.stacks.base import DeploymentStack


class RegistryStack(DeploymentStack):
    """One repository for each artifact that the cluster pulls, and the build that fills them.

    Tags are immutable and images are scanned when they arrive. The repositories hold copies of
    what their upstreams keep, so they go with the stack, images included. There is no lifecycle
    rule: the platform images of a multi-platform index carry no tag, and a rule that expires
    untagged images would take them from under it.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The app and the stack's name.
    config : Configuration
        The deployment.
    catalogue : Catalogue
        Its artifacts.

    Attributes
    ----------
    mirror : MirrorProject or None
        The build; None where `registry.mirrorOnDeploy` is false.
    """

    mirror: MirrorProject | None = None

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Configuration, catalogue: Catalogue
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            config=config,
            description=f"Sonic on EKS, {config.deployment.name}: images and charts",
        )
        for artifact in catalogue.artifacts:
            ecr.Repository(
                self,
                f"{artifact.kind.value}-{artifact.name}",
                repository_name=artifact.repository,
                image_tag_mutability=ecr.TagMutability.IMMUTABLE,
                image_scan_on_push=True,
                # Copies of public images and of images that the vendor's registry guards: a key
                # of our own would add a policy and a cost, and protect nothing more.
                encryption=ecr.RepositoryEncryption.AES_256,
                empty_on_delete=True,
                removal_policy=cdk.RemovalPolicy.DESTROY,
            )
        if config.registry.mirror_on_deploy:
            self.mirror = MirrorProject(self, "Mirror", artifacts=catalogue.artifacts)
