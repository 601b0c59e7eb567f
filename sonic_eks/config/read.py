"""Reading a configuration file: YAML in, plain mappings, lists and scalars out.

The reader takes the part of YAML that says what it seems to say. Aliases, tags, merge keys,
duplicate keys, and numbers that YAML 1.1 reads in base 8 or 60 are refused with the line.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from sonic_eks.errors import shown

_MAX_BYTES = 1024 * 1024
"""A configuration of 20 models with environments is below 100 kB."""

_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", re.I)
_MAX_DIGITS = 40
_KINDS = {"int": "a number", "float": "a number", "bool": "true or false", "null": "nothing"}


class FileFault(Exception):  # noqa: N818 (becomes one of ConfigurationError.faults)
    """A fault of the file as a whole: it does not hold one mapping of plain values."""


def _at(node: yaml.Node | yaml.Event, problem: str) -> FileFault:
    mark = node.start_mark
    return FileFault(f"line {mark.line + 1}: {problem}" if mark else problem)


class _Loader(yaml.SafeLoader):
    """SafeLoader without what makes a file say something else than it seems to."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _at(event, "YAML aliases are not supported, write the value out")
        if (tag := getattr(event, "tag", None)) is not None:
            written = shown(tag.replace(_TAG, "!!"))
            raise _at(event, f"YAML tags such as {written} are not supported, leave it out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _at(key, "a key is a list or mapping; keys are words")
            kind = key.tag.removeprefix(_TAG)
            if kind == "merge":
                raise _at(key, "YAML merge keys (<<) are not supported, write the values out")
            if kind != "str":
                raise _at(key, f"the key {shown(key.value)} is {_KINDS[kind]} to YAML; quote it")
            if key.value in seen:
                raise _at(
                    key,
                    f"duplicate key {shown(key.value)} (first in line {seen[key.value]}); keep one",
                )
            seen[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep=deep)

    def construct_text(self, node: yaml.ScalarNode) -> str:
        try:
            node.value.encode()
        except UnicodeEncodeError:
            raise _at(node, f"{shown(node.value)} holds half a character (a surrogate)") from None
        return str(node.value)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > _MAX_DIGITS:
            raise _at(node, f"a number of {len(node.value)} characters, {_MAX_DIGITS} at most")
        if _INTEGER.fullmatch(node.value):
            return int(node.value)
        if _FLOAT.fullmatch(node.value):
            return float(self.construct_yaml_float(node))
        # 010 is 8 and 10:00 is 600 in YAML 1.1, 10 and text in 1.2.
        raise _at(
            node,
            f"{shown(node.value)} is a number in another notation; write it plainly, or quote it",
        )


_Loader.add_constructor(f"{_TAG}str", _Loader.construct_text)
_Loader.add_constructor(f"{_TAG}int", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_number)
# Dates and a lone "=" stay the text that they are.
_TEXT = (f"{_TAG}timestamp", f"{_TAG}value")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_mapping(path: Path, *, begin: str = "start from config/default.yaml") -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Parameters
    ----------
    path : Path
        The file.
    begin : str
        What to do with an empty one.

    Raises
    ------
    FileFault
        When it cannot be read, is not YAML, or holds something else.
    """
    try:
        text = _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFault(f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    try:
        data = yaml.load(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FileFault(
            f"line {line}: the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        ) from None
    except yaml.MarkedYAMLError as error:
        raise FileFault(_syntax(error)) from None
    except RecursionError:
        raise FileFault("nested too deeply; a configuration is five levels deep") from None
    except (ValueError, OverflowError):  # "\UFFFFFFFF"
        raise FileFault("YAML syntax error: an escape names no Unicode character") from None
    if data is None:
        raise FileFault(f"empty; {begin}")
    if not isinstance(data, dict):
        raise FileFault(f"a mapping of sections is expected at the top, got {shown(data)}")
    return data


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise FileFault(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise FileFault(f"cannot be read: {error}") from None
    if len(raw) > _MAX_BYTES:
        raise FileFault(f"larger than {_MAX_BYTES} bytes; a configuration is a small YAML file")
    return raw


def _syntax(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        problem = "a tab; indent with spaces"
    elif problem.startswith("but ") and error.context:
        problem = f"{error.context} {problem}"
    return f"{place}YAML syntax error: {problem[:200]}"
