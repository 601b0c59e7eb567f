"""A standalone stand-in in a process of its own, for tests that are not on an event loop."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.standin.process import ROOT, START_SECONDS, free_ports, python


@dataclass
class Served:
    """A stand-in that serves."""

    process: subprocess.Popen[bytes]
    port: int
    metrics_port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fault(self, text: str) -> None:
        """Set the fault of the generations to come, "" for none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=5)
        connection.request("PUT", "/faults", text)
        assert connection.getresponse().status == 200
        connection.close()

    def truth(self) -> dict[str, float | None]:
        """Return the time to first audio in seconds that it logged, by context; None: no audio."""
        found = {}
        for line in self.log.read_text().splitlines():
            entry = json.loads(line)
            first = entry["first_audio_ms"]
            found[entry["context_id"]] = None if first is None else first / 1000
        return found


@contextlib.contextmanager
def served(folder: Path, *arguments: object) -> Iterator[Served]:
    """Run a standalone API server until the end of the block."""
    port, metrics_port = free_ports(2)
    log = folder / f"standin-{port}.jsonl"
    command = python(
        "tests.standin.api",
        *("--port", port, "--metrics-port", metrics_port, "--standalone", "--log", log),
        *arguments,
    )
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ}) as process:
        try:
            _wait(process, port)
            yield Served(process, port, metrics_port, log)
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, "the stand-in ended"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/status")
            if connection.getresponse().status == 200:
                return
        except OSError:
            assert time.monotonic() < end, "the stand-in does not start"
            time.sleep(0.05)
        finally:
            connection.close()
