"""Names, in this project, of the images that the vendor gives."""

from __future__ import annotations

API_IMAGE = "sonic-api"
LICENSE_PROXY_IMAGE = "sonic-license-proxy"


def worker_image(model_name: str) -> str:
    """Return the artifact name of a model's worker image."""
    return f"sonic-worker-{model_name}"
