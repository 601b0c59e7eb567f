"""A deployment as it is read from disk: the configuration and, where there is one, its lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration, load_configuration
from sonic_eks.mirror.lock import lock_path, read_lock


@dataclass(frozen=True)
class Deployment:
    """What everything else of a deployment is made from.

    Attributes
    ----------
    config : Configuration
        The validated configuration.
    catalogue : Catalogue
        Its images and charts; by digest where a lock file lies beside the configuration.
    """

    config: Configuration
    catalogue: Catalogue


def load_deployment(path: Path) -> Deployment:
    """Read a configuration and its lock file.

    Raises
    ------
    ConfigurationError
        When the configuration has faults.
    SonicEksError
        When the lock file cannot be read or is of another list of artifacts.
    """
    config = load_configuration(path)
    return Deployment(config, Catalogue(config, read_lock(lock_path(path))))
