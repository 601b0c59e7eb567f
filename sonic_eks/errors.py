"""Errors that a person sees: one line, no traceback, an exit status."""

from __future__ import annotations

BAD_INPUT = 2
PROBLEM_FOUND = 1
INTERRUPTED = 130
"""What shells report for a process that Ctrl-C ended: 128 and the number of SIGINT."""

_SHOWN_CHARACTERS = 80


class SonicEksError(Exception):
    """A problem that is explained to the user in one line.

    Parameters
    ----------
    message : str
        What was given, what is allowed and what to do. Line breaks and control characters
        are escaped, so that one error stays one line whatever the input was.
    exit_status : int
        2 for bad input, 1 for a problem found.
    """

    def __init__(self, message: str, *, exit_status: int = BAD_INPUT) -> None:
        super().__init__(one_line(message))
        self.exit_status = exit_status

    @property
    def lines(self) -> list[str]:
        """What to print, a line for each fault."""
        return [str(self)]


class ConfigurationError(SonicEksError):
    """A configuration that cannot be used: one message for each fault found.

    Parameters
    ----------
    source : str
        The file's name as the user gave it.
    faults : list of str
        One line each, in the order of the file.
    """

    def __init__(self, source: str, faults: list[str]) -> None:
        self.faults = [one_line(f"{source}: {fault}") for fault in faults]
        super().__init__(self.faults[0])

    @property
    def lines(self) -> list[str]:
        """What to print, a line for each fault."""
        return self.faults


def one_line(text: str) -> str:
    """Escape what would break a line or steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(value: object) -> str:
    """Render a value for an error message: quoted, escaped, at most 80 characters.

    >>> shown("1.2TiB")
    "'1.2TiB'"
    >>> shown(True)
    'true'
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()  # as YAML writes it
    if isinstance(value, dict | list | tuple | set):
        kind = "a mapping" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number of more than 70 digits"  # str() of a huge int is refused by Python
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
