"""Rules that every rendered manifest keeps, beyond what its schema asks.

Importing the modules registers their rules.
"""

from tests.manifests import (
    rules_of_objects,
    rules_of_pods,
    rules_of_policies,
    rules_of_secrets,
)
from tests.manifests.rules_base import RULES, Charts

__all__ = [
    "RULES",
    "Charts",
    "rules_of_objects",
    "rules_of_pods",
    "rules_of_policies",
    "rules_of_secrets",
]
