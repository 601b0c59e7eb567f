"""The license's seed: all of it or nothing, never over what is there; how it gets into a pod."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.license_seed.seed import SeedError, seed

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted((ROOT / "sidecar" / "license_seed").glob("*.py"))
TEXT = b'{"license": "\xff\x00 any bytes"}\n'


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-S", "-B", "-m", "sidecar.license_seed", *map(str, arguments)]


def run(
    *arguments: object, preexec: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=preexec,
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    path = tmp_path / "volume"
    path.mkdir()
    return path


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_an_empty_volume_gets_the_license(source: Path, volume: Path) -> None:
    ended = run(source, volume / "license.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"seeded {volume}/license.json\n"
    assert (volume / "license.json").read_bytes() == TEXT
    assert everything_in(volume) == ["license.json"]
    # The proxy runs as a user of its own, in the group of the volume; nobody else reads it.
    assert (volume / "license.json").stat().st_mode & 0o777 == 0o660


def test_missing_folders_are_made_for_the_group(source: Path, volume: Path) -> None:
    assert run(source, volume / "v1" / "keys" / "license").returncode == 0
    assert everything_in(volume) == ["v1", "v1/keys", "v1/keys/license"]
    assert (volume / "v1" / "keys").stat().st_mode & 0o777 == 0o770


@pytest.mark.parametrize("there", ["other", "empty", "folder", "dangling link"])
def test_whatever_is_there_stays(source: Path, volume: Path, there: str) -> None:
    target = volume / "license"
    if there == "folder":
        target.mkdir()
    elif there == "dangling link":
        target.symlink_to(volume / "nowhere")
    else:
        target.write_bytes(b"renewed" if there == "other" else b"")
    before = target.lstat()
    ended = run(source, target)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"kept {target}, which is there already\n"
    assert everything_in(volume) == ["license"]
    after = target.lstat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


def test_what_is_there_needs_no_source(volume: Path) -> None:
    """A license that was renewed goes on when the secret of the first one is gone."""
    (volume / "license").write_bytes(b"renewed")
    assert run(volume / "no such file", volume / "license").returncode == 0


def test_a_file_that_appears_meanwhile_stays(
    source: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = volume / "license"
    link = os.link

    def late(part: Path, name: Path) -> None:
        target.write_bytes(b"the proxy's own")
        link(part, name)

    monkeypatch.setattr(os, "link", late)
    assert seed(source, target) is False
    assert target.read_bytes() == b"the proxy's own"
    assert everything_in(volume) == ["license"]


def test_of_runs_at_the_same_time_one_seeds(tmp_path: Path, volume: Path) -> None:
    target = volume / "v1" / "license"
    sources = []
    for index in range(6):
        path = tmp_path / f"secret{index}"
        path.write_bytes(bytes([index]) * 3_000_000)
        sources.append(path)
    started = [
        subprocess.Popen(command(path, target), cwd=ROOT, env={}, stdout=subprocess.PIPE, text=True)
        for path in sources
    ]
    said = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0] * len(sources)
    (winner,) = [i for i, text in enumerate(said) if text.startswith("seeded ")]
    assert all(text.startswith("kept ") for i, text in enumerate(said) if i != winner)
    assert target.read_bytes() == sources[winner].read_bytes()
    assert everything_in(volume) == ["v1", "v1/license"]


def test_a_kill_leaves_all_of_it_or_nothing(tmp_path: Path, volume: Path) -> None:
    large = tmp_path / "secret"
    large.write_bytes(os.urandom(1 << 20) * 48)
    target = volume / "license"
    process = subprocess.Popen(command(large, target), cwd=ROOT, env={})
    limit = time.monotonic() + 30
    while not everything_in(volume) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    assert not target.exists() or target.read_bytes() == large.read_bytes()
    # Nobody holds the lock, and what the killed run left is in nobody's way.
    assert run(large, target).returncode == 0
    assert target.read_bytes() == large.read_bytes()


def test_the_leftover_of_a_kill_is_written_over(source: Path, volume: Path) -> None:
    (volume / ".license.part").write_bytes(b"x" * 100_000)
    assert run(source, volume / "license").returncode == 0
    assert (volume / "license").read_bytes() == TEXT
    assert everything_in(volume) == ["license"]


def test_a_disk_that_takes_no_more_leaves_nothing(tmp_path: Path, volume: Path) -> None:
    import resource

    large = tmp_path / "secret"
    large.write_bytes(b"x" * 65_536)

    def no_room() -> None:
        # As a full disk: the first bytes are written, then an error comes.
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    ended = run(large, volume / "license", preexec=no_room)
    assert ended.returncode == 1
    assert ended.stderr == f"license-seed: {volume}/license cannot be written: File too large\n"
    assert everything_in(volume) == []
    assert run(large, volume / "license").returncode == 0


def test_a_full_disk_is_told_in_one_line(
    source: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        SeedError, match=r"^\S+/license cannot be written: No space left on device$"
    ):
        seed(source, volume / "license")
    assert everything_in(volume) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.unlink(), "cannot be read: No such file or directory"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b""), "is empty"),
    ],
)
def test_a_source_that_gives_nothing_is_told(
    source: Path, volume: Path, make: Callable[[Path], object], said: str
) -> None:
    make(source)
    ended = run(source, volume / "license")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"license-seed: {source} {said}\n"
    assert everything_in(volume) == []


def test_a_folder_that_is_a_file_is_told(source: Path, volume: Path) -> None:
    (volume / "v1").write_bytes(b"")
    ended = run(source, volume / "v1" / "license")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"license-seed: {volume}/v1/license cannot be written: ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), ("a",), ("a", "b", "c"), ("", "b"), ("a", "")])
def test_wrong_arguments_are_told_in_one_line(arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "license-seed: two paths are needed: SOURCE TARGET\n"


def test_what_it_says_holds_nothing_of_the_license(source: Path, volume: Path) -> None:
    source.write_bytes(b"TOP-SECRET")
    for _ in ("seeded", "kept"):
        ended = run(source, volume / "license")
        assert "SECRET" not in ended.stdout + ended.stderr


def test_needs_the_standard_library_only() -> None:
    imported = set()
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"sidecar.license_seed.seed"}


def test_runs_from_a_mounted_config_map(tmp_path: Path, source: Path, volume: Path) -> None:
    """A mounted ConfigMap is flat and its files are links through ..data."""
    mount = tmp_path / "pod" / "sidecar" / "license_seed"
    data = mount / "..2026_01_01"
    data.mkdir(parents=True)
    (mount / "..data").symlink_to(data.name)
    for file in FILES:
        (data / file.name).write_text(file.read_text())
        (mount / file.name).symlink_to(f"..data/{file.name}")
    done = subprocess.run(
        command(source, volume / "license"),
        cwd=tmp_path / "pod",
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (volume / "license").read_bytes() == TEXT
