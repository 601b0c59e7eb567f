"""Progress on a terminal, and silence in a pipe."""

from __future__ import annotations

import io

from sonic_eks.progress import TerminalBar, TerminalLine


class Terminal(io.StringIO):
    """A person's."""

    def isatty(self) -> bool:
        return True


def test_a_line_is_drawn_on_a_terminal_alone() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    for stream in (pipe, terminal):
        with TerminalLine(stream) as line:
            line.show("3 of [21] left")
    assert pipe.getvalue() == ""
    assert "3 of [21] left" in terminal.getvalue()


def test_a_bar_is_drawn_on_a_terminal_alone() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    for stream in (pipe, terminal):
        with TerminalBar(stream) as bar:
            bar.expect(2 * 1024 * 1024)
            bar.advance(1024 * 1024)
    assert pipe.getvalue() == ""
    drawn = terminal.getvalue()
    assert "copying" in drawn
    assert "1.0/2.0 MiB" in drawn


def test_what_a_bar_shows_ends_with_the_next_bytes() -> None:
    waiting, going_on = Terminal(), Terminal()
    for stream, size in ((waiting, 0), (going_on, 1)):
        with TerminalBar(stream) as bar:
            bar.expect(2)
            bar.show("nats: [busy]; try 2 of 7 in 3 s")
            if size:
                bar.advance(size)
    drawn = waiting.getvalue()
    assert drawn.rindex("nats: [busy]") > drawn.rfind("copying")
    drawn = going_on.getvalue()
    assert drawn.rindex("copying") > drawn.rfind("nats: [busy]")
