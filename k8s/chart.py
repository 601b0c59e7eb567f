"""What every chart shares."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import cdk8s
import jsii
from cdk8s_plus_35 import k8s
from constructs import Construct

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.k8s.labels import Labels


class DeploymentChart(cdk8s.Chart, metaclass=jsii.JSIIAbstractClass):
    """A chart of one deployment; names are given, never derived from construct paths.

    Parameters
    ----------
    scope, construct_id : Construct, str
        The cdk8s app and the chart's name.
    config : Configuration
        The deployment.
    catalogue : Catalogue
        References into the private registry.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Configuration, catalogue: Catalogue
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        self.config = config
        self.catalogue = catalogue
        self.build()

    @abc.abstractmethod
    def build(self) -> None:
        """Add the chart's objects."""


def metadata(
    name: str,
    labels: Labels,
    *,
    namespace: str | None = None,
    annotations: Mapping[str, str] | None = None,
    extra_labels: Mapping[str, str] | None = None,
) -> k8s.ObjectMeta:
    """Return the metadata of an object."""
    return k8s.ObjectMeta(
        name=name,
        namespace=namespace,
        labels=labels.all | dict(extra_labels or {}),
        annotations=dict(annotations) if annotations else None,
    )


def custom_object(
    scope: Construct,
    construct_id: str,
    *,
    api_version: str,
    kind: str,
    name: str,
    labels: Labels,
    spec: Mapping[str, Any],
    namespace: str | None = None,
) -> cdk8s.ApiObject:
    """Add an object of a custom resource definition.

    The spec goes in as a JSON patch: the Python binding of ApiObject takes no open-ended keys,
    and a patch keeps their spelling.
    """
    added = cdk8s.ApiObject(
        scope,
        construct_id,
        api_version=api_version,
        kind=kind,
        metadata=cdk8s.ApiObjectMetadata(name=name, namespace=namespace, labels=labels.all),
    )
    added.add_json_patch(cdk8s.JsonPatch.add("/spec", dict(spec)))
    return added
