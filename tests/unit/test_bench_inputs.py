"""What a person gives a measurement: a key in the wrong place is never shown."""

from __future__ import annotations

import pytest

from tests.console import Run, console

URL = "http://127.0.0.1:9"
SECRET = "sk_car_s3cretS3cretS3cret"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call `sonic-eks bench` with a key in its variable."""
    monkeypatch.setenv("CARTESIA_API_KEY", "k-of-the-test")
    return console(monkeypatch, capsys, "bench")


@pytest.mark.parametrize("command", ["bench", "verify-drain"])
@pytest.mark.parametrize(
    "arguments",
    [
        *([f"{url}"] for url in (SECRET, f" {SECRET}", f"{SECRET}\n")),
        *(
            [url.format(SECRET)]
            for url in (
                "http://user:{}@127.0.0.1:99999",
                "http://user:{}@127.0.0.1:0",
                "http://user:{}@127.0.0.1:x",
                "ftp://user:{}@host",
                "user:{}@host",
                "http:/user:{}@host",
                "http://user:{}@",
                "http://{}@",
                "http://user:{}@a..b",
                "http://user:{}@[::1",
                "http://user:{}@host/a b",
                "http://user:12/{}@host",
                "http://user:/ä{}@host",
                "http://host/user:{}@there",
                "http://user:{}@host\t",
                "http://user:?{}@host",
                "http://user:#{}@host",
                "http://host:99999?key={}",
                "ftp://host?key={}",
                "http://a..b#{}",
                "http://host/ä?key={}",
                "\nhttp://host?key={}",
            )
        ),
        [URL, "--key-env", SECRET],
        [URL, "--key-file", SECRET],
        [URL, "--key-file", f"/{SECRET}"],
        [URL, "--key-file", f"pyproject.toml/{SECRET}"],
        [URL, "--key-file", SECRET * 20],
        [URL, "--key-file", "/dev/null", "--key-env", SECRET],
    ],
)
def test_a_key_in_the_wrong_place_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    arguments: list[str],
) -> None:
    for key in ("", "k-of-the-test"):
        monkeypatch.setenv("CARTESIA_API_KEY", key)
        code, out, err = console(monkeypatch, capsys, command)(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "s3cret" not in err


@pytest.mark.parametrize("place", ["\n", "\t", "\r", "\0", "\x1b", "\x7f", "\u2028"])
@pytest.mark.parametrize("url", ["{}http://h:1", "ht{}tp://h:1", "http://h{}:1/a", "http://h:1/{}"])
def test_a_control_character_in_a_url_is_refused(bench: Run, url: str, place: str) -> None:
    code, out, err = bench(url.format(place))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "allowed: http://HOST:PORT" in err


def test_a_name_of_a_variable_that_is_set_or_usual_is_shown(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("my_key", " ")
    for name in ("my_key", "NOT_SET_2"):
        code, out, err = bench(URL, "--key-env", name)
        assert (code, out) == (2, "")
        assert err.startswith(f"environment variable {name}: no API key; set {name} ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "1e-300"], "--rate: got 1e-300 with 300 generations, which takes more than 24"),
        (["--rate", "5e-324"], "than 24 h; allowed: 0.00349 or more, or fewer --generations"),
        (["--rate", "1", "--generations", "86401"], "more than 24 h; allowed: 1.01 or more"),
        (
            ["--rate", "1", "--generations", "14401", "--job", "config/default.yaml"],
            "more than 4 h; allowed: 1.01 or more",
        ),
        *(
            (["--seed", seed], "seed")
            for seed in ("-1", str(2**32), "9" * 4300, "9" * 4301, "1e3", "nan")
        ),
    ],
)
def test_a_number_that_is_too_large_or_too_small(
    bench: Run, arguments: list[str], said: str
) -> None:
    code, out, err = bench(URL, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize(
    "arguments", [["--rate", "1", "--generations", "86400"], ["--seed", str(2**32 - 1)]]
)
def test_the_largest_numbers_that_are_allowed(bench: Run, arguments: list[str]) -> None:
    assert "cannot be reached" in bench(URL, *arguments)[2]
