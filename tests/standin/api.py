"""Stand-in for the API server, with workers over NATS behind it or the model in the same process.

python -m tests.standin.api --port 5000 --metrics-port 8080 --nats nats://127.0.0.1:4222
python -m tests.standin.api --port 5000 --metrics-port 8080 --standalone
"""

from __future__ import annotations

import argparse
import asyncio

from sidecar.stand_in.clock import Clock
from sidecar.stand_in.server import Backend, parser, run, standalone


async def backend_of(arguments: argparse.Namespace) -> Backend:
    """Return where the audio comes from."""
    if arguments.standalone:
        return standalone(arguments)
    # Only here: a standalone server needs the standard library and nothing else.
    from tests.standin.distributed import Distributed

    silence = Clock(arguments.clock).real(arguments.silence_seconds)
    return await Distributed.start(arguments.nats, silence)


async def main() -> None:
    """Run one API server."""
    options = parser()
    where = options.add_mutually_exclusive_group(required=True)
    where.add_argument("--nats", help="servers, separated by commas")
    where.add_argument("--standalone", action="store_true", help="the model in this process")
    options.add_argument(
        "--silence-seconds", type=float, default=10.0, help="longest wait for a worker"
    )
    # In a pod nobody may set a fault.
    options.set_defaults(take_faults=True)
    arguments = options.parse_args()
    await run(arguments, await backend_of(arguments))


if __name__ == "__main__":
    asyncio.run(main())
