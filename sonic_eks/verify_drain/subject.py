"""Who gets SIGTERM: a process of this machine, or the main container of a pod (in pod.py)."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass, field
from typing import Protocol

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError


class Subject(Protocol):
    """What an experiment ends."""

    @property
    def has_pre_stop(self) -> bool:
        """Whether it can be marked as going without SIGTERM; known once it was checked."""

    @property
    def late_seconds(self) -> float:
        """How much later than its end `running` may tell of it."""

    @property
    def name(self) -> str:
        """How it is called."""

    async def check(self) -> None:
        """Raise SonicEksError unless it is there and can be ended."""

    async def announce_end(self, seconds: float) -> None:
        """Mark it as going; for so long it gets no signal that cannot be caught."""

    async def terminate(self) -> None:
        """Send SIGTERM."""

    async def running(self) -> bool:
        """Whether it has not ended."""

    async def others(self) -> list[str]:
        """Return what else is ready to do its work."""

    async def leave(self) -> None:
        """Nothing more is asked of it."""


@dataclass
class LocalProcess:
    """A process of this machine, such as that of a container under Docker."""

    pid: int
    has_pre_stop: bool = field(default=False, init=False)
    late_seconds: float = field(default=0.0, init=False)

    @property
    def name(self) -> str:
        """How it is called."""
        return f"process {self.pid}"

    async def check(self) -> None:
        """See `Subject`."""
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            raise SonicEksError(f"--pid {self.pid}: no such process on this machine") from None
        except PermissionError:
            raise SonicEksError(f"--pid {self.pid}: may not be ended by this user") from None

    async def announce_end(self, seconds: float) -> None:
        """See `Subject`."""

    async def terminate(self) -> None:
        """See `Subject`."""
        try:
            os.kill(self.pid, signal.SIGTERM)
        except (ProcessLookupError, PermissionError):  # as in `running`
            raise SonicEksError(
                f"--pid {self.pid}: ended before it got SIGTERM", exit_status=PROBLEM_FOUND
            ) from None

    async def running(self) -> bool:
        """See `Subject`."""
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # the number may be another user's by now
            return False
        # A zombie has ended; that nobody has asked for its status changes nothing.
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
        return True

    async def others(self) -> list[str]:
        """See `Subject`."""
        return []

    async def leave(self) -> None:
        """See `Subject`."""
