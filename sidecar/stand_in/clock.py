"""A clock that runs faster, so that minutes of speech and of draining fit into seconds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Turns seconds as the product means them into seconds that pass here."""

    factor: float = 1.0
    """Product seconds that pass in one real second."""

    def real(self, seconds: float) -> float:
        """Return how many real seconds `seconds` last."""
        return seconds / self.factor

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of this clock."""
        await asyncio.sleep(seconds / self.factor)
