"""The two AWS calls of the mirror, answered on loopback to the real boto3."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3


@dataclass
class AwsEndpoint:
    """What the endpoint knows, and what it was asked."""

    address: str
    # Gives the ECR token of the moment.
    password: Callable[[], str] = lambda: "secret"
    seconds_valid: float = 12 * 3600
    secrets: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def client(self, service: str) -> Any:
        """Return a boto3 client that asks this endpoint."""
        return boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=self.address,
            aws_access_key_id="for-tests",
            aws_secret_access_key="for-tests",
        )

    def answer(self, action: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.calls.append(action)
        if action == "GetAuthorizationToken":
            token = base64.b64encode(f"AWS:{self.password()}".encode()).decode()
            ends = time.time() + self.seconds_valid
            data = {"authorizationToken": token, "expiresAt": ends, "proxyEndpoint": "https://x"}
            return 200, {"authorizationData": [data]}
        secret = self.secrets.get(body.get("SecretId", ""))
        if action == "GetSecretValue" and secret is not None:
            return 200, {"ARN": body["SecretId"], "SecretString": secret}
        return 400, {
            "__type": "ResourceNotFoundException",
            "message": "Secrets Manager can't find the specified secret.",
        }


@contextlib.contextmanager
def aws_endpoint() -> Iterator[AwsEndpoint]:
    """Answer ecr:GetAuthorizationToken and secretsmanager:GetSecretValue."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            action = self.headers["X-Amz-Target"].rpartition(".")[2]
            status, document = running.answer(action, body)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = AwsEndpoint(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
