"""The node guard: what makes a deletion succeed, wait or fail, and what CloudFormation hears."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sonic_eks.constructs import node_guard_handler as guard

# Every case has an account of its own in moto.
pytestmark = pytest.mark.slow

AMI = "ami-12c6146b"  # one that moto knows
ADVICE = "run `sonic-eks teardown`, then destroy again"


class Context:
    """A Lambda context whose time passes when the function sleeps."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@pytest.fixture
def answers() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that stands for CloudFormation's presigned address, and what it was sent."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            assert self.headers["content-type"] == ""
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/answer?signature=x", received
        server.shutdown()
        thread.join()


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An account without instances."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield boto3.client("ec2")


def launch(ec2: Any, tags: dict[str, str]) -> str:
    """Start an instance with tags."""
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    answer = ec2.run_instances(
        ImageId=AMI,
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}],
    )
    return str(answer["Instances"][0]["InstanceId"])


OWN = {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice": "owned"}
STRANGERS = [
    # of another cluster; of a managed node group; of nobody
    {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/voice-eu": "owned"},
    {"eks:nodegroup-name": "gpu", "kubernetes.io/cluster/voice": "owned"},
    {"Name": "bastion"},
]


def event(url: str, kind: str = "Delete") -> dict[str, Any]:
    """A request of CloudFormation."""
    return {
        "RequestType": kind,
        "ResponseURL": url,
        "StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/voice-workload/1",
        "RequestId": "r-1",
        "LogicalResourceId": "NodeGuard",
        "ResourceProperties": {"ClusterName": "voice", "Advice": ADVICE},
    }


def sleeper(context: Context, after: Callable[[], None] = lambda: None) -> Callable[[float], None]:
    """A sleep that takes the function's time, and does something."""

    def sleep(seconds: float) -> None:
        context.seconds -= seconds
        after()

    return sleep


@pytest.mark.parametrize("tags", STRANGERS)
def test_other_instances_do_not_keep_a_stack(
    ec2: Any, answers: tuple[str, list[dict[str, Any]]], tags: dict[str, str]
) -> None:
    url, received = answers
    launch(ec2, tags)
    guard.handler(event(url), Context(900))
    (answer,) = received
    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == "nodes-of-voice"
    assert (answer["RequestId"], answer["LogicalResourceId"]) == ("r-1", "NodeGuard")


def test_an_instance_that_stays_fails_the_deletion_with_its_id(
    ec2: Any, answers: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, received = answers
    instance = launch(ec2, OWN)
    context = Context(900)
    monkeypatch.setattr(guard.time, "sleep", sleeper(context))
    guard.handler(event(url), context)
    (answer,) = received
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == f"instances of Karpenter are left: {instance}; {ADVICE}"
    # It used its time and kept enough to answer.
    assert 60 <= context.seconds < 60 + 2 * guard.POLL_SECONDS


def test_an_instance_that_ends_meanwhile_is_waited_for(
    ec2: Any, answers: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, received = answers
    instance = launch(ec2, OWN)
    context = Context(900)

    def end() -> None:
        ec2.terminate_instances(InstanceIds=[instance])

    monkeypatch.setattr(guard.time, "sleep", sleeper(context, end))
    guard.handler(event(url), context)
    assert [answer["Status"] for answer in received] == ["SUCCESS"]
    assert context.seconds == 900 - guard.POLL_SECONDS


@pytest.mark.parametrize("state", ["stopped", "stopping"])
def test_a_stopped_instance_counts(
    ec2: Any,
    answers: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    state: str,
) -> None:
    url, received = answers
    ec2.stop_instances(InstanceIds=[launch(ec2, OWN)])
    assert state in guard.ALIVE
    context = Context(900)
    monkeypatch.setattr(guard.time, "sleep", sleeper(context))
    guard.handler(event(url), context)
    assert [answer["Status"] for answer in received] == ["FAILED"]


def test_many_instances_make_a_short_reason(
    ec2: Any, answers: tuple[str, list[dict[str, Any]]]
) -> None:
    url, received = answers
    for _ in range(8):
        launch(ec2, OWN)
    guard.handler(event(url), Context(61))
    (answer,) = received
    assert " and 3 more; run " in answer["Reason"]
    assert len(answer["Reason"]) < 300


def test_not_knowing_is_not_success(
    answers: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, received = answers

    def refuse(*arguments: object) -> Any:
        error = {"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}
        raise ClientError(error, "DescribeInstances")  # type: ignore[arg-type]

    monkeypatch.setattr(guard.boto3, "client", refuse)
    guard.handler(event(url), Context(900))
    (answer,) = received
    assert answer["Status"] == "FAILED"
    assert "UnauthorizedOperation" in answer["Reason"]


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_making_it_asks_nothing(
    answers: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    url, received = answers
    monkeypatch.setattr(guard.boto3, "client", lambda *_: pytest.fail("asked AWS"))
    guard.handler(event(url, kind), Context(900))
    assert [answer["Status"] for answer in received] == ["SUCCESS"]
