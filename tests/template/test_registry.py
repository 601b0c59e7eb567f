"""The private registry."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from tests.cloudformation import Resources
from tests.synth import changed
from tests.template.foundation import only, registry_of, resources

# Amazon ECR API reference, CreateRepository, repositoryName: pattern and length.
REPOSITORY_NAME = re.compile(
    r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*", re.ASCII
)
REPOSITORY_NAME_LIMIT = 256


def repositories(template: Template) -> list[dict[str, Any]]:
    return list(resources(template, "AWS::ECR::Repository").values())


def names(config: Configuration) -> list[str]:
    template = Template.from_stack(registry_of(config))
    return [repository["Properties"]["RepositoryName"] for repository in repositories(template)]


def test_each_artifact_has_its_repository(
    default_config: Configuration, templates: dict[str, Template]
) -> None:
    found = [r["Properties"]["RepositoryName"] for r in repositories(templates["registry"])]
    artifacts = Catalogue(default_config).artifacts
    assert sorted(found) == sorted(artifact.repository for artifact in artifacts)
    assert len(set(found)) == len(found) > 10
    # CDK's Helm handler opens the last part of a chart's path, which is the chart's own name.
    assert {"sonic/charts/karpenter", "sonic/charts/karpenter-crd", "sonic/charts/keda"} <= set(
        found
    )


def test_tags_are_immutable_and_images_scanned(templates: dict[str, Template]) -> None:
    for repository in repositories(templates["registry"]):
        properties = repository["Properties"]
        assert properties["ImageTagMutability"] == "IMMUTABLE"
        assert properties["ImageScanningConfiguration"] == {"ScanOnPush": True}


def test_repositories_go_with_the_stack_but_lose_no_image_before(
    templates: dict[str, Template],
) -> None:
    for repository in repositories(templates["registry"]):
        assert repository["DeletionPolicy"] == repository["UpdateReplacePolicy"] == "Delete"
        assert repository["Properties"]["EmptyOnDelete"] is True
        assert "LifecyclePolicy" not in repository["Properties"]


def test_nobody_else_may_pull(templates: dict[str, Template]) -> None:
    for repository in repositories(templates["registry"]):
        assert "RepositoryPolicyText" not in repository["Properties"]


def test_each_model_has_a_worker_repository(default_config: Configuration) -> None:
    models = [{"name": "sonic-3"}, {"name": "sonic-2", "maxReplicas": 2, "minReplicas": 2}]
    found = names(changed(default_config, models=models, nodes={"gpu": {"maxNodes": 20}}))
    assert {"sonic/images/sonic-worker-sonic-3", "sonic/images/sonic-worker-sonic-2"} <= set(found)


@pytest.mark.parametrize("name", ["v", "a" * 100, "a" + "-b" * 49])
def test_names_fit_ecr(default_config: Configuration, name: str) -> None:
    for repository in names(changed(default_config, deployment={"name": name})):
        assert REPOSITORY_NAME.fullmatch(repository)
        assert 2 <= len(repository) <= REPOSITORY_NAME_LIMIT
        assert repository.startswith(f"{name}/")


def test_two_deployments_share_no_repository(default_config: Configuration) -> None:
    one = names(changed(default_config, deployment={"name": "voice"}))
    other = names(changed(default_config, deployment={"name": "voice-two"}))
    assert not set(one) & set(other)


# Amazon ECR user guide, "Private repository policy examples": what another account pulls with.
PULL = {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"}


@pytest.mark.parametrize(("region", "partition"), [("us-east-1", "aws"), ("cn-north-1", "aws-cn")])
def test_named_accounts_may_pull_and_nothing_else(
    default_config: Configuration, region: str, partition: str
) -> None:
    config = changed(
        default_config,
        deployment={"region": region},
        network={"zones": [f"{region}a", f"{region}b"]},
        registry={"pullAccountIds": ["444455556666", "777788889999"]},
    )
    found = repositories(Template.from_stack(registry_of(config)))
    assert len(found) > 10
    for repository in found:
        (statement,) = repository["Properties"]["RepositoryPolicyText"]["Statement"]
        assert statement["Effect"] == "Allow"
        assert set(statement["Action"]) == PULL
        principals = Resources({"Resources": {}}, partition=partition).resolve(
            statement["Principal"]
        )
        assert principals == {
            "AWS": [
                f"arn:{partition}:iam::444455556666:root",
                f"arn:{partition}:iam::777788889999:root",
            ]
        }


def test_nothing_is_replicated_unless_asked(templates: dict[str, Template]) -> None:
    for template in templates.values():
        assert not resources(template, "AWS::ECR::ReplicationConfiguration")


def test_own_repositories_are_replicated_and_no_others(default_config: Configuration) -> None:
    regions = ["us-west-2", "eu-west-1"]
    config = changed(
        default_config, deployment={"name": "voice"}, registry={"replicateTo": regions}
    )
    template = Template.from_stack(registry_of(config))
    replication = only(template, "AWS::ECR::ReplicationConfiguration")["Properties"]
    (rule,) = replication["ReplicationConfiguration"]["Rules"]
    account = {"Ref": "AWS::AccountId"}
    assert rule["Destinations"] == [{"Region": r, "RegistryId": account} for r in regions]
    (chosen,) = rule["RepositoryFilters"]
    assert chosen["FilterType"] == "PREFIX_MATCH"
    assert all(name.startswith(chosen["Filter"]) for name in names(config))
    neighbour = changed(default_config, deployment={"name": "voice-two"})
    assert not any(name.startswith(chosen["Filter"]) for name in names(neighbour))
