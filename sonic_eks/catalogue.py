"""The artifacts of one deployment: what is mirrored, and how charts and manifests refer to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.config.aws import dns_suffix_of
from sonic_eks.config.vendor_images import (
    API_IMAGE,
    LICENSE_PROXY_IMAGE,
    vendor_images,
    worker_image,
)
from sonic_eks.late import Late
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.lock import Lock, locked
from sonic_eks.upstream import PAUSE_IMAGE, PYTHON_IMAGE, UPSTREAMS, Kind, Upstream

__all__ = [
    "API_IMAGE",
    "LICENSE_PROXY_IMAGE",
    "PAUSE_IMAGE",
    "PYTHON_IMAGE",
    "Artifact",
    "Catalogue",
    "every_artifact",
    "worker_image",
]


class Catalogue:
    """Every artifact of a deployment, and the references to it.

    Parameters
    ----------
    config : Configuration
        The deployment.
    lock : mapping of str to LockEntry, optional
        Digests of the artifacts; with them references are exact, without they are tags.

    Raises
    ------
    SonicEksError
        When the lock is of another list (exit status 2).
    """

    def __init__(self, config: Configuration, lock: Lock | None = None) -> None:
        deployment = config.deployment
        account = deployment.account or Late.ACCOUNT.marker
        suffix = dns_suffix_of(deployment.region)
        self.host = f"{account}.dkr.ecr.{deployment.region}.{suffix}"
        self.artifacts = locked(_artifacts(config), lock)
        self._by_name = {(a.kind, a.name): a for a in self.artifacts}

    def image(self, name: str) -> str:
        """Return the full reference of an image in the private registry, exact when locked."""
        artifact = self._by_name[Kind.IMAGE, name]
        exact = f"@{artifact.digest}" if artifact.digest else ""
        return f"{self.host}/{artifact.repository}:{artifact.tag}{exact}"

    def image_repository(self, name: str) -> str:
        """Return an image's reference without the tag, as most charts want it."""
        return f"{self.host}/{self._by_name[Kind.IMAGE, name].repository}"

    def tag(self, kind: Kind, name: str) -> str:
        """Return an artifact's version."""
        return self._by_name[kind, name].tag

    def digest(self, kind: Kind, name: str) -> str | None:
        """Return an artifact's digest, None without a lock."""
        return self._by_name[kind, name].digest

    def chart(self, name: str) -> str:
        """Return the OCI address of a chart in the private registry."""
        return f"oci://{self.host}/{self._by_name[Kind.CHART, name].repository}"


# Which configurations need the vendor's images, as `vendor_images` decides; each model has its own.
_VENDOR_NEEDS = {
    API_IMAGE: "`topology` is distributed",
    LICENSE_PROXY_IMAGE: "`license.mode` is not none",
}


def every_artifact(config: Configuration) -> list[Artifact]:
    """Return every public artifact with a configuration's settings, and its vendor images.

    Unlike a `Catalogue`'s, they are those that the configuration does not need, too.
    """
    return _public(config, UPSTREAMS) + _of_the_vendor(config)


def _artifacts(config: Configuration) -> list[Artifact]:
    needed = [upstream for upstream in UPSTREAMS if upstream.need.holds(config)]
    return _public(config, needed) + _of_the_vendor(config)


def _public(config: Configuration, upstreams: Iterable[Upstream]) -> list[Artifact]:
    versions = config.registry.versions
    return [
        Artifact(
            name=upstream.name,
            kind=upstream.kind,
            source=upstream.source,
            tag=versions.get(upstream.name, upstream.tag),
            component=upstream.component,
            needed=upstream.need.text,
            repository=f"{config.deployment.name}/{upstream.repository}",
            **_from(config, None if upstream.is_http else upstream.source, upstream.kind),
        )
        for upstream in upstreams
    ]


def _of_the_vendor(config: Configuration) -> list[Artifact]:
    registry = config.registry.vendor_registry
    return [
        Artifact(
            name=name,
            kind=Kind.IMAGE,
            source=f"{registry}/{image}" if registry else None,
            tag=config.registry.versions.get(name, config.registry.sonic_release),
            component="sonic",
            needed=_VENDOR_NEEDS.get(name, "a model of that name"),
            repository=f"{config.deployment.name}/images/{name}",
            **_from(config, registry, Kind.IMAGE),
        )
        for name, image in vendor_images(config).items()
    ]


def _from(config: Configuration, source: str | None, kind: Kind) -> dict[str, Any]:
    """Return what the configuration says about an upstream: credentials and platforms."""
    host = (source or "").removeprefix("oci://").split("/")[0]
    return {
        "secret_arn": config.registry.credential_secret_arns.get(host),
        "platforms": config.registry.platforms if kind is Kind.IMAGE else (),
    }
