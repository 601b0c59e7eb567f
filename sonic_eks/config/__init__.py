"""The configuration of a deployment: one YAML file, validated before any construct exists."""

from sonic_eks.config.load import load_configuration
from sonic_eks.config.model import Configuration

__all__ = ["Configuration", "load_configuration"]
