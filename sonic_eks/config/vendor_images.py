"""The images that the vendor gives: their names in this project, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration

API_IMAGE = "sonic-api"
LICENSE_PROXY_IMAGE = "sonic-license-proxy"


def worker_image(model_name: str) -> str:
    """Return the artifact name of the image that serves a model."""
    return f"sonic-worker-{model_name}"


def vendor_images(config: Configuration) -> dict[str, str]:
    """Return the repositories in the vendor's registry that a deployment needs, by our names."""
    found = {}
    if config.topology == "distributed":
        found[API_IMAGE] = config.api.image
    if config.has_license_proxy:
        found[LICENSE_PROXY_IMAGE] = config.license.image
    if not config.standalone.stand_in:
        found |= {worker_image(model.name): model.image for model in config.models}
    return found
