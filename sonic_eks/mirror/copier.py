"""Copying: what is below a tag first, in parallel, and the tag last."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from sonic_eks.errors import SonicEksError
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.connections import Connections, Source
from sonic_eks.mirror.errors import StoppedError
from sonic_eks.mirror.examine import State, blobs_of, examine, manifests_below, resolve
from sonic_eks.mirror.manifest import Descriptor, Manifest
from sonic_eks.mirror.progress import Reporter, Silent
from sonic_eks.mirror.registry import OciRepository

_ARTIFACTS_AT_A_TIME = 4


class Status(StrEnum):
    """How the copy of an artifact ended."""

    COPIED = "copied"
    PRESENT = "present"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """How the copy of one artifact ended.

    Attributes
    ----------
    artifact : Artifact
        The artifact.
    status : Status
        What happened.
    digest : str or None
        What lies under the tag now.
    sent_bytes : int
        Bytes uploaded for it in this run.
    message : str
        Why it failed, one line.
    """

    artifact: Artifact
    status: Status
    digest: str | None = None
    sent_bytes: int = 0
    message: str = ""


class Copier:
    """Copies artifacts into the private registry.

    A second run goes on where the first was stopped: blobs that are there are not sent again.
    Two runs at once do no harm, as all that is written is addressed by its content.

    Parameters
    ----------
    connections : Connections
        The registries.
    reporter : Reporter
        Hears of the bytes.
    finished : callable, optional
        Hears of each outcome as it comes.
    """

    def __init__(
        self,
        connections: Connections,
        reporter: Reporter | None = None,
        finished: Callable[[Outcome], None] | None = None,
    ) -> None:
        self._connections = connections
        self._reporter = reporter or Silent()
        self._finished = finished
        self._stopped = threading.Event()
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        # Repositories of the private registry that hold a blob, as far as this run knows.
        self._holders: dict[str, set[str]] = defaultdict(set)
        self._guard = threading.Lock()

    def run(self, artifacts: Sequence[Artifact]) -> list[Outcome]:
        """Copy what is missing; the failure of one artifact does not stop the others.

        Returns
        -------
        list of Outcome
            In the order of `artifacts`.
        """
        with (
            ThreadPoolExecutor(self._connections.parallel, "blob") as blobs,
            ThreadPoolExecutor(_ARTIFACTS_AT_A_TIME, "artifact") as pool,
        ):
            futures = [pool.submit(self._one, artifact, blobs) for artifact in artifacts]
            try:
                return [future.result() for future in futures]
            except BaseException:  # the user's interrupt
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                blobs.shutdown(wait=False, cancel_futures=True)
                raise

    def _one(self, artifact: Artifact, blobs: ThreadPoolExecutor) -> Outcome:
        try:
            outcome = self._copy(artifact, blobs)
        except SonicEksError as error:
            text = str(error)
            message = text if text.startswith(artifact.key) else f"{artifact.key}: {text}"
            outcome = Outcome(artifact, Status.FAILED, message=message)
        if self._finished is not None:
            with self._guard:
                self._finished(outcome)
        return outcome

    def _copy(self, artifact: Artifact, blobs: ThreadPoolExecutor) -> Outcome:
        finding = examine(self._connections, artifact)
        if finding.state is State.PRESENT:
            return Outcome(artifact, Status.PRESENT, finding.found)
        if finding.problem is not None:
            return Outcome(artifact, Status.FAILED, finding.found, message=finding.problem)
        source = self._connections.source(artifact)
        destination = self._connections.destination(artifact)
        root = resolve(source, artifact).manifest
        absent = self._absent(source, destination, root)
        sent = self._copy_blobs(blobs, blobs_of(absent), source, destination)
        for manifest in absent:
            if manifest is not root:
                destination.put_manifest(manifest.digest, manifest)
        # The tag comes last: who sees it finds all that is below.
        destination.put_manifest(artifact.tag, root)
        return Outcome(artifact, Status.COPIED, root.digest, sent)

    def _absent(self, source: Source, destination: OciRepository, root: Manifest) -> list[Manifest]:
        """Return the manifests that the destination lacks, each after those it points at."""
        absent: dict[str, Manifest] = {}
        for child in root.children:
            if child.digest not in absent and destination.head(child.digest) is None:
                for manifest in manifests_below(source, source.manifest(child.digest)):
                    absent[manifest.digest] = manifest
        if not root.is_index:
            absent = {m.digest: m for m in manifests_below(source, root)}
        absent[root.digest] = root
        return list(absent.values())

    def _copy_blobs(
        self,
        pool: ThreadPoolExecutor,
        blobs: Sequence[Descriptor],
        source: Source,
        destination: OciRepository,
    ) -> int:
        self._reporter.expect(sum(blob.size for blob in blobs))
        futures = [pool.submit(self._copy_blob, blob, source, destination) for blob in blobs]
        wait(futures, return_when=FIRST_EXCEPTION)
        _cancel_rest(futures)
        return sum(future.result() for future in futures if not future.cancelled())

    def _copy_blob(self, blob: Descriptor, source: Source, destination: OciRepository) -> int:
        """Have a blob in a repository; return the bytes sent for it."""
        with self._holding(blob.digest) as holders:
            if destination.path in holders or destination.has_blob(blob.digest):
                holders.add(destination.path)
                self._reporter.advance(blob.size)
                return 0
            other = next(iter(sorted(holders)), None)
            if other is not None and destination.mount_blob(blob.digest, other):
                holders.add(destination.path)
                self._reporter.advance(blob.size)
                return 0
            destination.push_blob(blob, lambda: self._counted(source.open_blob(blob)))
            holders.add(destination.path)
            return blob.size

    def _counted(self, content: Iterator[bytes]) -> Iterator[bytes]:
        """Report the bytes as they go, and take them back when the transfer breaks off."""
        gone = 0
        try:
            for piece in content:
                if self._stopped.is_set():
                    raise StoppedError("stopped")
                yield piece
                gone += len(piece)
                self._reporter.advance(len(piece))
        except BaseException:
            self._reporter.advance(-gone)
            raise

    @contextmanager
    def _holding(self, digest: str) -> Iterator[set[str]]:
        """Let one thread at a time see to a blob: images share layers."""
        with self._guard:
            lock, holders = self._locks[digest], self._holders[digest]
        with lock:
            yield holders


def _cancel_rest(futures: Sequence[Future[int]]) -> None:
    """After a failure start no more of the same artifact, and wait for what has begun."""
    failed = any(f.done() and not f.cancelled() and f.exception() for f in futures)
    if failed:
        for future in futures:
            future.cancel()
        wait(futures)
