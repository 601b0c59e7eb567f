"""Names in registries: host and repository, tag, digest."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from sonic_eks.errors import SonicEksError, shown

# OCI distribution specification 1.1, "Pulling manifests": repository names and tags.
_PATH = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
# RFC 1123, section 2.1: labels of 63 characters at most, 253 in all.
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(
    rf"(?:(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<ipv6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{{1,5}}))?"
)
_LONGEST_NAME = 253
_LAST_PORT = 65_535
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_DOCKER_HUB = "docker.io"
_DOCKER_HUB_API = "registry-1.docker.io"


@dataclass(frozen=True)
class RepositoryName:
    """A repository in a registry.

    Attributes
    ----------
    host : str
        Host name with the port, if any, as people write it.
    path : str
        Name of the repository.
    """

    host: str
    path: str

    @property
    def api_host(self) -> str:
        """The host that answers the registry protocol; Docker Hub's differs from its name."""
        return _DOCKER_HUB_API if self.host == _DOCKER_HUB else self.host

    def __str__(self) -> str:
        return f"{self.host}/{self.path}"


def parse_repository(text: str) -> RepositoryName:
    """Split ``[oci://]host[:port]/path``.

    Raises
    ------
    SonicEksError
        When `text` is none of that or carries a tag or digest (exit status 2).

    Examples
    --------
    >>> parse_repository("docker.io/nats").path
    'library/nats'
    """
    host, _, path = text.removeprefix("oci://").partition("/")
    named = "." in host or ":" in host or host == "localhost"
    if not named or not _is_host(host) or not _PATH.fullmatch(path):
        raise SonicEksError(
            f"malformed reference {shown(text)}: give host/repository in lower case,"
            " such as public.ecr.aws/karpenter/controller, without tag and digest"
        )
    if host == _DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    return RepositoryName(host, path)


def check_tag(text: str) -> str:
    """Return `text` when it is a tag; refuse it otherwise (exit status 2)."""
    if not _TAG.fullmatch(text):
        raise SonicEksError(
            f"malformed tag {shown(text)}: letters, digits, '_', '.' and '-', 128 at most"
        )
    return text


def is_digest(text: object) -> bool:
    """Tell whether `text` is a SHA-256 digest as registries write it."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def check_host(text: str) -> str:
    """Return `text` when it is a registry's host name; refuse it otherwise (exit status 2)."""
    if not _is_host(text):
        raise SonicEksError(f"malformed registry host {shown(text)}: give host or host:port")
    return text


def is_registry(text: str) -> bool:
    """Tell whether `text` is a registry, ``host[:port][/path]``, that images can be named in."""
    try:
        return str(parse_repository(f"{text}/image")) == f"{text}/image"
    except SonicEksError:
        return False


def _is_host(text: str) -> bool:
    match = _HOST.fullmatch(text)
    if match is None or not 0 < int(match["port"] or 1) <= _LAST_PORT:
        return False
    if match["ipv6"] is None:
        return len(match["name"]) <= _LONGEST_NAME
    try:
        ipaddress.IPv6Address(match["ipv6"])
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Tell whether a host, with or without a port, is this machine."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
