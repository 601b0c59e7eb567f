"""Registries: python-dxf for the protocol, and around it what a copy of gigabytes needs.

python-dxf sends and authenticates requests, checks for blobs, uploads and mounts them. Added here:
manifests as bytes (it decodes them, and refuses those without ``mediaType``), downloads that go
on where they broke off, retries, and tokens that end.

A blob goes up as one PUT of known length. That is what Helm, ORAS and containerd do against
Amazon ECR, whose limits on part sizes concern direct calls of its API ("Amazon ECR service
quotas"), and whose answers to uploads in chunks are wrong
(github.com/aws/containers-roadmap/issues/2831, github.com/kitops-ml/kitops/pull/822).
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

import requests
from dxf import DXF, DXFBase
from dxf.exceptions import DXFMountFailed

from sonic_eks.mirror.auth import Credentials
from sonic_eks.mirror.errors import MirrorError, NotFoundError, TransientError
from sonic_eks.mirror.http import (
    CHUNK_BYTES,
    USER_AGENT,
    ExpiredError,
    explained,
    new_session,
    speaks_tls,
)
from sonic_eks.mirror.manifest import (
    ACCEPTED,
    LARGEST_MANIFEST_BYTES,
    Descriptor,
    Manifest,
    digest_of,
    parse_manifest,
)
from sonic_eks.mirror.reference import is_digest, is_loopback
from sonic_eks.mirror.retry import RetryPolicy, T
from sonic_eks.mirror.transfer import SizedBody, verified

_ACCEPT = {"Accept": ", ".join(ACCEPTED)}

# (connect and send, receive) in seconds. A registry answers a large upload only when it has
# checked and stored the whole of it.
_TIMEOUTS_SECONDS = (30.0, 300.0)


class _Client(DXF):
    """A repository's requests, open to the code below."""

    presented: str | None = None
    """The password behind the present credentials."""

    def send(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """Send a request below the repository's path."""
        response: requests.Response = self._request(method, path, **arguments)  # type: ignore[no-untyped-call]
        return response

    def use_basic(self, user: str, password: str) -> None:
        """Send these credentials from the first request on."""
        secret = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {secret}"}
        self.presented = password

    def forget(self) -> None:
        """Send no credentials until the registry asks for them."""
        self._headers = {}

    def still_sends(self, request: requests.PreparedRequest) -> bool:
        """Tell whether the credentials of a request are still those in use."""
        return self._headers.get("Authorization") == request.headers.get("Authorization")


class Registry:
    """A registry: its connections and credentials, shared by its repositories.

    Parameters
    ----------
    host : str
        Host name as the API has it, with a port where it is not 443. Plain HTTP is spoken to
        this machine only, and only where nothing speaks TLS.
    credentials : Credentials
        Who we are.
    retry : RetryPolicy
        How often to try again.
    connections : int
        Most connections to keep open.
    timeouts_seconds : tuple of float
        Longest waits for a connection or for room to send, and for an answer.
    """

    def __init__(
        self,
        host: str,
        *,
        credentials: Credentials,
        retry: RetryPolicy,
        connections: int = 8,
        timeouts_seconds: tuple[float, float] = _TIMEOUTS_SECONDS,
    ) -> None:
        self.host = host
        self.retry = retry
        self._credentials = credentials
        self._base = DXFBase(
            host,
            insecure=is_loopback(host) and not speaks_tls(host),
            timeout=timeouts_seconds,  # type: ignore[arg-type]  # handed to requests as it is
        )
        self._base._sessions = [new_session(connections)]
        self._clients: dict[str, _Client] = {}
        self._lock = threading.Lock()

    def repository(self, path: str) -> OciRepository:
        """Return a repository; one token for each, whoever asks."""
        with self._lock:
            client = self._clients.get(path)
            if client is None:
                client = self._clients[path] = _Client.from_base(self._base, path)
                client._auth = self._authenticate
        return OciRepository(self, client, path)

    def call(self, client: _Client, what: str, action: Callable[[], T]) -> T:
        """Run a request with credentials, errors in one line, and retries.

        Raises
        ------
        MirrorError
            When it fails for good.
        """

        def attempt() -> T:
            if self._credentials.preemptive:
                self._present(client, None)
            try:
                with explained(what):
                    return action()
            except ExpiredError:
                client.forget()
                if self._credentials.preemptive:
                    self._present(client, client.presented)
                raise

        return self.retry.call(what, attempt)

    def _present(self, client: _Client, rejected: str | None) -> None:
        user, password = self._credentials.current(rejected)
        if user is not None and password is not None:
            client.use_basic(user, password)

    def _authenticate(self, client: Any, response: requests.Response) -> None:
        """Answer a registry's challenge; python-dxf calls this after a 401."""
        # Another thread may have renewed them since this request left.
        rejected = client.presented if client.still_sends(response.request) else None
        user, password = self._credentials.current(rejected)
        client.presented = password
        client.authenticate(user, password, response=response, user_agent=USER_AGENT)


class OciRepository:
    """A repository of a registry: manifests and blobs, to read and to write.

    Parameters
    ----------
    registry : Registry
        Where it is.
    client : _Client
        Its requests.
    path : str
        Its name.
    """

    def __init__(self, registry: Registry, client: _Client, path: str) -> None:
        self.registry = registry
        self.path = path
        self._client = client

    def __str__(self) -> str:
        return f"{self.registry.host}/{self.path}"

    def head(self, reference: str) -> str | None:
        """Return the digest under a tag or digest, None when there is none."""

        def request() -> str | None:
            response = self._client.send("head", f"manifests/{reference}", headers=_ACCEPT)
            digest = response.headers.get("Docker-Content-Digest")
            return digest if is_digest(digest) else None

        try:
            digest = self._call(f"manifest {self._named(reference)}", request)
        except NotFoundError:
            return None
        # The header is optional in the OCI specification.
        return digest or self.manifest(reference).digest

    def manifest(self, reference: str) -> Manifest:
        """Fetch a manifest by tag or digest and check its digest.

        Raises
        ------
        NotFoundError
            When there is none.
        MirrorError
            When its digest is not the one asked for, or it cannot be copied.
        """
        where = self._named(reference)

        def request() -> tuple[bytes, str]:
            response = self._client.send(
                "get", f"manifests/{reference}", headers=_ACCEPT, stream=True
            )
            with response:
                body = bytearray()
                for chunk in response.iter_content(CHUNK_BYTES):
                    body += chunk
                    if len(body) > LARGEST_MANIFEST_BYTES:
                        raise MirrorError(
                            f"{where}: the manifest is over {LARGEST_MANIFEST_BYTES} bytes"
                        )
            content = bytes(body)
            told = response.headers.get("Docker-Content-Digest")
            for expected in (reference, told):
                if is_digest(expected) and expected != digest_of(content):
                    raise TransientError(
                        f"digest mismatch: expected {expected}, got {digest_of(content)}", tries=2
                    )
            return content, response.headers.get("Content-Type", "")

        body, content_type = self._call(f"manifest {where}", request)
        return parse_manifest(body, content_type, where)

    def put_manifest(self, reference: str, manifest: Manifest) -> None:
        """Store a manifest under a tag or digest.

        Everything that it points at must be there. A refusal counts as success when another
        writer stored the same meanwhile: immutable tags take no second push, not even of the
        same digest (github.com/aws/containers-roadmap/issues/2380).

        Raises
        ------
        MirrorError
            When the registry holds something else under a tag that cannot move, or refuses.
        """
        where = self._named(reference)
        headers = {"Content-Type": manifest.media_type}

        def request() -> str | None:
            response = self._client.send(
                "put", f"manifests/{reference}", data=manifest.body, headers=headers
            )
            return response.headers.get("Docker-Content-Digest")

        try:
            stored = self._call(f"manifest {where}", request)
        except NotFoundError as error:
            raise self._missing(error) from None
        except MirrorError:
            if self.head(reference) == manifest.digest:
                return
            raise
        if is_digest(stored) and stored != manifest.digest:
            raise MirrorError(f"{where}: stored as {stored} instead of {manifest.digest}")

    def has_blob(self, digest: str) -> bool:
        """Tell whether a blob is there."""
        try:
            self._call(f"blob {self._named(digest)}", lambda: self._client.blob_size(digest))
        except NotFoundError:
            return False
        return True

    def mount_blob(self, digest: str, source: str) -> bool:
        """Take a blob over from another repository of the registry; tell whether that worked.

        In Amazon ECR it does when the account's setting BLOB_MOUNTING is on ("Blob mounting in
        Amazon ECR"); else it opens an upload, which is left to lapse.
        """

        def request() -> bool:
            try:
                self._client.mount_blob(source, digest)
            except DXFMountFailed:
                return False
            return True

        try:
            return self._call(f"blob {self._named(digest)}", request)
        except MirrorError:
            return False  # the upload that follows tells what is wrong

    def push_blob(self, blob: Descriptor, content: Callable[[], Iterable[bytes]]) -> None:
        """Upload a blob.

        Parameters
        ----------
        blob : Descriptor
            Its digest and length.
        content : callable
            Opens it; called again for each try. It must raise before its last bytes when they
            are not what the digest says.

        Raises
        ------
        MirrorError
            When it cannot be uploaded.
        """

        def request() -> None:
            self._client.push_blob(
                data=SizedBody(content, blob.size), digest=blob.digest, check_exists=False
            )

        try:
            self._call(f"blob {self._named(blob.digest)}", request)
        except NotFoundError as error:
            raise self._missing(error) from None

    def open_blob(self, blob: Descriptor) -> Iterator[bytes]:
        """Yield a blob's content; see `sonic_eks.mirror.transfer.verified`."""
        what = f"blob {self._named(blob.digest)}"
        return verified(
            blob, what, lambda offset: self._read(what, blob, offset), self.registry.retry
        )

    def _read(self, what: str, blob: Descriptor, offset: int) -> Iterator[bytes]:
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        response = self._call(
            what,
            lambda: self._client.send("get", f"blobs/{blob.digest}", headers=headers, stream=True),
        )
        # A server may ignore the range and start over.
        skip = offset if offset and response.status_code != HTTPStatus.PARTIAL_CONTENT else 0
        with response, explained(what):
            for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
                if skip >= len(chunk):
                    skip -= len(chunk)
                    continue
                yield chunk[skip:]
                skip = 0

    def _call(self, what: str, action: Callable[[], T]) -> T:
        return self.registry.call(self._client, what, action)

    def _named(self, reference: str) -> str:
        return f"{self}{'@' if is_digest(reference) else ':'}{reference}"

    def _missing(self, error: NotFoundError) -> MirrorError:
        """Explain a 404 to a write: the registry does not make repositories by itself."""
        if error.code == "NAME_UNKNOWN":
            return NotFoundError(
                f"repository {self} does not exist; deploy the registry stack first", error.code
            )
        return error
