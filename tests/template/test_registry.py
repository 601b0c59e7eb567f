"""The private registry."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from tests.synth import changed
from tests.template.foundation import foundation, resources

# Amazon ECR API reference, CreateRepository, repositoryName: pattern and length.
REPOSITORY_NAME = re.compile(
    r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*", re.ASCII
)
REPOSITORY_NAME_LIMIT = 256


def repositories(template: Template) -> list[dict[str, Any]]:
    return list(resources(template, "AWS::ECR::Repository").values())


def names(config: Configuration) -> list[str]:
    template = Template.from_stack(foundation(config).registry)
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
