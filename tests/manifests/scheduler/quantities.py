"""Kubernetes quantities as whole numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

CPU = "cpu"
PODS = "pods"

# Kubernetes API reference, "Quantity".
_SUFFIXES = {
    "m": Decimal("0.001"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}


def quantity(text: str | int | float) -> Decimal:
    """Return a quantity in its base unit: cores, bytes or a count."""
    value = str(text)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if value.endswith(suffix):
            return Decimal(value.removesuffix(suffix)) * _SUFFIXES[suffix]
    return Decimal(value)


def amounts(resources: Mapping[str, Any]) -> Counter[str]:
    """Return amounts by resource: CPU in millicores, all else in its base unit, rounded up."""
    return Counter(
        {
            name: math.ceil(quantity(value) * (1000 if name == CPU else 1))
            for name, value in resources.items()
        }
    )
