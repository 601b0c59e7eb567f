"""How late the client itself is: what it cannot measure more exactly than."""

from __future__ import annotations

import asyncio

PERIOD_SECONDS = 0.01


class LagProbe:
    """Wants to run every 10 ms, and notes how much later it does.

    Whatever makes it late, a long callback, garbage collection, other processes or a quota of CPU
    time, makes the client late with a send, or with the moment of a part of audio, too.
    """

    def __init__(self) -> None:
        self.late_seconds: list[float] = []

    async def run(self) -> None:
        """Probe until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time() + PERIOD_SECONDS
        while True:
            await asyncio.sleep(due - loop.time())
            now = loop.time()
            # Each moment that was missed counts, or a long standstill would be one sample.
            while due <= now:
                self.late_seconds.append(now - due)
                due += PERIOD_SECONDS
