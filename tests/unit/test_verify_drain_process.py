"""A process of this machine as what gets SIGTERM."""

from __future__ import annotations

import asyncio
import os

import pytest

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.verify_drain.subject import LocalProcess


@pytest.mark.parametrize("error", [ProcessLookupError, PermissionError])
def test_a_process_that_ended_meanwhile(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    """Its number may be that of another user's process by now."""

    def kill(pid: int, number: int) -> None:
        raise error

    monkeypatch.setattr(os, "kill", kill)
    subject = LocalProcess(77)
    with pytest.raises(SonicEksError, match="--pid 77: ended before it got SIGTERM") as ended:
        asyncio.run(subject.terminate())
    assert ended.value.exit_status == PROBLEM_FOUND
    assert not asyncio.run(subject.running())
