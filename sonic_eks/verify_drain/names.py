"""Names of Kubernetes objects: kubectl would take anything else for an option of its own."""

from __future__ import annotations

import re

from sonic_eks.errors import SonicEksError, shown

# Kubernetes, "Object Names and IDs": DNS subdomain names, and RFC 1123 label names.
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(_PART)
_SUBDOMAIN = re.compile(rf"{_PART}(\.{_PART})*")
_MOST_LABEL, _MOST_SUBDOMAIN = 63, 253

LABEL = "a name of lower-case letters, digits and '-', up to 63 characters"
SUBDOMAIN = "a name of lower-case letters, digits, '-' and '.', up to 253 characters"


def is_label(text: str) -> bool:
    """Whether it may be the name of a namespace or a container."""
    return len(text) <= _MOST_LABEL and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether it may be the name of a pod."""
    return len(text) <= _MOST_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def check_names(pod: str | None, namespace: str, container: str | None) -> None:
    """Refuse what cannot be the name of a pod, a namespace, a container.

    Raises
    ------
    SonicEksError
        With the first of them.
    """
    ends = "beginning and ending with a letter or a digit"
    if pod is not None and not is_subdomain(pod):
        raise SonicEksError(f"--pod: got {shown(pod)}; allowed: {SUBDOMAIN}, {ends}")
    for option, name in (("--namespace", namespace), ("--container", container)):
        if name is not None and not is_label(name):
            raise SonicEksError(f"{option}: got {shown(name)}; allowed: {LABEL}, {ends}")
