"""Who we are to a registry: a token of ECR, or a user and password from Secrets Manager."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from sonic_eks.errors import SonicEksError
from sonic_eks.mirror.errors import MirrorError

# Amazon ECR user guide, "Private registry authentication": a token is valid for 12 hours. It is
# renewed this long before it ends, so that no request of a copy carries one that is about to.
_RENEW_BEFORE_SECONDS = 15 * 60


class Credentials(Protocol):
    """A source of user name and password.

    Attributes
    ----------
    preemptive : bool
        Whether to send them with every request rather than when the registry asks.
    """

    preemptive: bool

    def current(self, rejected: str | None) -> tuple[str | None, str | None]:
        """Return user name and password, new ones if `rejected` is the password known so far."""
        ...


class Anonymous:
    """Nobody."""

    preemptive = False

    def current(self, rejected: str | None) -> tuple[None, None]:
        """Return no name and no password."""
        return None, None


class EcrToken:
    """The token of an account's registry, renewed before it ends or when it is refused.

    Parameters
    ----------
    client : Any
        A boto3 ECR client of the registry's region.
    account : str
        Account of the registry, for error messages.
    clock : callable
        Seconds since the epoch; replaced by tests.
    """

    preemptive = True

    def __init__(self, client: Any, account: str, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._account = account
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[str, str] | None = None
        self._ends = 0.0

    def current(self, rejected: str | None) -> tuple[str, str]:
        """Return ``AWS`` and a token that is neither about to end nor `rejected`."""
        with self._lock:
            ending = self._clock() > self._ends - _RENEW_BEFORE_SECONDS
            if self._known is None or ending or self._known[1] == rejected:
                self._known, self._ends = self._fetch()
            return self._known

    def _fetch(self) -> tuple[tuple[str, str], float]:
        data = aws_call(
            f"ECR token of account {self._account}", self._client.get_authorization_token
        )["authorizationData"][0]
        text = base64.b64decode(data["authorizationToken"]).decode()
        user, _, password = text.partition(":")
        return (user, password), data["expiresAt"].timestamp()


class SecretCredentials:
    """User and password of an upstream registry, from a Secrets Manager secret.

    The secret is JSON: ``{"username": ..., "password": ...}``, also with ``accessToken`` in the
    password's place as ECR's pull-through cache has it, or a service-account key of Google
    Cloud, which its Artifact Registry takes as password of the user ``_json_key``.

    Parameters
    ----------
    client : Any
        A boto3 Secrets Manager client of the secret's region.
    arn : str
        The secret.
    """

    preemptive = False

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn
        self._lock = threading.Lock()
        self._known: tuple[str, str] | None = None

    def current(self, rejected: str | None) -> tuple[str, str]:
        """Return user and password; the secret is read again once after a refusal."""
        with self._lock:
            if self._known is None or self._known[1] == rejected:
                self._known = self._fetch()
            return self._known

    def _fetch(self) -> tuple[str, str]:
        answer = aws_call(
            f"secret {self._arn}", lambda: self._client.get_secret_value(SecretId=self._arn)
        )
        text = answer.get("SecretString") or ""
        try:
            secret = json.loads(text)
        except ValueError:
            secret = None
        if isinstance(secret, dict):
            user = secret.get("username")
            password = secret.get("password") or secret.get("accessToken")
            if isinstance(user, str) and isinstance(password, str):
                return user, password
            if secret.get("type") == "service_account":
                return "_json_key", text
        raise SonicEksError(
            f'secret {self._arn}: not {{"username": ..., "password": ...}} and no service-account'
            " key; store one of them"
        )


def aws_call(what: str, call: Callable[[], Any]) -> Any:
    """Call AWS; turn its exceptions into one line that says what was wanted.

    Raises
    ------
    MirrorError
        When AWS refuses, cannot be reached, or there are no credentials.
    """
    # Imported late: a plan or lock of public upstreams needs no AWS at all.
    from botocore.exceptions import (  # noqa: PLC0415
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        TokenRetrievalError,
        UnauthorizedSSOTokenError,
    )

    try:
        return call()
    except (NoCredentialsError, UnauthorizedSSOTokenError, TokenRetrievalError) as error:
        raise MirrorError(
            f"{what}: no valid AWS credentials ({error}); sign in, or set AWS_PROFILE"
        ) from None
    except ClientError as error:
        details = error.response.get("Error", {})
        code, message = details.get("Code", "error"), details.get("Message", "")
        hint = "; sign in again" if "Expired" in code else ""
        raise MirrorError(f"{what}: AWS answered {code}: {message}{hint}") from None
    except BotoCoreError as error:
        raise MirrorError(f"{what}: {error}") from None
