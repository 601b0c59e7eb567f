"""Labels: Kubernetes' recommended set on everything, and a small fixed part as selector."""

from __future__ import annotations

from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.names import physical_name

MODEL_LABEL = "sonic-eks/model"
"""Pod label that names the model of a worker."""

PART_OF = "sonic"
MANAGED_BY = "sonic-eks"

# Kubernetes documentation, "Labels and Selectors": a label's value has 63 characters at most.
_LABEL_VALUE_LIMIT = 63


@dataclass(frozen=True)
class Labels:
    """The labels of one workload and of all that belongs to it.

    Attributes
    ----------
    name : str
        What runs, such as ``sonic-api``.
    instance : str
        The deployment, cut to a label's length.
    component : str
        Its part in the system, such as ``worker``.
    model : str or None
        Name of the model that a worker serves.
    """

    name: str
    instance: str
    component: str
    model: str | None = None

    @classmethod
    def of(
        cls, config: Configuration, name: str, *, component: str, model: str | None = None
    ) -> Labels:
        """Return the labels of the workload `name` in a deployment."""
        instance = physical_name(config.deployment.name, limit=_LABEL_VALUE_LIMIT)
        return cls(name=name, instance=instance, component=component, model=model)

    @property
    def selector(self) -> dict[str, str]:
        """The labels that select this workload's pods; immutable once applied."""
        chosen = {"app.kubernetes.io/name": self.name, "app.kubernetes.io/instance": self.instance}
        return chosen | ({MODEL_LABEL: self.model} if self.model else {})

    @property
    def all(self) -> dict[str, str]:
        """Every label of the workload's objects and pods."""
        return self.selector | {
            "app.kubernetes.io/component": self.component,
            "app.kubernetes.io/part-of": PART_OF,
            "app.kubernetes.io/managed-by": MANAGED_BY,
        }
