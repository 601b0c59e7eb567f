"""The gate's command line."""

from __future__ import annotations

import pytest

from sidecar.stream_gate.settings import parse_arguments

MINIMUM = "--port 8090 --propagation-seconds 120 --budget-seconds 720"


def test_api_pod() -> None:
    settings = parse_arguments(f"{MINIMUM} --watch-port 5000 --watch-port 5001".split())
    assert settings.watch_port == (5000, 5001)
    assert (settings.idle_seconds, settings.load_url) == (2.0, None)


def test_worker_pod() -> None:
    url = "http://127.0.0.1:8080/metrics"
    settings = parse_arguments(f"{MINIMUM} --load-url {url}".split())
    assert (settings.load_url, settings.load_metric) == (url, "inferno_worker_load")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (MINIMUM, "--watch-port"),
        (f"{MINIMUM} --watch-port 0", "--watch-port"),
        (f"{MINIMUM} --watch-port 65536", "65535"),
        (f"{MINIMUM} --watch-port http", "http"),
        (f"{MINIMUM} --watch-port 50 --idle-seconds nan", "nan"),
        (f"{MINIMUM} --watch-port 50 --idle-seconds 0", "--idle-seconds"),
        (f"{MINIMUM} --watch-port 50 --idle-seconds 1 --poll-seconds 2", "--poll-seconds"),
        (f"{MINIMUM} --watch-port 50 --budget-seconds 1", "--budget-seconds"),
        (f"{MINIMUM} --watch-port 50 --budget-seconds inf", "inf"),
        (f"{MINIMUM} --watch-port 50 --propagation-seconds -1", "--propagation-seconds"),
        (f"{MINIMUM} --load-url https://127.0.0.1/metrics", "http://"),
        (f"{MINIMUM} --load-url http://[::1/metrics", "http://"),
        (f"{MINIMUM} --load-url http://:8080/metrics", "http://"),
        (f"{MINIMUM} --load-url http://h:99999/metrics", "http://"),
        ("--watch-port 50", "--port"),
        (f"{MINIMUM} --watch-port 50 --warm-up-url https://h/", "--warm-up-url"),
        (f"{MINIMUM} --watch-port 50 --warm-up-requests 0", "--warm-up-requests"),
        (f"{MINIMUM} --watch-port 50 --colour red", "--colour"),
    ],
)
def test_mistakes_exit_2_with_one_line(
    capsys: pytest.CaptureFixture[str], arguments: str, names: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_arguments(arguments.split())
    captured = capsys.readouterr()
    assert stopped.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert names in captured.err
