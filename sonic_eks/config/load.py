"""Loading a configuration: a validated model, or one line for each fault of the file."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sonic_eks.config.base import Refusal
from sonic_eks.config.model import PROFILE, Configuration
from sonic_eks.config.profile import Profile, load_profile
from sonic_eks.config.read import FileFault, read_mapping
from sonic_eks.config.scaling import LONGEST_PATH
from sonic_eks.config.schema import KEY, Location, Node, allowed, node_at, quoted, resolved
from sonic_eks.errors import ConfigurationError, SonicEksError, shown

_QUOTE = "text in quotes (YAML reads this as a number or as true or false)"


def load_configuration(path: Path) -> Configuration:
    """Read and validate a configuration file.

    Parameters
    ----------
    path : Path
        A YAML file, as in ``config/``.

    Returns
    -------
    Configuration
        The validated configuration.

    Raises
    ------
    ConfigurationError
        When the file cannot be read, is not YAML, or breaks a rule; ``faults`` holds one line
        for each fault, with the field, the value and what is allowed.
    """
    try:
        data = read_mapping(path)
    except FileFault as fault:
        raise ConfigurationError(str(path), [str(fault)]) from None
    try:
        profile = _profile(data, path.parent)
    except SonicEksError as fault:
        raise ConfigurationError(str(path), [f"scaling.profile: {fault}"]) from None
    try:
        # Python's own names are for Python: a file has one spelling for each key.
        return Configuration.model_validate(
            data, by_alias=True, by_name=False, context={PROFILE: profile}
        )
    except ValidationError as error:
        details = _without_echoes(error.errors(include_url=False))
        raise ConfigurationError(str(path), [_explain(d, data) for d in details]) from None


def _profile(data: dict[str, Any], folder: Path) -> Profile | None:
    """Read the file that `scaling.profile` names; what is no name is left to the validation."""
    scaling = data.get("scaling")
    name = scaling.get("profile") if isinstance(scaling, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_PATH:
        return None
    return load_profile(folder / name)


def _without_echoes(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Drop the "too short" that pydantic adds for a list whose entries were at fault."""
    return [
        e
        for e in errors
        if e["type"] != "too_short"
        or not any(o is not e and o["loc"][: len(e["loc"])] == e["loc"] for o in errors)
    ]


def _explain(details: ErrorDetails, data: dict[str, Any]) -> str:
    """Turn one pydantic error into `field: got X; allowed: Y; nearest: Z`."""
    location = details["loc"]
    refusal = details.get("ctx", {}).get("error")
    if isinstance(refusal, Refusal):
        field = ".".join(filter(None, (_dotted(location), refusal.field)))
        return _line(field, refusal.given, refusal.allowed, refusal.nearest)
    field = _dotted(location) or "the file"
    kind = details["type"]
    node = resolved(node_at(location) or {})
    if kind == "missing":
        return f"{field}: missing; give {_meaning(node) or allowed(node)}"
    if kind == "extra_forbidden":
        return _unknown_key(location)
    given = _value_at(data, location)
    return _line(field, given, _allowed(kind, node, given), _nearest(node, given))


def _line(field: str, given: object, what: str, nearest: str | None) -> str:
    line = f"{field}: got {shown(given)}; allowed: {what}"
    return f"{line}; nearest: {nearest}" if nearest else line


def _allowed(kind: str, node: Node, given: object) -> str:
    what = allowed(node)
    if kind == "string_type" and isinstance(given, int | float):
        return _QUOTE
    choices = [node["const"]] if "const" in node else node.get("enum", [])
    if not isinstance(given, str) and choices and all(isinstance(c, str) for c in choices):
        return f"{what} in quotes"
    if kind in ("string_too_short", "string_too_long") and "maxLength" in node:
        return f"{node.get('minLength', 0)} to {node['maxLength']} characters"
    if kind == "string_pattern_mismatch" and (meaning := _meaning(node)):
        return f"{what} ({meaning})"
    return what


def _nearest(node: Node, given: object) -> str | None:
    """Return the nearest valid value where one can be told."""
    choices = node.get("enum", [])
    if isinstance(given, str):
        texts = [choice for choice in choices if isinstance(choice, str)]
        plain = {text.lower(): text for text in texts}
        close = difflib.get_close_matches(given.lower().replace("-", ""), plain, n=1)
        return quoted(plain[close[0]]) if close else None
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
        return None
    numbers = [choice for choice in choices if isinstance(choice, int)]
    if numbers:
        return str(min(numbers, key=lambda number: abs(number - given)))
    low, high = node.get("minimum"), node.get("maximum")
    if low is None or high is None:
        return None
    within = min(max(given, low), high)
    return str(round(within) if node["type"] == "integer" else within)


def _unknown_key(location: Location) -> str:
    node = resolved(node_at(location[:-1]) or {})
    known = list(node.get("properties", {}))
    name = str(location[-1])
    # A key in snake_case resembles its camelCase spelling once the underscores are gone.
    close = difflib.get_close_matches(name.replace("_", ""), known, n=1)
    line = f"{_dotted(location)}: unknown key; allowed: {', '.join(known)}"
    return f"{line}; nearest: {close[0]}" if close else line


def _dotted(location: Location) -> str:
    return ".".join(_key(part) for part in location if part != KEY)


def _key(part: int | str) -> str:
    """Show a key as it is when it is a word, else quoted, escaped and cut."""
    text = str(part)
    plain = text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    return text if plain and len(text) <= 80 else shown(text)


def _value_at(data: Any, location: Location) -> Any:
    for part in location:
        if part == KEY:
            return location[-2]
        data = data[part]
    return data


def _meaning(node: Node) -> str:
    text = str(node.get("description", "")).rstrip(".")
    # Within a sentence, but "AWS region" stays.
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
