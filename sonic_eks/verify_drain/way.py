"""The way to a service: its address, or port-forwards to the pod that is to be ended."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from sonic_eks.verify_drain.kubectl import Kubectl


class Road(Protocol):
    """What connections go over."""

    @property
    def url(self) -> str:
        """Where they begin."""

    async def broken(self) -> str:
        """Return why it ended, a moment after a connection did; empty: it goes on."""


class Way(Protocol):
    """The way to a service."""

    @property
    def straight(self) -> bool:
        """Whether it ends at the subject, whoever else serves."""

    def road(self) -> AbstractAsyncContextManager[Road]:
        """Open a road that breaks, if it does, alone; raises SonicEksError."""


@dataclass(frozen=True)
class Address:
    """An address that needs no road."""

    url: str
    straight: bool = False

    async def broken(self) -> str:
        """See `Road`."""
        return ""

    @contextlib.asynccontextmanager
    async def road(self) -> AsyncIterator[Address]:
        """See `Way`."""
        yield self


@dataclass(frozen=True)
class PortForwards:
    """A port-forward of its own for each road: one that breaks takes all its connections along."""

    kubectl: Kubectl
    pod: str
    port: int
    straight: bool = True

    @contextlib.asynccontextmanager
    async def road(self) -> AsyncIterator[Road]:
        """See `Way`."""
        async with self.kubectl.forward(self.pod, self.port) as forward:
            yield forward
