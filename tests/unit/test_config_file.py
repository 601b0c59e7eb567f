"""The file as such: what cannot be read, is not YAML, or says something else than it seems to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sonic_eks.config import load_configuration
from sonic_eks.errors import ConfigurationError
from tests.configuration import VALID_TEXT, faults_of, load_text
from tests.synth import ROOT


def only_fault(text: str | bytes, folder: Path) -> str:
    (fault,) = faults_of(text, folder)
    return fault


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.yaml", "No such file or directory"),
        (".", "Is a directory"),
        ("x" * 300, "File name too long"),
        ("a\0b", "embedded null byte"),
        ("loop", "Too many levels of symbolic links"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(tmp_path / name)
    (fault,) = caught.value.faults
    assert f"cannot be read: {reason}" in fault
    assert fault.isprintable()


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may read any file, so the system's refusal is played.
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigurationError, match="cannot be read: Permission denied"):
        load_configuration(tmp_path / "deployment.yaml")


def test_a_name_with_control_characters_is_shown_escaped(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(tmp_path / "a\n\x1b[31mb.yaml")
    assert caught.value.faults[0].isprintable()
    assert r"a\n\x1b[31mb.yaml" in caught.value.faults[0]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty; start from config/default.yaml"),
        ("# nothing but a comment\n", "empty; start from config/default.yaml"),
        ("---\n", "empty; start from config/default.yaml"),
        ("- deployment\n", "a mapping of sections is expected at the top, got a list of 1"),
        ("sonic\n", "a mapping of sections is expected at the top, got 'sonic'"),
        ("42\n", "a mapping of sections is expected at the top, got 42"),
        ("deployment:\n\tname: sonic\n", "line 2, column 1: YAML syntax error: a tab; indent"),
        ("a: [1,\n", "line 2, column 1: YAML syntax error: expected the node content"),
        ("a: b: c\n", "line 1, column 5: YAML syntax error: mapping values are not allowed here"),
        ('a: "b\n', "line 2, column 1: YAML syntax error: found unexpected end of stream"),
        ("a: 1\n b: 2\n", "line 2, column 3: YAML syntax error: mapping values are not allowed"),
        ('a: "\\UFFFFFFFF"\n', "YAML syntax error: an escape names no Unicode character"),
        (VALID_TEXT + "---\n" + VALID_TEXT, "expected a single document in the stream but found"),
        ("? [a, b]\n: c\n", "line 1: a key is a list or mapping; keys are words"),
    ],
)
def test_not_one_mapping_of_yaml(tmp_path: Path, text: str, fault: str) -> None:
    assert fault in only_fault(text, tmp_path)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"\xff\xfe", "not UTF-8 at byte 0; save the file as UTF-8"),
        (VALID_TEXT.encode() + b"# caf\xe9\n", "not UTF-8 at byte 94; save the file as UTF-8"),
        (VALID_TEXT.encode("utf-16"), "not UTF-8 at byte 0; save the file as UTF-8"),
        (VALID_TEXT.encode() + b"a: \x00", "line 6: the character U+0000 is not allowed in YAML"),
        (VALID_TEXT.encode() + b"a: \x1b[31m", "line 6: the character U+001B is not allowed"),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, raw: bytes, fault: str) -> None:
    assert fault in only_fault(raw, tmp_path)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + VALID_TEXT.encode(),
        VALID_TEXT.replace("\n", "\r\n").encode(),
        f"---\n{VALID_TEXT}...\n".encode(),
        VALID_TEXT.replace("deployment:", '"deployment":').encode(),
        VALID_TEXT.replace("deployment:", "deployment: &unused").encode(),
    ],
    ids=["BOM", "CRLF", "document marks", "quoted key", "anchor that nothing uses"],
)
def test_harmless_forms_mean_the_same(tmp_path: Path, raw: bytes) -> None:
    assert load_text(raw, tmp_path) == load_text(VALID_TEXT, tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: duplicate key 'a' (first in line 1); keep one"),
        ("a:\n  b: 1\n  b: 1\n", "line 3: duplicate key 'b' (first in line 2); keep one"),
        ("a: [{b: 1, b: 2}]\n", "line 1: duplicate key 'b' (first in line 1); keep one"),
        ('"a": 1\na: 2\n', "line 2: duplicate key 'a' (first in line 1); keep one"),
        ('a: 1\n"\\x61": 2\n', "line 2: duplicate key 'a' (first in line 1); keep one"),
    ],
)
def test_a_key_stands_once(tmp_path: Path, text: str, fault: str) -> None:
    assert only_fault(text, tmp_path) == fault


def test_a_key_has_one_spelling(tmp_path: Path) -> None:
    text = VALID_TEXT + "drain:\n  maxStreamSeconds: 300\n  max_stream_seconds: 400\n"
    fault = only_fault(text, tmp_path)
    assert fault.startswith("drain.max_stream_seconds: unknown key; allowed: maxStreamSeconds, ")
    assert fault.endswith("; nearest: maxStreamSeconds")
    alone = only_fault(VALID_TEXT + "drain:\n  max_stream_seconds: 400\n", tmp_path)
    assert alone == fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: &x 1\nb: *x\n", "line 2: YAML aliases are not supported"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3: YAML aliases are not supported"),
        ("a: &a [*a, *a]\n", "line 1: YAML aliases are not supported"),
        ("c:\n  <<: {b: 1}\n  b: 2\n", "line 2: YAML merge keys (<<) are not supported"),
        ("!!python/object/apply:os.system [id]\n", "line 1: YAML tags such as '!!python/object"),
        ("a: !!python/name:os.system\n", "line 1: YAML tags such as '!!python/name:os.system'"),
        ("a: !!timestamp never\n", "line 1: YAML tags such as '!!timestamp'"),
        ("a: !!float ''\n", "line 1: YAML tags such as '!!float'"),
        ("a: !!bool maybe\n", "line 1: YAML tags such as '!!bool'"),
        ("a: !!binary aGk=\n", "line 1: YAML tags such as '!!binary'"),
        ("a: !!set {b, c}\n", "line 1: YAML tags such as '!!set'"),
        ("a: !secret b\n", "line 1: YAML tags such as '!secret'"),
        ("a: ! b\n", "line 1: YAML tags such as '!'"),
    ],
)
def test_yaml_that_hides_its_value(tmp_path: Path, text: str, fault: str) -> None:
    assert only_fault(text, tmp_path).startswith(fault)


@pytest.mark.parametrize(
    "written",
    ["010", "0o10", "0x10", "0b11", "10:00", "1_000", "1:30.5", "1_0.5"],
)
def test_a_number_in_another_notation(tmp_path: Path, written: str) -> None:
    fault = faults_of(VALID_TEXT + f"drain:\n  maxStreamSeconds: {written}\n", tmp_path)[0]
    if written == "0o10":  # YAML 1.2's octal, text in 1.1
        assert fault.startswith("drain.maxStreamSeconds: got '0o10'; allowed: a whole number")
    else:
        assert fault.startswith(f"line 7: '{written}' is a number in another notation")


@pytest.mark.parametrize("digits", [41, 5_000, 100_000])
def test_a_number_without_end(tmp_path: Path, digits: int) -> None:
    text = VALID_TEXT + f"drain:\n  maxStreamSeconds: {'9' * digits}\n"
    assert only_fault(text, tmp_path) == f"line 7: a number of {digits} characters, 40 at most"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("1", "a number"),
        ("1.5", "a number"),
        ("yes", "true or false"),
        ("NO", "true or false"),
        ("~", "nothing"),
        ("null", "nothing"),
    ],
)
def test_a_key_that_is_no_text(tmp_path: Path, key: str, kind: str) -> None:
    text = VALID_TEXT + f"api:\n  env:\n    {key}: x\n"
    assert only_fault(text, tmp_path) == f"line 8: the key '{key}' is {kind} to YAML; quote it"


def test_dates_are_text(tmp_path: Path) -> None:
    config = load_text(VALID_TEXT + "tags:\n  since: 2026-01-31\n  until: 2026-13-41\n", tmp_path)
    assert config.tags == {"since": "2026-01-31", "until": "2026-13-41"}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "a: " + "[" * 3_000 + "]" * 3_000,
        "{a: " * 900 + "1" + "}" * 900,
        "".join(f"{' ' * n}a:\n" for n in range(900)),
    ],
    ids=["open", "lists", "mappings", "block"],
)
def test_deep_nesting(tmp_path: Path, text: str) -> None:
    assert only_fault(text, tmp_path).startswith("nested too deeply")


def test_a_large_file(tmp_path: Path) -> None:
    fault = only_fault(b"#" * 2 * 1024 * 1024, tmp_path)
    assert fault == "larger than 1048576 bytes; a configuration is a small YAML file"


def test_an_endless_file() -> None:
    with pytest.raises(ConfigurationError, match="larger than 1048576 bytes"):
        load_configuration(Path("/dev/zero"))


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "a\nb", "a\u202eb", "a\u2028b", "\x7f", "\x85"])
def test_hostile_characters_stay_in_one_printable_line(tmp_path: Path, hostile: str) -> None:
    escaped = "".join(f"\\U{ord(c):08X}" for c in hostile)
    for text in (
        f'weights:\n  mountPath: "{escaped}"\n',
        f'"{escaped}": 1\n',
        f'tags:\n  "{escaped}": x\n',
        f'tags:\n  x: "{escaped}"\n',
        f'api:\n  env:\n    "{escaped}": x\n',
        f'registry:\n  versions:\n    "{escaped}": "1"\n',
    ):
        fault = only_fault(VALID_TEXT + text, tmp_path)
        assert hostile.encode("unicode_escape").decode() in fault


@pytest.mark.parametrize(
    "text", ['a: "\\ud800"\n', '"\\ud800": 1\n', 'tags:\n  a: "\\udfff"\n'], ids=["a", "b", "c"]
)
def test_half_a_character(tmp_path: Path, text: str) -> None:
    assert "holds half a character (a surrogate)" in only_fault(text, tmp_path)


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    fault = only_fault(VALID_TEXT + f"cluster:\n  amiAlias: {'x' * 2000}\n", tmp_path)
    assert "x...; allowed: text that matches" in fault
    assert len(fault) < 300


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    text = VALID_TEXT + "drain: {maxStreamSeconds: -1, marginSeconds: 5}\nslo: {ttfbMs: 1}\n"
    fields = [fault.split(":")[0] for fault in faults_of(text, tmp_path)]
    assert sorted(fields) == ["drain.marginSeconds", "drain.maxStreamSeconds", "slo.ttfbMs"]


@pytest.mark.slow
def test_the_app_ends_with_status_2_and_the_faults_alone(tmp_path: Path) -> None:
    path = tmp_path / "deployment.yaml"
    path.write_text(VALID_TEXT + "drain: {maxStreamSeconds: -1}\nslo: {ttfbMs: 1}\n")
    ended = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, "CDK_CONTEXT_JSON": f'{{"config": "{path}"}}'},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    lines = sorted(ended.stderr.splitlines())
    assert [line.split("; ")[0] for line in lines] == [
        f"{path}: drain.maxStreamSeconds: got -1",
        f"{path}: slo.ttfbMs: got 1",
    ]
