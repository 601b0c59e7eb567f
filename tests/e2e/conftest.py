"""Registries that the tests of this folder share; each test uses repositories of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.auth import Anonymous
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.retry import RetryPolicy
from sonic_eks.upstream import Kind
from tests.e2e.fault_proxy import Proxy, proxy
from tests.e2e.registries import RegistryProcess, registry

# The waits of the product's policy, a hundredth as long.
FAST = RetryPolicy(tries=5, base_seconds=0.01, cap_seconds=0.1)


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """The registry that images come from."""
    with registry(tmp_path_factory.mktemp("upstream")) as running:
        yield running


@pytest.fixture(scope="session")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """The registry that images go to."""
    with registry(tmp_path_factory.mktemp("private")) as running:
        yield running


@pytest.fixture
def upstream_proxy(upstream: RegistryProcess) -> Iterator[Proxy]:
    """A proxy in front of `upstream`."""
    with proxy(upstream.host) as running:
        yield running


@pytest.fixture
def private_proxy(private: RegistryProcess) -> Iterator[Proxy]:
    """A proxy in front of `private`."""
    with proxy(private.host) as running:
        yield running


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """A repository path that no other test uses."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())
    return "-".join(part for part in name.split("-") if part)


@pytest.fixture
def artifact_of(place: str) -> Callable[..., Artifact]:
    """Makes the artifact of an image at `host`, in this test's repositories."""

    def make(host: str, name: str = "image", tag: str = "1.0", **fields: object) -> Artifact:
        values: dict[str, object] = {
            "name": name,
            "kind": Kind.IMAGE,
            "source": f"{host}/{place}/{name}",
            "tag": tag,
            "component": "test",
            "repository": f"private/{place}/{name}",
        }
        return Artifact(**{**values, **fields})  # type: ignore[arg-type]

    return make


@pytest.fixture
def connect_to() -> Callable[..., Connections]:
    """Opens connections to a private registry, with short waits."""

    def make(host: str, **options: object) -> Connections:
        values: dict[str, object] = {
            "credentials": Anonymous(),
            "retry": FAST,
            "timeouts_seconds": (2.0, 2.0),
        }
        return Connections(host, **{**values, **options})  # type: ignore[arg-type]

    return make
