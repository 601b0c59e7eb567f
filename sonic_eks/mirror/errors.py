"""Errors of the mirror: one line each, as everywhere; and what is worth another try."""

from __future__ import annotations

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError


class MirrorError(SonicEksError):
    """A problem with a registry or with what it holds: exit status 1."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_status=PROBLEM_FOUND)


class NotFoundError(MirrorError):
    """A repository, manifest or blob that is not there.

    Parameters
    ----------
    message : str
        The line for the user.
    code : str
        The registry's error code, such as ``NAME_UNKNOWN``; empty when it gave none.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class RefusedError(MirrorError):
    """A request that the registry understood and refused (4xx other than 401 and 404)."""


class StoppedError(MirrorError):
    """Work that was given up because the user asked for it."""


class TransientError(Exception):
    """A failure that another try may mend; never shown as it is.

    Parameters
    ----------
    cause : str
        What happened.
    retry_after_seconds : float, optional
        What the server asked for.
    tries : int, optional
        Fewer tries than the policy's, where more would only repeat a long transfer.
    """

    def __init__(
        self, cause: str, *, retry_after_seconds: float | None = None, tries: int | None = None
    ) -> None:
        super().__init__(cause)
        self.retry_after_seconds = retry_after_seconds
        self.tries = tries
