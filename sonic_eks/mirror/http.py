"""What goes wrong in HTTP: which failures pass, which stay, and one line for each."""

from __future__ import annotations

import datetime as dt
import email.utils
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import requests
import urllib3
from dxf import exceptions as dxf_errors

from sonic_eks.mirror.errors import (
    MirrorError,
    NotFoundError,
    RefusedError,
    TransientError,
)

CHUNK_BYTES = 256 * 1024
"""Read and sent at a time: the memory that a transfer takes, whatever the layer's size."""

USER_AGENT = "sonic-eks-mirror"

_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
# What a registry says of an upload that was damaged on its way, lost, or met by another one of
# the same content; each try begins it anew.
_PASSING_CODES = frozenset({"DIGEST_INVALID", "BLOB_UPLOAD_INVALID", "BLOB_UPLOAD_UNKNOWN"})
_LONGEST_WAIT_SECONDS = 120
# A name that is wrong stays so: seven seconds of waits at most, beside the resolver's own.
_NAME_TRIES = 4
_ERROR_BYTES = 16 * 1024


class ExpiredError(TransientError):
    """A token that has ended; the next try needs a new one."""


def new_session(connections: int) -> requests.Session:
    """Return a session that keeps up to `connections` open a host and reads no netrc file."""
    session = requests.Session()
    session.headers["User-Agent"] = USER_AGENT
    # requests calls this for every request; without it, it would put credentials of ~/.netrc in
    # the place of the registry's.
    session.auth = _typed
    adapter = requests.adapters.HTTPAdapter(pool_connections=16, pool_maxsize=connections)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn the exceptions of requests, urllib3 and dxf into ours.

    Parameters
    ----------
    what : str
        What was asked for, the beginning of the line.

    Raises
    ------
    TransientError
        When another try may help.
    MirrorError
        When none does.
    """
    try:
        yield
    except dxf_errors.DXFUnauthorizedError:
        # Once more: another thread may have renewed the token between request and answer.
        raise ExpiredError(
            "the registry wants credentials, or refused those given (HTTP 401)", tries=2
        ) from None
    except dxf_errors.DXFAuthInsecureError:
        raise MirrorError(
            f"{what}: the registry wants credentials over plain HTTP; give it TLS"
        ) from None
    except requests.HTTPError as error:
        if error.response is None:  # never so from raise_for_status
            raise TransientError(str(error)) from None
        raise _of_status(what, error.response) from None
    except requests.exceptions.SSLError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise MirrorError(
                f"{what}: the TLS certificate is not trusted; name the file of its authority in"
                " the environment variable REQUESTS_CA_BUNDLE"
            ) from None
        raise TransientError(f"TLS failed: {_cause(error)}") from None
    except (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError) as error:
        tries = _NAME_TRIES if _is_unknown_name(error) else None
        raise TransientError(_cause(error), tries=tries) from None
    except requests.exceptions.ChunkedEncodingError as error:
        raise TransientError(_cause(error)) from None
    except (requests.RequestException, dxf_errors.DXFError, KeyError) as error:
        # KeyError: dxf reads headers such as Location that a registry must send.
        raise MirrorError(f"{what}: the registry broke the protocol: {error!r}") from None


def _of_status(what: str, response: requests.Response) -> Exception:
    status = response.status_code
    code, message = _registry_error(response)
    said = f"HTTP {status}" + (f" {code}" if code else "") + (f": {message}" if message else "")
    if status in _PASSING_STATUS:
        return TransientError(said, retry_after_seconds=_retry_after(response))
    if code in _PASSING_CODES:
        return TransientError(said, tries=4)
    # ECR answers an ended token with 403 and plain text, ECR Public with 400 and no challenge
    # (github.com/deis/builder/issues/426, github.com/aws/containers-roadmap/issues/2835).
    if status in (400, 403) and "expired" in message.lower():
        return ExpiredError(said, tries=2)
    if status == 400 and not code and "Authorization" in response.request.headers:
        return ExpiredError(said, tries=2)
    if status == 404:
        return NotFoundError(f"{what}: {said}", code)
    return RefusedError(f"{what}: {said}")


def _registry_error(response: requests.Response) -> tuple[str, str]:
    """Return code and message of the registry's error document, or the start of its text."""
    try:
        body = next(response.iter_content(_ERROR_BYTES), b"") if response.raw else b""
    except (requests.RequestException, RuntimeError):  # RuntimeError: already consumed
        body = b""
    finally:
        response.close()
    text = body.decode("utf-8", "replace").strip()
    try:
        first = json.loads(text)["errors"][0]
        detail = first.get("detail")
        message = str(first.get("message", ""))
        extra = f" ({json.dumps(detail)[:200]})" if detail else ""
        return str(first.get("code", "")), f"{message}{extra}"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return "", "" if text.startswith("<") else text[:200]


def _retry_after(response: requests.Response) -> float | None:
    """Read Retry-After, seconds or a date (RFC 9110, 10.2.3), two minutes at most."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return min(float(value), _LONGEST_WAIT_SECONDS)
    try:
        moment = email.utils.parsedate_to_datetime(value)
        now = dt.datetime.now(tz=dt.UTC)
        return min(max((moment - now).total_seconds(), 0), _LONGEST_WAIT_SECONDS)
    except (ValueError, TypeError):
        return None


def _layers(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those in it: requests and urllib3 wrap each other's."""
    seen: BaseException | None = error
    for _ in range(9):
        if not isinstance(seen, BaseException):
            return
        yield seen
        seen = getattr(seen, "reason", None) or next(
            (arg for arg in reversed(seen.args) if isinstance(arg, BaseException)), None
        )


def _is_unknown_name(error: BaseException) -> bool:
    kinds = (urllib3.exceptions.NameResolutionError, socket.gaierror)
    return any(isinstance(layer, kinds) for layer in _layers(error))


def _cause(error: BaseException) -> str:
    """Return the innermost reason."""
    *_, seen = _layers(error)
    text = getattr(seen, "strerror", None) or str(seen) or type(seen).__name__
    # urllib3 begins with the object's address, which says nothing and differs every time.
    return text.rpartition("object at 0x")[2].partition(">: ")[2] or text


def speaks_tls(host: str) -> bool:
    """Tell whether a port of this machine answers a TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # only asked whether, not who: requests checks that
    context.verify_mode = ssl.CERT_NONE
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    address = ((name or host).strip("[]"), int(port) if name and port.isdecimal() else 443)
    try:
        with socket.create_connection(address, timeout=5) as plain:
            context.wrap_socket(plain).close()
    except OSError:  # ssl.SSLError is one
        return False
    return True


def _typed(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Name the type of a blob's content, which python-dxf leaves out."""
    if request.method == "PUT":
        request.headers.setdefault("Content-Type", "application/octet-stream")
    return request
