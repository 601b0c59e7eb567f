"""`sonic-eks bench`: what it refuses, in one line, and what it writes."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from sonic_eks.cli import main as cli
from tests.plain_server import plain_server
from tests.synth import ROOT

Run = Callable[..., tuple[int, str, str]]
URL = "http://127.0.0.1:9"
ONE = ("--gpus", "1")
KEY = "sk-very-secret"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call `sonic-eks bench` with a key in its variable: status, standard output and error."""
    monkeypatch.setenv("CARTESIA_API_KEY", KEY)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sonic-eks", "bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def refused(result: tuple[int, str, str], said: str, status: int = 2) -> None:
    """One line on standard error, nothing on the other, no key."""
    code, out, err = result
    assert (code, out) == (status, "")
    assert err.count("\n") == 1
    assert said in err
    assert KEY not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either the URL of a service or --read FILE"),
        ([URL, "--read", "x.json"], "give either the URL of a service or --read FILE"),
        (["127.0.0.1:5000"], "URL: got '127.0.0.1:5000'; allowed: http://HOST:PORT"),
        (["ftp://host"], "allowed: http://HOST:PORT"),
        (["http://"], "allowed: http://HOST:PORT"),
        (["http://host:99999"], "allowed: http://HOST:PORT"),
        (["http://host:0"], "allowed: http://HOST:PORT"),
        (["http://[::1"], "allowed: http://HOST:PORT"),
        (["http://[::1%]"], "allowed: http://HOST:PORT"),
        (["http://a..b"], "allowed: http://HOST:PORT"),
        (["http://.a"], "allowed: http://HOST:PORT"),
        (["http://a b"], "allowed: http://HOST:PORT"),
        (["http://-a"], "allowed: http://HOST:PORT"),
        (["http://hürth"], "allowed: http://HOST:PORT"),
        ([f"http://{'a' * 64}.b"], "allowed: http://HOST:PORT"),
        ([f"http://{'a.' * 127}"], "allowed: http://HOST:PORT"),
        (["http://host/a b"], "URL: got the path '/a b'; allowed: printable ASCII"),
        (["http://host/ä"], "URL: got the path '/ä'; allowed: printable ASCII"),
        ([f"http://user:{KEY}@host"], "the API key comes from CARTESIA_API_KEY or --key-file"),
        ([f"http://host?key={KEY}"], "the API key comes from CARTESIA_API_KEY or --key-file"),
        ([URL, "--rate", "0"], "--rate: got 0.0; allowed: above 0"),
        ([URL, "--rate", "-1"], "--rate: got -1.0; allowed: above 0"),
        ([URL, "--rate", "nan"], "--rate: got nan; allowed: above 0"),
        ([URL, "--rate", "inf"], "--rate: got inf; allowed: above 0"),
        ([URL, "--rate", "fast"], "--rate"),
        ([URL, "--rate", "1", "--concurrency", "1"], "give one, or neither to search"),
        ([URL, "--arrivals", "poisson"], "--arrivals: got poisson without --rate"),
        ([URL, "--rate", "1", "--arrivals", "closed"], "allowed: poisson, constant"),
        ([URL, "--concurrency", "0"], "concurrency"),
        ([URL, "--concurrency", "-3"], "concurrency"),
        ([URL, "--generations", "0"], "generations"),
        ([URL, "--slo-ms", "0"], "--slo-ms: got 0.0; allowed: above 0"),
        ([URL, "--percentile", "101"], "--percentile: got 101.0; allowed: above 0, at most 100"),
        ([URL, "--underrun-percent", "-1"], "--underrun-percent: got -1.0; allowed: 0 to 100"),
        ([URL, "--speaking-percent", "0"], "--speaking-percent: got 0.0; allowed: above 0"),
        ([URL, "--buffer-delay-ms", "-1"], "buffer-delay-ms"),
        ([URL, "--buffer-delay-ms", "5001"], "buffer-delay-ms"),
        ([URL, "--timeout", "0"], "--timeout: got 0.0; allowed: above 0"),
        ([URL, "--encoding", "mp3"], "--encoding: got 'mp3'; allowed: pcm_f32le, pcm_s16le"),
        ([URL, "--protocol", "grpc"], "grpc"),
        ([URL, "--key-env", "NOT_SET"], "environment variable NOT_SET: no API key"),
        ([URL, "--key-file", "no/such/file"], "--key-file: cannot be read: No such file"),
        ([URL, "--report", "no/such/folder/r.html"], "--report no/such/folder/r.html: cannot be"),
        ([URL, "--report", "."], "--report .: cannot be written: Is a directory"),
        (
            [URL, "--profile", "no/such/p.yaml", "--gpu", "L4", "--gpus", "1"],
            "--profile no/such/p.yaml: cannot",
        ),
        ([URL, "--profile", "p.yaml"], "--profile: got no --gpu"),
        ([URL, "--gpu", "L4"], "got no --profile"),
        ([URL, "--gpus", "2"], "got no --profile"),
        ([URL, "--profile", "p.yaml", "--gpu", "L4"], "--profile: got no --gpus; say how many"),
        ([URL, "--gpu", ""], "got no --profile"),
        ([URL, "--release", ""], "got no --profile"),
        (
            [URL, "--profile", "p.yaml", "--gpu", "", *ONE],
            "--profile: gpu: got ''; string should have",
        ),
        ([URL, "--profile", "p.yaml", "--gpu", "x" * 81, *ONE], "string should have at most 80"),
        (
            [URL, "--profile", "p.yaml", "--gpu", "L4", *ONE, "--release", ""],
            "--profile: release: got ''; string should have",
        ),
        (
            [URL, "--profile", "p.yaml", "--gpu", "L4", *ONE, "--model", "x" * 81],
            "--profile: model: got 'xxx",
        ),
        (["--read", "x.json", "--concurrency", "2"], "--concurrency: got it with --read"),
        (["--read", "x.json", "--rate", "2"], "--rate: got it with --read"),
        (["--read", "x.json", "--job", "c.yaml"], "--job: got it with --read"),
        (["--read", "x.json", "--slo-ms", "100"], "--slo-ms: got it with --read"),
        (["--read", "x.json", "--key-env", "X"], "--key-env: got it with --read"),
        ([URL, "--concurrency", "1", "--max-concurrency", "9"], "got it with --concurrency"),
        ([URL, "--rate", "1", "--speaking-percent", "9"], "got it with --rate"),
        *(
            (
                [URL, "--protocol", protocol, option, "1"],
                f"{option}: got it with --protocol {protocol}; it is for websocket alone",
            )
            for protocol in ("sse", "bytes")
            for option in ("--contexts-per-socket", "--buffer-delay-ms")
        ),
        (["--read", "no/such.json"], "--read no/such.json: cannot be read"),
        (["--read", "pyproject.toml"], "not the JSON that `sonic-eks bench --json` prints"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    refused(run(*arguments), said)


@pytest.mark.parametrize("key", ["", "  ", "two words", "schlüssel", "a\nb"])
def test_a_file_without_a_key_is_refused(run: Run, tmp_path: Path, key: str) -> None:
    file = tmp_path / "key"
    file.write_text(key, "utf-8")
    code, _, err = run(URL, "--key-file", file)
    assert (code, err.count("\n")) == (2, 1)
    assert "no API key" in err
    assert not key.strip() or key not in err


def test_an_unreachable_service(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for protocol in ("websocket", "sse", "bytes"):
        refused(run(f"http://127.0.0.1:{port}", "--protocol", protocol), "cannot be reached")
    refused(run("http://no-such-host.invalid"), "cannot be reached")


def answer(status: str, body: str = "", kind: str = "application/json") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


@pytest.mark.parametrize("protocol", ["websocket", "sse", "bytes"])
@pytest.mark.parametrize(
    ("reply", "said", "status"),
    [
        (answer("401 Unauthorized", f'{{"title": "no {KEY}"}}'), "the API key was refused", 2),
        (answer("403 Forbidden"), "the API key was refused", 2),
        (answer("404 Not Found"), "no service of this protocol at /tts/", 2),
        (answer("500 Oops", '{"title": "broken"}'), "speaks something else, or does not know", 2),
        (answer("429 Busy"), "the first generation failed: status 429", 1),
        (answer("200 OK", "hello", "text/html"), "", 2),
        (answer("500 Oops", "[" * 100_000), "status 500", 2),
        (answer("500 Oops", '{"title": ' + "[" * 900 + "]" * 900 + "}"), "status 500", 2),
        *(
            (
                f"HTTP/1.1 {status} Elsewhere\r\nLocation: {place}\r\n"
                "Content-Length: 0\r\n\r\n".encode(),
                "answers with a redirect",
                2,
            )
            for status in (301, 308)
            for place in ("http://127.0.0.1:9/", "ws://127.0.0.1:9/", "nonsense://", "")
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "", 2),
        (b"\x00" * 40, "", 2),
    ],
)
def test_a_service_that_is_none(
    run: Run, protocol: str, reply: bytes, said: str, status: int
) -> None:
    with plain_server(reply) as port:
        arguments = (f"http://127.0.0.1:{port}", "--protocol", protocol, "--timeout", "1")
        refused(run(*arguments), said, status)


@pytest.mark.parametrize("protocol", ["websocket", "sse", "bytes"])
def test_a_service_that_does_not_answer(run: Run, protocol: str) -> None:
    with plain_server(None) as port:
        arguments = (f"http://127.0.0.1:{port}", "--protocol", protocol, "--timeout", "0.2")
        code, out, err = run(*arguments)
    assert (out, err.count("\n")) == ("", 1)
    assert code in (1, 2)
    assert "0.2 s" in err


# ---- a result, as --json prints it, typed by hand


def one(concurrency: int, **changes: Any) -> dict[str, Any]:
    return {
        "load": {
            "arrivals": "closed",
            "generations": 300,
            "concurrency": concurrency,
            "rate": 1.0,
            "seed": 1,
        },
        "processes": 1,
        "valid": True,
        "sloKept": True,
        "missed": [],
        "examples": {},
        "ttfbAtPercentile": 0.055,
        "generations": 300,
        "failures": {},
        "failures_outside": {},
        "ttfb": {"50": 0.05, "90": 0.053, "95": 0.055, "99": 0.06},
        "rtf": {"50": 0.1, "90": 0.11, "95": 0.12, "99": 0.13},
        "connect": {"50": 0.001, "90": 0.001, "95": 0.001, "99": 0.002},
        "gap": {"50": 0.05, "90": 0.05, "95": 0.05, "99": 0.06},
        "underruns": 0,
        "stuttering": 0,
        "stall_seconds": 0.0,
        "in_progress": float(concurrency),
        "characters_per_second": 105.26,
        "audio_per_second": 7.0,
        "busy": 0.11,
        "seconds": 60.0,
        "lag": 0.001,
        "opening_lag": 0.001,
        **changes,
    }


FAILED = {
    "sloKept": False,
    "missed": ["TTFB p95 is never, over 100 ms"],
    "failures": {"rejected": 60},
    "failures_outside": {"rejected": 4, "closed": 1},
    "examples": {"rejected": "status 429: too \x1b[31mmany"},
    "ttfb": {"50": 0.08, "90": None, "95": None, "99": None},
    "rtf": {"50": 0.2, "90": None, "95": None, "99": None},
    "stuttering": 30,
    "underruns": 40,
}


def result(**changes: Any) -> dict[str, Any]:
    return {
        "version": "0.1.0",
        "begun": "2026-11-30T06:00:00+00:00",
        "target": {
            "url": "http://<nlb>:5000",
            "protocol": "websocket",
            "model": "sonic-3",
            "voice": "v",
            "language": "en",
            "encoding": "pcm_s16le",
            "sample_rate": 24000,
            "buffer_delay_ms": 0,
            "timeout_seconds": 10.0,
            "contexts_per_socket": 1,
            "playback_buffer_seconds": 0.0,
        },
        "slo": {"ttfb_ms": 100.0, "percentile": 95.0, "underrun_percent": 1.0},
        "speakingPercent": 40.0,
        "maxConcurrency": 64,
        "runs": [one(1), one(2), one(4, **FAILED), one(3, valid=False), one(2, underruns=1)],
        "capacity": {
            "generations": 2,
            "atLeast": False,
            "conversationsOnAverage": 45.5,
            "conversationsAlone": 9,
        },
        "problems": [],
        **changes,
    }


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps(result(**changes)))
    return path


def test_a_result_as_text(run: Run, tmp_path: Path) -> None:
    code, out, err = run("--read", written(tmp_path))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert re.split(r"  +", lines[3]) == [
        *("4 in progress", "300", "4.0", "80.0", "never", "never", "never"),
        *("0.20", "105", "1.0", "60", "30", "1.0", "missed"),
    ]
    assert lines[4].endswith("not valid")
    said = r"the first: status 429: too \x1b[31mmany"
    assert f"4 in progress: 60 rejected and 4 that do not count, {said}" in lines
    assert "4 in progress: 0 closed and 1 that do not count" in lines
    assert "capacity at 100 ms at p95: 2 generations in progress" in lines
    assert "conversations, the service speaking 40 % of the time: 9" in lines
    assert "where one GPU serves all of this: scaling.generationsPerGpu: 2" in lines


def test_a_result_as_json_is_what_was_read(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("--read", written(tmp_path), "--json")
    assert code == 0
    assert json.loads(out) == result()


def test_problems_are_lines_and_status_1(run: Run, tmp_path: Path) -> None:
    code, _, err = run("--read", written(tmp_path, problems=["not valid: x"]))
    assert (code, err) == (1, "not valid: x\n")


@pytest.mark.slow  # matplotlib
def test_the_report_holds_plots_and_figures(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    code, _, err = run("--read", written(tmp_path), "--report", report)
    assert (code, err) == (0, "")
    html = report.read_text()
    assert "&lt;nlb&gt;" in html
    assert "<nlb>" not in html
    images = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", html)]
    assert len(images) == 3
    for image in images:
        assert image.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", image[16:24])
        assert width > 600
        assert height > 300
    assert "4 in progress: 60 rejected and 4 that do not count, the first: status 429: too" in html
    assert "not valid" in html
    assert html.index("Time to first byte against generations in progress") < html.index("<table")


@pytest.mark.slow  # matplotlib
def test_the_plots_show_valid_runs_the_objective_and_gaps_for_never(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonic_eks.bench import plots

    drawn: list[Any] = []
    monkeypatch.setattr(plots, "to_png", lambda figure, axes: drawn.append(axes) or b"")
    plots.plots(result())
    ttfb, underruns, failures = drawn
    lines = {line.get_label(): line for line in ttfb.lines}
    assert set(lines) == {"p50", "p90", "p95", "p99", "objective: 100 ms at p95"}
    assert list(lines["p50"].get_xdata()) == [1, 2, 2, 4], "the run that is not valid is left out"
    assert list(lines["p50"].get_ydata()) == [50, 50, 50, 80]
    assert [y != y for y in lines["p95"].get_ydata()] == [False, False, False, True]
    assert list(lines["objective: 100 ms at p95"].get_ydata()) == [100, 100]
    assert list(underruns.lines[0].get_ydata()) == [0, 0, 0, 10]
    assert [line.get_label() for line in failures.lines] == ["rejected"]
    assert list(failures.lines[0].get_ydata()) == [0, 0, 0, 20]


def test_the_profile_holds_the_valid_runs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "l40s.yaml"
    arguments = ("--profile", path, "--gpu", "L40S", "--gpus", "2", "--release", "sonic-20260503")
    code, _, err = run("--read", written(tmp_path), *arguments)
    assert (code, err) == (0, "")
    assert yaml.safe_load(path.read_text()) == {
        "gpu": "L40S",
        "model": "sonic-3",
        "release": "sonic-20260503",
        "side": "client",
        "gpus": 2,
        "source": "sonic-eks bench 0.1.0, 300 generations a point or more",
        "dated": "2026-11-30",
        "points": [
            {
                "concurrency": 1,
                "firstAudioMs": {"p50": 50.0, "p90": 53.0, "p95": 55.0, "p99": 60.0},
                "rtf": {"p50": 0.1, "p90": 0.11, "p95": 0.12, "p99": 0.13},
                "charactersPerSecond": 105.3,
            },
            {
                "concurrency": 2,
                "firstAudioMs": {"p50": 50.0, "p90": 53.0, "p95": 55.0, "p99": 60.0},
                "rtf": {"p50": 0.1, "p90": 0.11, "p95": 0.12, "p99": 0.13},
                "charactersPerSecond": 105.3,
            },
            {
                "concurrency": 4,
                "firstAudioMs": {"p50": 80.0},
                "rtf": {"p50": 0.2},
                "charactersPerSecond": 105.3,
            },
        ],
    }


def test_figures_that_round_to_nothing_are_kept_or_left_out(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    tiny = {
        "rtf": {"50": 0.0, "90": 0.0004, "95": 0.0006, "99": 0.002},
        "ttfb": {"50": 0.00001, "90": 0.002, "95": 0.002, "99": 0.002},
        "characters_per_second": 0.0,
    }
    nothing = {"rtf": dict.fromkeys(("50", "90", "95", "99"), 0.0)}
    read = written(tmp_path, runs=[one(1, **tiny), one(2, **nothing)])
    code, _, err = run("--read", read, "--profile", path, "--gpu", "L4", "--gpus", "1")
    assert (code, err) == (0, "")
    first, second = yaml.safe_load(path.read_text())["points"]
    assert first == {
        "concurrency": 1,
        "firstAudioMs": {"p50": 0.01, "p90": 2.0, "p95": 2.0, "p99": 2.0},
        "rtf": {"p90": 0.0004, "p95": 0.001, "p99": 0.002},
    }
    assert "rtf" not in second


def test_a_file_is_whole_or_as_it_was(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails half-way, as on a full disk, leaves the old file and nothing beside it."""
    read, folder = written(tmp_path), tmp_path / "out"
    folder.mkdir()
    path = folder / "p.yaml"
    path.write_text("old")

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        code, _, err = run("--read", read, "--profile", path, "--gpu", "L4", "--gpus", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert "No space left on device" in err
    assert path.read_text() == "old"
    assert list(folder.iterdir()) == [path]
    link = folder / "link.yaml"
    link.symlink_to(path)
    assert run("--read", read, "--profile", link, "--gpu", "L4", "--gpus", "1")[0] == 0
    assert link.is_symlink()
    assert "gpu: L4" in path.read_text()
    assert sorted(folder.iterdir()) == [link, path]
    assert run("--read", read, "--profile", "/dev/null", "--gpu", "L4", "--gpus", "1")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--report", "x", "--profile", "x"], "--report and --profile: got the same file x"),
        (["--report", "x", "--profile", "./y/../x"], "--report and --profile: got the same file"),
        (["--report", "result.json"], "--read and --report: got the same file result.json"),
        (["--report", "link"], "--read and --report: got the same file link"),
    ],
)
def test_a_file_for_two_things_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    before = written(tmp_path).read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "y").mkdir()
    (tmp_path / "link").symlink_to("result.json")
    gpu = ["--gpu", "L4", "--gpus", "1"] if "--profile" in arguments else []
    refused(run("--read", "result.json", *arguments, *gpu), said)
    assert (tmp_path / "result.json").read_text() == before


NONSENSE: tuple[Any, ...] = (
    None,
    "x\n\x1b[2J\ud800",
    -1,
    0,
    0.5,
    1e-320,
    999_999_999,
    10**400,
    [[]],
    {},
)


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where a value of a result is, down to the last."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in entries:
        yield (key,)
        if isinstance(entry, dict | list):
            yield from ((key, *rest) for rest in paths(entry))


@pytest.mark.slow
@pytest.mark.parametrize("path", list(paths(result(runs=[one(4, **FAILED)]))), ids=str)
def test_nonsense_in_a_result_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[Any, ...]
) -> None:
    """Whatever stands anywhere: it is refused in one line, or shown without a control character."""
    drawing = (MagicMock(), MagicMock())  # what is read for it matters here, not how it looks
    monkeypatch.setattr("sonic_eks.bench.plots.new_figure", lambda *_: drawing)
    monkeypatch.setattr("sonic_eks.bench.plots.to_png", lambda *_: b"")
    file, report = tmp_path / "result.json", tmp_path / "r.html"
    outputs = ("--report", report, "--profile", tmp_path / "p.yaml", "--gpu", "L4", "--gpus", "1")
    for nonsense in (*NONSENSE, ...):
        data = copy.deepcopy(result(runs=[one(4, **FAILED)]))
        *folders, name = path
        holder: Any = data
        for folder in folders:
            holder = holder[folder]
        if nonsense is ...:
            del holder[name]
        else:
            holder[name] = nonsense
        file.write_text(json.dumps(data))
        code, out, err = run("--read", file, *outputs)
        assert code in (0, 1, 2), (nonsense, err)
        assert "Traceback" not in err
        assert "\x1b" not in out + err
        if code == 2:
            assert (out, err.count("\n")) == ("", 1), (nonsense, out, err)


FALLING = {"50": 0.2, "90": 0.1, "95": 0.3, "99": 0.4}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ttfb": FALLING}, "points.1.firstAudioMs: got a list of 4; allowed: one percentile"),
        ({"rtf": FALLING}, "points.1.rtf: got a list of 4; allowed: one percentile"),
        ({"load": {**one(2)["load"], "concurrency": 0}}, "points.0.concurrency: got 0"),
        ({"load": {**one(2)["load"], "concurrency": 999_999_999}}, "points.1.concurrency: got 999"),
    ],
)
def test_figures_that_fit_no_profile_are_one_line(
    run: Run, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    read, path, report = (
        written(tmp_path, runs=[one(1), one(2, **changes)]),
        *map(tmp_path.joinpath, ("p.yaml", "r.html")),
    )
    files = ("--profile", path, "--report", report)
    refused(run("--read", read, *files, "--gpu", "L4", *ONE), f"--profile: {said}")
    assert not path.exists()
    assert not report.exists()
    assert run("--read", read)[0] == 0, "without a profile it is shown"


def test_a_measurement_that_fits_no_profile_is_shown(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = result(runs=[one(1), one(2, ttfb=FALLING)])
    monkeypatch.setattr("sonic_eks.cli.bench._measure", lambda _: measured)
    path = tmp_path / "p.yaml"
    code, out, err = run(URL, "--profile", path, "--gpu", "L4", *ONE, "--json")
    assert (code, json.loads(out)) == (2, measured)
    assert err.startswith("--profile: points.1.firstAudioMs: ")
    assert not path.exists()


def test_a_report_that_cannot_be_drawn_loses_no_figures(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Any) -> str:
        raise MemoryError

    monkeypatch.setattr("sonic_eks.bench.report.html_report", broken)
    with pytest.raises(MemoryError):
        run("--read", written(tmp_path), "--report", tmp_path / "r.html", "--json")
    assert json.loads(capsys.readouterr().out) == result()


@pytest.mark.slow
@pytest.mark.parametrize("problems", [[], ["not valid: x"]])
@pytest.mark.parametrize("runs", [2, 200])
@pytest.mark.parametrize("output", ["nobody reads", "full", "closed"])
def test_files_and_status_do_not_hang_on_the_output(
    tmp_path: Path, output: str, runs: int, problems: list[str]
) -> None:
    """A reader that left, a full disk, no output at all; with less than a buffer of it and more."""
    read = written(tmp_path, runs=[one(count + 1) for count in range(runs)], problems=problems)
    path = tmp_path / "p.yaml"
    words = ("bench", "--read", str(read), "--profile", str(path), "--gpu", "L4", "--gpus", "1")
    command = (sys.executable, "-m", "sonic_eks.cli.main", *words, "--json")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe, Path("/dev/full").open("wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*("bash", "-c", f'"$@" {">&-" if output == "closed" else ""}', "-"), *command],
            stdout=full if output == "full" else pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=ROOT,
        )
    said = [*problems]
    if output == "full":
        said.append("sonic-eks: the output cannot be written: No space left on device")
    assert done.stderr.splitlines() == said
    assert done.returncode == (1 if said else 0)
    assert len(yaml.safe_load(path.read_text())["points"]) == runs


@pytest.mark.slow
def test_a_pipe_whose_reader_comes_late_holds_up_no_figures(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ("--read", str(written(tmp_path)), "--profile", str(pipe), "--gpu", "L4", *ONE)
    command = [sys.executable, "-m", "sonic_eks.cli.main", "bench", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            printed = [process.stdout.readline() for _ in range(6)]
            assert printed[0].startswith("load ")
            assert process.poll() is None
            assert "gpu: L4" in pipe.read_text()
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_no_profile_without_a_valid_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    read = written(tmp_path, runs=[one(1, valid=False)], capacity=None, problems=["not valid: x"])
    code, _, err = run("--read", read, "--profile", path, "--gpu", "L4", "--gpus", "1")
    assert code == 1
    assert err.splitlines()[0] == "not valid: x"
    assert "--profile: not written" in err.splitlines()[1]
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([URL, "--job", "no/such.yaml"], "no/such.yaml"),
        (["--job", "config/default.yaml"], "give either the URL of a service or --read FILE"),
        ([URL, "--job", "config/default.yaml", "--json"], "--job: got --report, --profile or"),
        ([URL, "--outputs", "outputs.json"], "--outputs: got no --job"),
        *(
            ([URL, "--job", "config/default.yaml", option, "X"], f"{option}: got it with --job")
            for option in ("--key-env", "--key-file")
        ),
    ],
)
def test_a_job_that_cannot_be(run: Run, arguments: list[str], said: str) -> None:
    refused(run(*arguments), said)


@pytest.mark.slow  # cdk8s
@pytest.mark.parametrize("key", [KEY, ""])
def test_a_job_needs_no_key_and_shows_none(
    run: Run, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("CARTESIA_API_KEY", key)
    rendering: list[bool] = []
    monkeypatch.setattr(
        "sonic_eks.k8s.bench_job._check_callers",
        lambda config: rendering.append("CARTESIA_API_KEY" in os.environ),
    )
    code, out, err = run("http://nlb:80", "--job", "config/default.yaml")
    assert rendering == [False], "Node.js, which renders, sees the environment"
    assert (code, err) == (0, "")
    job = list(yaml.safe_load_all(out))[-1]
    assert job["kind"] == "Job"
    assert job["spec"]["activeDeadlineSeconds"] == 4 * 3600, "what --rate is held to with --job"
    assert KEY not in out
