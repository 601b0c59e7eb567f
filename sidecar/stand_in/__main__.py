"""Runs the stand-in with the model in its own process: ``python3 -m sidecar.stand_in --help``."""

from __future__ import annotations

import asyncio

from sidecar.stand_in.server import parser, run, standalone


async def main() -> None:
    """Serve until SIGTERM."""
    arguments = parser().parse_args()
    await run(arguments, standalone(arguments))


if __name__ == "__main__":
    asyncio.run(main())
