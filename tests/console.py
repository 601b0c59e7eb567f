"""The command line, called in this process as the console script calls it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from sonic_eks.cli import main as cli

Run = Callable[..., tuple[int, str, str]]
"""Call with arguments; returns exit status, standard output and standard error."""


def console(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> Run:
    """Return what calls `sonic-eks` with `words` before the arguments."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sonic-eks", *words, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call
