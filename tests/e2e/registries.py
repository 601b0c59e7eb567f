"""Real registries on loopback, and what the tests put into them without the code under test."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import ctypes.util
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tools import require_tool

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class RegistryProcess:
    """A running docker-registry."""

    host: str
    storage: Path
    process: subprocess.Popen[bytes]
    ca_file: Path | None = None
    basic: tuple[str, str] | None = None
    htpasswd: Path | None = None
    log: Path = field(default_factory=Path)

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request with the standard library's client."""
        headers = dict(headers or {})
        if self.basic:
            headers["Authorization"] = "Basic " + _b64(":".join(self.basic))
        if self.ca_file:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self.host, timeout=30, context=context
            )
        else:
            connection = http.client.HTTPConnection(self.host, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            found = {key.lower(): value for key, value in response.getheaders()}
            return response.status, found, response.read()

    def push_blob(self, repository: str, content: bytes) -> str:
        status, headers, _ = self.request("POST", f"/v2/{repository}/blobs/uploads/")
        assert status == 202, status
        place = urllib.parse.urlsplit(headers["location"])
        digest = digest_of(content)
        query = f"{place.query}&digest={urllib.parse.quote(digest)}"
        status, _, answer = self.request("PUT", f"{place.path}?{query}", content)
        assert status == 201, answer
        return digest

    def push_manifest(self, repository: str, reference: str, body: bytes, media_type: str) -> str:
        status, _, answer = self.request(
            "PUT", f"/v2/{repository}/manifests/{reference}", body, {"Content-Type": media_type}
        )
        assert status == 201, answer
        return digest_of(body)

    def manifest(self, repository: str, reference: str) -> bytes | None:
        accept = ", ".join((OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST))
        status, _, body = self.request(
            "GET", f"/v2/{repository}/manifests/{reference}", headers={"Accept": accept}
        )
        return body if status == 200 else None

    def digest(self, repository: str, reference: str) -> str | None:
        body = self.manifest(repository, reference)
        return digest_of(body) if body is not None else None

    def blob(self, repository: str, digest: str) -> bytes | None:
        status, _, body = self.request("GET", f"/v2/{repository}/blobs/{digest}")
        return body if status == 200 else None

    def tags(self, repository: str) -> list[str]:
        status, _, body = self.request("GET", f"/v2/{repository}/tags/list")
        return json.loads(body)["tags"] or [] if status == 200 else []


@contextlib.contextmanager
def registry(
    folder: Path,
    *,
    password: str | None = None,
    tls: bool = False,
    disk_bytes: int | None = None,
) -> Iterator[RegistryProcess]:
    """Run docker-registry; end it by its id.

    `disk_bytes` gives it a disk of its own of that size, in a mount name space that ends with it.
    """
    program = require_tool("docker-registry")
    folder.mkdir(parents=True, exist_ok=True)
    host = f"127.0.0.1:{free_port()}"
    storage = folder / "storage"
    storage.mkdir()
    http_section: dict[str, Any] = {"addr": host, "secret": "for-tests"}
    config: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {
            "filesystem": {"rootdirectory": str(storage)},
            "delete": {"enabled": True},
        },
        "http": http_section,
    }
    ca_file = htpasswd = basic = None
    if tls:
        ca_file, key = certificate(folder)
        http_section["tls"] = {"certificate": str(ca_file), "key": str(key)}
    if password is not None:
        htpasswd = folder / "htpasswd"
        write_password(htpasswd, password)
        basic = ("AWS", password)
        config["auth"] = {"htpasswd": {"realm": "registry", "path": str(htpasswd)}}
    (folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML
    command = [program, "serve", str(folder / "config.yml")]
    if disk_bytes is not None:
        mount = f"mount -t tmpfs -o size={disk_bytes} tmpfs {storage} && exec {' '.join(command)}"
        command = [require_tool("unshare", "util-linux"), "--mount", "sh", "-c", mount]
        if os.geteuid() != 0:
            command.insert(1, "--map-root-user")
    log = folder / "registry.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
    running = RegistryProcess(host, storage, process, ca_file, basic, htpasswd, log)
    try:
        _wait_until_it_answers(running)
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(running: RegistryProcess) -> None:
    for _ in range(200):
        assert running.process.poll() is None, running.log.read_text()
        with contextlib.suppress(OSError):
            running.request("GET", "/v2/")
            return
        time.sleep(0.05)
    raise AssertionError(f"no answer from {running.host}: {running.log.read_text()}")


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed certificate for 127.0.0.1; return it and its key."""
    crt, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(
        [
            *(require_tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-days", "2", "-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(crt)),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    return crt, key


def write_password(path: Path, password: str) -> None:
    """Write an htpasswd file for the user AWS; docker-registry takes bcrypt only."""
    library = ctypes.util.find_library("crypt")
    assert library, "libcrypt is part of every Debian"
    crypt = ctypes.CDLL(library).crypt
    crypt.restype = ctypes.c_char_p
    hashed = crypt(password.encode(), b"$2a$04$" + b"." * 22)
    before = path.stat().st_mtime if path.exists() else None
    path.write_text(f"AWS:{hashed.decode()}\n")
    if before is not None:  # the registry reads it again when its time is later
        os.utime(path, (before + 5, before + 5))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@dataclass(frozen=True)
class Image:
    """What a test put into a registry."""

    digest: str
    blobs: tuple[str, ...]
    children: tuple[str, ...] = ()
    size: int = 0


def noise(size: int, seed: int) -> bytes:
    """Content that does not compress, the same for a seed."""
    return random.Random(seed).randbytes(size)


def push_image(
    target: RegistryProcess,
    repository: str,
    reference: str | None,
    layers: list[bytes],
    *,
    architecture: str = "amd64",
    media_type: str = OCI_MANIFEST,
    layer_type: str = OCI_LAYER,
    with_media_type: bool = True,
) -> Image:
    """Push an image of one platform, by digest alone when `reference` is None."""
    config = json.dumps(
        {
            "os": "linux",
            "architecture": architecture,
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
        }
    ).encode()
    blobs = [target.push_blob(repository, content) for content in (config, *layers)]
    document: dict[str, Any] = {"schemaVersion": 2}
    if with_media_type:
        document["mediaType"] = media_type
    document["config"] = {"mediaType": OCI_CONFIG, "digest": blobs[0], "size": len(config)}
    document["layers"] = [
        {"mediaType": layer_type, "digest": digest, "size": len(layer)}
        for digest, layer in zip(blobs[1:], layers, strict=True)
    ]
    # Indented as people's tools do it: a copy that re-serialized it would change the digest.
    body = json.dumps(document, indent=3).encode()
    digest = target.push_manifest(repository, reference or digest_of(body), body, media_type)
    return Image(digest, tuple(blobs), size=len(config) + sum(map(len, layers)))


def push_index(
    target: RegistryProcess,
    repository: str,
    tag: str,
    layers: dict[str, list[bytes]],
    *,
    attested: bool = False,
) -> Image:
    """Push a multi-architecture image: layers by architecture."""
    entries, images = [], []
    for architecture, contents in layers.items():
        image = push_image(target, repository, None, contents, architecture=architecture)
        images.append(image)
        body = target.manifest(repository, image.digest)
        assert body is not None
        entries.append(
            {
                "mediaType": OCI_MANIFEST,
                "digest": image.digest,
                "size": len(body),
                "platform": {"os": "linux", "architecture": architecture},
            }
        )
    if attested:
        image = push_image(target, repository, None, [b"{}"], architecture="unknown")
        images.append(image)
        body = target.manifest(repository, image.digest)
        assert body is not None
        entries.append(
            {
                "mediaType": OCI_MANIFEST,
                "digest": image.digest,
                "size": len(body),
                "platform": {"os": "unknown", "architecture": "unknown"},
                "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
            }
        )
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
    body = json.dumps(index, indent=2).encode()
    digest = target.push_manifest(repository, tag, body, OCI_INDEX)
    blobs = tuple(dict.fromkeys(blob for image in images for blob in image.blobs))
    return Image(digest, blobs, tuple(i.digest for i in images), sum(i.size for i in images))
