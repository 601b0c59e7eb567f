"""Faults of a small file that pydantic checks, such as a profile or prices, in words."""

from __future__ import annotations

from pydantic import ValidationError

from sonic_eks.config.base import Refusal
from sonic_eks.errors import shown

_KEY = "[key]"  # pydantic's mark for a fault of a mapping's key, behind the key itself

_PLAIN = {"missing": "missing", "extra_forbidden": "unknown key"}
_COUNTS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
# pydantic speaks of Python's types here.
_SHAPES = {
    "tuple_type": "input should be a list",
    "dict_type": "input should be a mapping",
    "model_type": "input should be a mapping",
}


def first_fault(error: ValidationError, *, whole: str) -> str:
    """Return the first fault: the field, what was given, and what is allowed.

    Parameters
    ----------
    error : ValidationError
        What pydantic found.
    whole : str
        What the file is called where no field is at fault.
    """
    first = error.errors(include_url=False)[0]
    refusal = first.get("ctx", {}).get("error")
    where = ".".join(str(part) for part in first["loc"] if part != _KEY)
    if isinstance(refusal, Refusal):
        where = ".".join(filter(None, (where, refusal.field)))
        said = f"got {shown(refusal.given)}; allowed: {refusal.allowed}"
    elif first["type"] in _COUNTS:
        words, bound = _COUNTS[first["type"]]
        said = f"got {shown(first['input'])}; allowed: {words} {first['ctx'][bound]} in it"
    elif first["type"] in _PLAIN:
        said = _PLAIN[first["type"]]
    else:
        what = _SHAPES.get(first["type"]) or f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        said = f"got {shown(first['input'])}; {what}"
    return f"{where or whole}: {said}"
