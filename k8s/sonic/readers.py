"""Who may read which secret: the service accounts of the pods that mount secrets."""

from __future__ import annotations

from sonic_eks.config import Configuration
from sonic_eks.k8s.sonic.front import API, STANDALONE
from sonic_eks.k8s.sonic.license_proxy import LICENSE_PROXY
from sonic_eks.k8s.sonic.worker import worker_name


def secret_readers(config: Configuration) -> dict[str, tuple[str, ...]]:
    """Return the ARNs of the secrets that each service account of the pods reads.

    Parameters
    ----------
    config : Configuration
        The deployment. An account that reads no secret does not exist and is not listed.
    """
    seed = config.license.seed_secret_arn
    proxy = [*config.license.secret_files.values(), *([seed] if seed else [])]
    read = {LICENSE_PROXY: proxy, API: [*config.api.secret_files.values()]}
    for model in config.models:
        name = STANDALONE if config.topology == "standalone" else worker_name(model)
        read[name] = [*model.secret_files.values()]
    return {account: tuple(dict.fromkeys(arns)) for account, arns in read.items() if arns}
