"""The private registry: a repository for every image and chart, and the build that fills them."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from constructs import Construct

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.constructs.mirror_project import MirrorProject
from sonic_eks.stacks.base import DeploymentStack


class RegistryStack(DeploymentStack):
    """One repository for each artifact that the cluster pulls, and the build that fills them.

    Accounts and regions that the configuration names may share what they hold.

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
            repository = ecr.Repository(
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
            if config.registry.pull_account_ids:
                repository.add_to_resource_policy(_pull_by(config.registry.pull_account_ids))
        if config.registry.replicate_to:
            self._replicate(f"{config.deployment.name}/", config.registry.replicate_to)
        if config.registry.mirror_on_deploy:
            self.mirror = MirrorProject(self, "Mirror", artifacts=catalogue.artifacts)

    def _replicate(self, prefix: str, regions: Sequence[str]) -> None:
        """Copy what is pushed to the repositories under `prefix` to other regions.

        A region of an account has one list of rules. CloudFormation refuses to create this where
        the list has rules, replaces the list on an update, and empties it on deletion (its
        resource provider for Amazon ECR, handlers of AWS::ECR::ReplicationConfiguration).
        """
        of = ecr.CfnReplicationConfiguration
        rule = of.ReplicationRuleProperty(
            destinations=[
                of.ReplicationDestinationProperty(region=region, registry_id=self.account)
                for region in regions
            ],
            repository_filters=[
                of.RepositoryFilterProperty(filter=prefix, filter_type="PREFIX_MATCH")
            ],
        )
        of(
            self,
            "Replication",
            replication_configuration=of.ReplicationConfigurationProperty(rules=[rule]),
        )


def _pull_by(account_ids: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="Pull",
        principals=[iam.AccountPrincipal(account) for account in account_ids],
        # Amazon ECR user guide, "Private repository policy examples": what a pull needs.
        actions=[
            "ecr:BatchCheckLayerAvailability",
            "ecr:BatchGetImage",
            "ecr:GetDownloadUrlForLayer",
        ],
    )
