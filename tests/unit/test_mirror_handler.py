"""The custom resource that waits for the build, called as CDK's provider framework calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from sonic_eks.constructs.mirror_build import handler

PROJECT = "mirror-project"
BUILD = f"{PROJECT}:b1"
NOW = 1_800_000_000


class Aws:
    """Stubbed clients of the services that the handler asks."""

    def __init__(self) -> None:
        options = {
            "region_name": "us-east-1",
            "aws_access_key_id": "for-tests",
            "aws_secret_access_key": "for-tests",
        }
        self.clients = {name: boto3.client(name, **options) for name in ("codebuild", "logs")}
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()

    def has_builds(self, *builds: dict[str, Any]) -> None:
        ids = [build["id"] for build in builds]
        asked = {"projectName": PROJECT, "sortOrder": "DESCENDING"}
        self.stubs["codebuild"].add_response(
            "list_builds_for_project", {"ids": ids} if ids else {}, asked
        )
        if ids:
            self._answers(*builds)

    def starts(self, list_digest: str) -> None:
        variable = {"name": "LIST_DIGEST", "value": list_digest, "type": "PLAINTEXT"}
        self.stubs["codebuild"].add_response(
            "start_build",
            {"build": {"id": BUILD}},
            {"projectName": PROJECT, "environmentVariablesOverride": [variable]},
        )

    def shows(self, status: str, **fields: Any) -> None:
        self._answers(build(status, **fields))

    def logged(self, *lines: str) -> None:
        events = [{"message": line, "timestamp": NOW} for line in lines]
        asked = {"logGroupName": "g", "logStreamName": "s", "limit": ANY, "startFromHead": False}
        self.stubs["logs"].add_response("get_log_events", {"events": events}, asked)

    def _answers(self, *builds: dict[str, Any]) -> None:
        ids = [one["id"] for one in builds]
        self.stubs["codebuild"].add_response(
            "batch_get_builds", {"builds": list(builds)}, {"ids": ids}
        )


def build(
    status: str, list_digest: str = "list-1", build_id: str = BUILD, **fields: Any
) -> dict[str, Any]:
    variable = {"name": "LIST_DIGEST", "value": list_digest}
    return {
        "id": build_id,
        "buildStatus": status,
        "environment": {
            "type": "LINUX_CONTAINER",
            "image": "i",
            "computeType": "BUILD_GENERAL1_SMALL",
            "environmentVariables": [variable],
        },
        "logs": {"groupName": "g", "streamName": "s"},
        **fields,
    }


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    running = Aws()
    monkeypatch.setattr(handler.boto3, "client", lambda name, **_: running.clients[name])
    monkeypatch.setattr(handler.time, "time", lambda: NOW)
    yield running
    for stub in running.stubs.values():
        stub.assert_no_pending_responses()


def event(kind: str = "Create", list_digest: str = "list-1") -> dict[str, Any]:
    properties = {"ProjectName": PROJECT, "ListDigest": list_digest, "ServiceToken": "arn"}
    return {"RequestType": kind, "ResourceProperties": properties}


def ask(started: dict[str, Any], kind: str = "Create") -> dict[str, Any]:
    """Ask as the framework does: with the event and what the first call returned."""
    return handler.handle({**event(kind), **started}, None)


def test_first_deployment_starts_a_build_and_waits_for_it(aws: Aws) -> None:
    aws.has_builds()
    aws.starts("list-1")
    started = handler.handle(event(), None)

    aws.shows("IN_PROGRESS")
    assert ask(started) == {"IsComplete": False}
    aws.shows("SUCCEEDED")
    assert ask(started) == {"IsComplete": True}


def test_changed_list_starts_a_build(aws: Aws) -> None:
    aws.has_builds(build("SUCCEEDED", "list-1", "old"))
    aws.starts("list-2")

    assert handler.handle(event("Update", "list-2"), None)["Data"]["BuildId"] == BUILD


def test_physical_id_stays_so_that_nothing_is_deleted(aws: Aws) -> None:
    ids = set()
    for list_digest in ("list-1", "list-2"):
        aws.has_builds()
        aws.starts(list_digest)
        ids.add(handler.handle(event("Update", list_digest), None)["PhysicalResourceId"])

    assert len(ids) == 1


def test_build_of_the_same_list_that_runs_is_taken_up(aws: Aws) -> None:
    aws.has_builds(build("IN_PROGRESS", "list-1", "running"))

    assert handler.handle(event(), None)["Data"]["BuildId"] == "running"


def test_build_of_another_list_that_runs_is_not(aws: Aws) -> None:
    aws.has_builds(build("IN_PROGRESS", "list-0", "running"))
    aws.starts("list-1")

    assert handler.handle(event(), None)["Data"]["BuildId"] == BUILD


def test_roll_back_to_the_last_good_list_starts_nothing(aws: Aws) -> None:
    aws.has_builds(
        build("FAILED", "list-2", "bad", startTime=NOW), build("SUCCEEDED", "list-1", "good")
    )
    started = handler.handle(event("Update"), None)

    assert ask(started, "Update") == {"IsComplete": True}


def test_list_that_was_good_before_the_last_good_one_is_copied_again(aws: Aws) -> None:
    aws.has_builds(
        build("SUCCEEDED", "list-2", "newer", startTime=NOW),
        build("SUCCEEDED", "list-1", "older", startTime=NOW - 1),
    )
    aws.starts("list-1")

    assert handler.handle(event("Update"), None)["Data"]["BuildId"] == BUILD


def test_failed_build_of_the_same_list_is_tried_again(aws: Aws) -> None:
    aws.has_builds(build("FAILED", "list-1", "failed"))
    aws.starts("list-1")

    assert handler.handle(event("Update"), None)["Data"]["BuildId"] == BUILD


def test_failure_has_the_builds_own_message_and_where_its_log_is(aws: Aws) -> None:
    data = {"Data": {"BuildId": BUILD, "AskedAt": NOW}}
    aws.shows("FAILED")
    aws.logged(
        "copied   image/nats 2.0\n",
        "sonic-eks: image/keda: HTTP 404\n",
        "sonic-eks: chart/x: HTTP 403\n",
        "[Container] Phase complete: BUILD State: FAILED\n",
    )

    with pytest.raises(handler.MirrorFailedError) as caught:
        ask(data)
    assert str(caught.value) == (
        "sonic-eks: image/keda: HTTP 404; sonic-eks: chart/x: HTTP 403 (log group g, stream s)"
    )


def test_failure_before_the_mirror_ran_has_the_phases_message(aws: Aws) -> None:
    aws.shows(
        "FAILED",
        phases=[
            {"phaseType": "QUEUED", "contexts": []},
            {"phaseType": "INSTALL", "contexts": [{"statusCode": "X", "message": "pip failed"}]},
        ],
    )
    aws.logged("nothing of ours")

    with pytest.raises(handler.MirrorFailedError, match=r"^pip failed \(log group g, stream s\)$"):
        ask({"Data": {"BuildId": BUILD, "AskedAt": NOW}})


def test_failure_without_a_log_still_says_so(aws: Aws) -> None:
    aws.shows("STOPPED")
    aws.stubs["logs"].add_client_error("get_log_events", "ResourceNotFoundException")

    with pytest.raises(handler.MirrorFailedError, match=r"ended as STOPPED \(log group g"):
        ask({"Data": {"BuildId": BUILD, "AskedAt": NOW}})


def test_long_message_is_cut_but_not_its_log(aws: Aws) -> None:
    aws.shows("FAILED")
    aws.logged(*(f"sonic-eks: image/{n}: {'x' * 100}" for n in range(100)))

    with pytest.raises(handler.MirrorFailedError, match=r"\(log group g, stream s\)$") as caught:
        ask({"Data": {"BuildId": BUILD, "AskedAt": NOW}})
    # AWS CloudFormation user guide, custom resource response objects: 4,096 bytes in all.
    assert len(str(caught.value)) < 2000


def test_build_goes_on_when_cloudformation_waits_no_longer(aws: Aws) -> None:
    for seconds, waits in ((3299, True), (3301, False)):
        aws.shows("IN_PROGRESS")
        data = {"Data": {"BuildId": BUILD, "AskedAt": NOW - seconds}}
        if waits:
            assert ask(data) == {"IsComplete": False}
            continue
        with pytest.raises(handler.MirrorUnfinishedError, match="and goes on; deploy again"):
            ask(data)
    # No StopBuild was asked for: an unexpected call fails in the stub.


def test_removal_asks_nothing(aws: Aws) -> None:
    started = handler.handle(event("Delete"), None)

    assert ask(started, "Delete") == {"IsComplete": True}
