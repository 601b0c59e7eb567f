"""Content on its way: checked, taken up again where it broke off, never whole in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from sonic_eks.mirror.errors import TransientError
from sonic_eks.mirror.manifest import Descriptor
from sonic_eks.mirror.retry import RetryPolicy


def verified(
    blob: Descriptor,
    what: str,
    read: Callable[[int], Iterator[bytes]],
    retry: RetryPolicy,
) -> Iterator[bytes]:
    """Yield a blob's content, going on after failures where they happened.

    The last piece comes only when the whole has the right length and digest, so that a receiver
    never completes a wrong blob.

    Parameters
    ----------
    blob : Descriptor
        Expected digest and length in bytes.
    what : str
        Subject of an error.
    read : callable
        Yields the content from an offset on; raises `TransientError` when it breaks off.
    retry : RetryPolicy
        How often to take it up again without a byte received.

    Raises
    ------
    TransientError
        When the content is other than the digest says.
    MirrorError
        When the content cannot be read.
    """
    hasher = hashlib.sha256()
    offset = failures = 0
    held = b""
    while offset < blob.size:
        try:
            for chunk in read(offset):
                hasher.update(chunk)
                offset += len(chunk)
                failures = 0
                if held:
                    yield held
                held = chunk
            if offset < blob.size:
                raise TransientError(f"ended after {offset} of {blob.size} bytes")
        except TransientError as error:
            failures += 1
            retry.wait(what, error, failures)
    found = f"sha256:{hasher.hexdigest()}"
    if found != blob.digest:
        raise TransientError(f"digest mismatch: the content has {found}", tries=2)
    if held:
        yield held


class SizedBody:
    """A request body of known length that can be sent again: each iteration opens it anew.

    Parameters
    ----------
    content : callable
        Opens the content.
    size : int
        Its length in bytes; with it the request has a Content-Length instead of chunks.
    """

    def __init__(self, content: Callable[[], Iterable[bytes]], size: int) -> None:
        self._content = content
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._content())
