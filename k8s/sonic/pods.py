"""What the vendor's containers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.pods import container_security

METRICS_PORT = 8080


def vendor_security() -> k8s.SecurityContext:
    """Return the security context of a vendor's container.

    Whether the images run as any user, or on a read-only root file system, is not public. Neither
    is asked for: an image that needs what it is denied does not start. Capabilities and
    privilege escalation no server of theirs needs: the ports are above 1023.
    """
    return container_security(read_only_root=False)


def environment(
    given: Mapping[str, str], named: Sequence[tuple[str | None, str]] = ()
) -> list[k8s.EnvVar] | None:
    """Return a container's environment; the configuration refuses a name that is given twice.

    Parameters
    ----------
    given : mapping
        The `env` of its section, as it stands.
    named : sequence of (name or None, value)
        Values that we know, under the names that the vendor gave; None is left out.
    """
    variables = dict(given) | {name: value for name, value in named if name is not None}
    return [k8s.EnvVar(name=name, value=value) for name, value in variables.items()] or None
