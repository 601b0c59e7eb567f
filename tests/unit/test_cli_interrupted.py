"""Ctrl-C ends every command in one line, with the status that shells know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from sonic_eks.cli import main as cli
from sonic_eks.cli.app import app
from tests.plain_server import plain_server
from tests.synth import ROOT


def commands(group: typer.Typer, *before: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words."""
    for one in group.registered_commands:
        assert one.callback is not None
        yield (*before, one.name or one.callback.__name__.replace("_", "-")), one
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from commands(inner.typer_instance, *before, str(inner.name))


@pytest.mark.parametrize(
    ("words", "command"),
    [pytest.param(*one, id=" ".join(one[0])) for one in commands(app)],
)
def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    command: Any,
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    interrupted.__name__ = command.callback.__name__  # the command's, where it has no other
    monkeypatch.setattr(command, "callback", interrupted)
    monkeypatch.setattr(sys, "argv", ["sonic-eks", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "sonic-eks: interrupted\n")


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from sonic_eks.cli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["sonic_eks.cli.app", "typer", "pydantic", "sonic_eks.cli.bench", "sonic_eks.cli.plan"],
)
def test_an_interrupt_while_the_commands_load_is_one_line(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "sonic-eks: interrupted\n")


@pytest.mark.slow
def test_the_entry_point_imports_next_to_nothing_before_it_minds_an_interrupt() -> None:
    code = (
        "import sys; before = {*sys.modules}; import sonic_eks.cli.main;"
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        *("__future__", "sonic_eks", "sonic_eks.cli", "sonic_eks.cli.main", "sonic_eks.cli.output"),
        "sonic_eks.errors",
    ]


def wait_for(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_measurement_that_waits_is_interrupted() -> None:
    with plain_server(None) as port:
        words = ["bench", f"http://127.0.0.1:{port}", "--timeout", "60"]
        process = subprocess.Popen(
            [sys.executable, "-m", "sonic_eks.cli.main", *words],
            cwd=ROOT,
            env={**os.environ, "CARTESIA_API_KEY": "k"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            time.sleep(0.5)
            wait_for(lambda: _connected(port))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, out, err) == (130, "", "sonic-eks: interrupted\n")


def _connected(port: int) -> bool:
    """Whether a connection to a local port is established, as /proc/net/tcp tells."""
    with open("/proc/net/tcp") as table:  # noqa: PTH123
        rows = [line.split() for line in table.readlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)
