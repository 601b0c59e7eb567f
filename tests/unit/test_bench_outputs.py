"""Files that a measurement writes: what is refused before, what is kept, what is never touched."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonic_eks.bench.outputs import distinct, writable, write
from sonic_eks.errors import SonicEksError
from tests.console import console
from tests.synth import ROOT

URL = "http://127.0.0.1:9"

OPTIONS = {
    "--report": ("bench", URL, "--key-env", "NOT_SET"),
    "--profile": ("bench", URL, "--key-env", "NOT_SET", "--gpu", "L4", "--gpus", "1"),
    "--out": ("verify-drain", URL, "--key-env", "NOT_SET"),
}


def link(path: Path, target: str) -> Path:
    path.symlink_to(target)
    return path


def old(path: Path, mode: int = 0o644) -> Path:
    path.write_text("old")
    path.chmod(mode)
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


PLACES: dict[str, Callable[[Path], Path]] = {
    "nothing yet": lambda folder: folder / "new",
    "a file": lambda folder: old(folder / "file"),
    "a private file": lambda folder: old(folder / "file", 0o600),
    "a link to a file": lambda folder: link(folder / "link", old(folder / "file").name),
    "a link to nothing yet": lambda folder: link(folder / "link", "new"),
    "links to nothing yet": lambda folder: link(folder / "a", link(folder / "b", "new").name),
    "a link to no folder": lambda folder: link(folder / "link", "no/such/new"),
    "a link to itself": lambda folder: link(folder / "link", "link"),
    "a loop of links": lambda folder: link(folder / "a", link(folder / "b", "a").name),
    "below a loop": lambda folder: link(folder / "link", "link") / "new",
    "below a file": lambda folder: old(folder / "file") / "new",
    "no folder": lambda folder: folder / "no" / "such" / "new",
    "a folder": lambda folder: folder,
    "a name of 300 characters": lambda folder: folder / ("x" * 300),
    "a path of 5000 characters": lambda folder: folder.joinpath(*["x" * 99] * 50),
    "a pipe": lambda folder: pipe(folder / "pipe"),
    "a link to a pipe": lambda folder: link(folder / "link", pipe(folder / "pipe").name),
}


def seen(folder: Path) -> dict[str, tuple[int, str]]:
    """What is in a folder: kind, mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = ""
        if stat.S_ISLNK(mode):
            content = str(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_text()
        found[str(path.relative_to(folder))] = (mode, content)
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_command_that_is_refused_changes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    place: str,
) -> None:
    path = PLACES[place](tmp_path)
    before = seen(tmp_path)
    run = console(monkeypatch, capsys)
    code, out, err = run(*OPTIONS[option], option, path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{option} {path}: cannot be written: " in err or "NOT_SET: no API key" in err
    assert seen(tmp_path) == before


@pytest.mark.parametrize("place", [place for place in PLACES if "pipe" not in place])
def test_what_is_accepted_can_be_written(tmp_path: Path, place: str) -> None:
    """Through a link, which stays one; a file that was there keeps its mode, nothing is left."""
    path = PLACES[place](tmp_path)
    before = seen(tmp_path)
    try:
        writable("--report", path)
    except SonicEksError:
        with pytest.raises(SonicEksError, match="cannot be written"):
            write("--report", path, "new")
        assert seen(tmp_path) == before
        return
    write("--report", path, "new")
    after = seen(tmp_path)
    changed = {name: entry for name, entry in after.items() if entry != before.get(name)}
    assert list(changed) == [str(path.resolve().relative_to(tmp_path.resolve()))]
    assert before.keys() <= after.keys()
    [(name, (mode, content))] = changed.items()
    assert content == "new"
    if name in before:
        assert mode == before[name][0]


def test_the_umask_holds_for_a_new_file_alone(tmp_path: Path) -> None:
    new, shared = tmp_path / "new", old(tmp_path / "shared", 0o666)
    before = os.umask(0o077)
    try:
        write("--report", new, "x")
        write("--report", shared, "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert stat.S_IMODE(shared.stat().st_mode) == 0o666


def test_a_file_that_another_owns_stays_his(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr("os.fchown", lambda _, user, group: given.append((user, group)))
    path = old(tmp_path / "file")
    write("--report", path, "new")
    write("--report", tmp_path / "new", "new")
    assert given == [(os.getuid(), path.stat().st_gid)]

    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.fchown", refuse)
    write("--report", path, "newer")
    assert path.read_text() == "newer"


def test_a_pipe_is_not_opened_before_there_is_something_to_read(tmp_path: Path) -> None:
    path = pipe(tmp_path / "pipe")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writable("--report", path)
        os.set_blocking(reader, True)
        write("--report", path, "all of it")
        assert os.read(reader, 100) == b"all of it"
    finally:
        os.close(reader)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/full"])
def test_a_device_is_no_file(name: str) -> None:
    writable("--report", Path(name))
    distinct({"--report": Path(name), "--profile": Path(name)})


def test_two_ways_to_one_file_are_one(tmp_path: Path) -> None:
    path = link(tmp_path / "link", "new")
    with pytest.raises(SonicEksError, match="--report and --profile: got the same file"):
        distinct({"--report": tmp_path / "new", "--profile": path})


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("named", [True, False])
def test_the_file_of_a_stream_is_not_replaced(tmp_path: Path, stream: str, named: bool) -> None:
    """`> file` and `--report file`, or /dev/stdout: the one would lose what the other wrote."""
    path = tmp_path / "out"
    given = path if named else Path("/dev") / stream
    with path.open("w") as file:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: file}
        command = [sys.executable, "-m", "sonic_eks.cli.main", *OPTIONS["--report"]]
        done = subprocess.run(
            [*command, "--report", str(given)], cwd=ROOT, text=True, check=False, **pipes
        )
    assert done.returncode == 2
    name = {"stdout": "standard output", "stderr": "standard error"}[stream]
    said = f"--report {given}: {name} goes there; give another file\n"
    assert (path.read_text() if stream == "stderr" else done.stderr) == said
