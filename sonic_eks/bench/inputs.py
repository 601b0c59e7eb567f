"""What a person gives a measurement: address, key, files. Each fault is one line."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from sonic_eks.errors import SonicEksError, shown

KEY_VARIABLE = "CARTESIA_API_KEY"

# RFC 1123, section 2.1, and RFC 1035, section 2.3.4; "_" is in names that resolvers know.
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_MOST_NAME = 253

# Of a URL: signs of a password or a key in it, or nothing but what may be a key.
_SECRET = re.compile(r"[@?#]|\A\s*[\w-]{16,}\s*\Z")
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]{0,79}")

_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


def service_url(text: str) -> str:
    """Return the address of a service, ``ws`` and ``wss`` as ``http`` and ``https``."""
    if _SECRET.search(text):
        # Not shown: what stands there may be a secret, whatever else is wrong.
        raise SonicEksError(
            "URL: got one with a user, a query or a fragment, or a key; allowed: http://HOST:PORT;"
            f" the API key comes from {KEY_VARIABLE} or --key-file"
        )
    # urlsplit would drop line breaks, tabs and what is white in front.
    if not text.isprintable() or text != text.strip():
        raise _no_url(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _no_url(text) from None
    if parts.scheme not in _SCHEMES or not _is_host(parts.hostname or "") or port == 0:
        raise _no_url(text)
    if not re.fullmatch("[!-~]*", parts.path):
        raise SonicEksError(
            f"URL: got the path {shown(parts.path)}; allowed: printable ASCII without spaces;"
            " write anything else percent-encoded"
        )
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, parts.path.rstrip("/"), "", ""))


def _is_host(name: str) -> bool:
    if ":" in name:
        try:
            ipaddress.IPv6Address(name)
        except ValueError:
            return False
        return True
    labels = name.removesuffix(".").split(".")
    return len(name) <= _MOST_NAME and all(_LABEL.fullmatch(label) for label in labels)


def _no_url(text: str) -> SonicEksError:
    return SonicEksError(
        f"URL: got {shown(text)}; allowed: http://HOST:PORT or https://HOST of the service"
    )


def api_key(variable: str, file: Path | None) -> str:
    """Return the API key from a file, else from an environment variable.

    What is no file and no name of a variable is not shown: it may be the key itself.
    """
    if file is not None:
        source = f"--key-file {file}" if os.path.lexists(file) else "--key-file"
        variable = KEY_VARIABLE
        try:
            key = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise SonicEksError(f"{source}: cannot be read: {reason}") from None
    else:
        if variable not in os.environ and not _VARIABLE.fullmatch(variable):
            raise SonicEksError(
                "--key-env: got no name of a variable that is set; allowed: the name, such as"
                f" {KEY_VARIABLE}, not the key"
            )
        key, source = os.environ.get(variable, "").strip(), f"environment variable {variable}"
    if not key:
        raise SonicEksError(f"{source}: no API key; set {variable} or give --key-file")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SonicEksError(f"{source}: no API key: it holds spaces or characters beyond ASCII")
    return key


def environment_without_key(key: str) -> dict[str, str]:
    """Return the environment for another program: without the variables that hold an API key.

    Parameters
    ----------
    key : str
        The key in use, in whatever variable it is; that of `KEY_VARIABLE` is left out anyway.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name != KEY_VARIABLE and (not key or value.strip() != key)
    }
