"""Faults that the stand-in API can be told to have."""

from __future__ import annotations

from dataclasses import dataclass

FAULTS = {
    "stall": "sends two chunks, then nothing, and keeps the connection",
    "reject": "answers 429",
    "slow": "takes ten times as long between chunks",
    "close": "drops the connection after two chunks",
    "hang": "takes the request and never answers",
}

CHUNKS_BEFORE = 2
SLOWNESS = 10.0


@dataclass
class Faults:
    """Which fault strikes, and how often."""

    name: str = ""
    fraction: float = 1.0
    """Share of generations that it strikes, evenly spread: 0.25 is every fourth."""
    _count: int = 0

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Read ``name`` or ``name:fraction``; "" is none. Raises ValueError for others."""
        name, _, share = text.partition(":")
        fraction = float(share or 1)
        if name and name not in FAULTS:
            raise ValueError(f"{name!r} is not one of {', '.join(FAULTS)}")
        if not 0 < fraction <= 1:
            raise ValueError(f"{fraction} is not a share")
        return cls(name, fraction)

    def strike(self) -> str:
        """Return the fault of the next generation, "" for none."""
        self._count += 1
        before, after = (self._count - 1) * self.fraction, self._count * self.fraction
        return self.name if int(after) > int(before) else ""
