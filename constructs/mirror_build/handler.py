"""Fills the registry in a deployment: starts the build, then tells how it ended.

Runs in AWS Lambda for CDK's provider framework, which calls it once for the event and then again,
with what that returned, until it says that all is complete. Nothing but boto3 is at hand.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import boto3
from botocore.config import Config

log = logging.getLogger()
log.setLevel(logging.INFO)

# CloudFormation waits an hour for a custom resource; its own words would say no more than that.
PATIENCE_SECONDS = 55 * 60

_LIST_VARIABLE = "LIST_DIGEST"
_RECENT_BUILDS = 50
_LINES = 300
_LONGEST_MESSAGE = 1500

Event = dict[str, Any]


class MirrorFailedError(Exception):
    """The build failed; CloudFormation shows the text."""


class MirrorUnfinishedError(Exception):
    """The build goes on, but CloudFormation waits no longer."""


def handle(event: Event, context: object) -> dict[str, Any]:
    """Handle a call of the provider framework: an event first, then questions about it.

    Parameters
    ----------
    event : dict
        The custom resource's event; with ``Data``, which `start` returned, it is a question.
    context : object
        Lambda's, not used.

    Raises
    ------
    MirrorFailedError
        With the build's own message and where its log is.
    MirrorUnfinishedError
        When the build takes longer than CloudFormation waits.
    """
    if event["RequestType"] == "Delete":
        # A build that runs goes on: what it copies is what the next deployment need not.
        return {"IsComplete": True} if "Data" in event else {"Data": {}}
    properties = event["ResourceProperties"]
    builds = boto3.client(
        "codebuild", config=Config(retries={"mode": "standard", "max_attempts": 10})
    )
    if "Data" in event:
        return {"IsComplete": _is_complete(builds, event["Data"])}
    return start(builds, properties["ProjectName"], properties["ListDigest"])


def start(builds: Any, project: str, list_digest: str) -> dict[str, Any]:
    """Start a build of a list, or take up one that runs; none when the last good one had it.

    Parameters
    ----------
    builds : Any
        A boto3 CodeBuild client.
    project : str
        The project's name.
    list_digest : str
        Which list the registry is to hold.
    """
    found = _build_to_follow(builds, project, list_digest)
    if found is None:
        variable = {"name": _LIST_VARIABLE, "value": list_digest, "type": "PLAINTEXT"}
        answer = builds.start_build(projectName=project, environmentVariablesOverride=[variable])
        found = answer["build"]["id"]
    log.info("list %s: build %s", list_digest, found or "not needed")
    return {
        # Always the same: a new one would make CloudFormation delete the old.
        "PhysicalResourceId": f"mirror-{project}",
        "Data": {"BuildId": found, "AskedAt": int(time.time())},
    }


def _build_to_follow(builds: Any, project: str, list_digest: str) -> str | None:
    """Return a running build of the list, an empty text when it is in place, else None.

    The newest good build counts, so that a roll-back to its list starts none that could fail too.
    """
    ids = builds.list_builds_for_project(projectName=project, sortOrder="DESCENDING").get("ids")
    if not ids:
        return None
    found = builds.batch_get_builds(ids=ids[:_RECENT_BUILDS])["builds"]
    for build in sorted(found, key=lambda one: str(one.get("startTime", "")), reverse=True):
        same = _list_of(build) == list_digest
        if same and build["buildStatus"] == "IN_PROGRESS":
            return str(build["id"])
        if build["buildStatus"] == "SUCCEEDED":
            return "" if same else None
    return None


def _list_of(build: dict[str, Any]) -> str | None:
    variables = build.get("environment", {}).get("environmentVariables", [])
    return next((v["value"] for v in variables if v["name"] == _LIST_VARIABLE), None)


def _is_complete(builds: Any, data: dict[str, Any]) -> bool:
    build_id = data["BuildId"]
    if not build_id:
        return True
    build = builds.batch_get_builds(ids=[build_id])["builds"][0]
    place = build.get("logs", {})
    where = f"log group {place.get('groupName')}, stream {place.get('streamName')}"
    if build["buildStatus"] == "SUCCEEDED":
        return True
    if build["buildStatus"] != "IN_PROGRESS":
        raise MirrorFailedError(f"{_reason(build)[:_LONGEST_MESSAGE]} ({where})")
    if time.time() - float(data["AskedAt"]) > PATIENCE_SECONDS:
        raise MirrorUnfinishedError(
            f"build {build_id} is still copying after {PATIENCE_SECONDS // 60} minutes and goes on;"
            f" deploy again when it has ended ({where})"
        )
    return False


def _reason(build: dict[str, Any]) -> str:
    """Return what the mirror said, or else what CodeBuild says of the phase that failed."""
    place = build.get("logs", {})
    lines: list[str] = []
    try:
        events = boto3.client("logs").get_log_events(
            logGroupName=place["groupName"],
            logStreamName=place["streamName"],
            limit=_LINES,
            startFromHead=False,
        )["events"]
        lines = [e["message"].strip() for e in events if e["message"].startswith("sonic-eks: ")]
    except Exception:  # whatever it is, it must not hide why the build failed
        log.exception("no log of %s", build["id"])
    phases = [
        context["message"]
        for phase in build.get("phases", [])
        for context in phase.get("contexts", [])
        if context.get("message")
    ]
    return "; ".join(lines or phases) or f"build {build['id']} ended as {build['buildStatus']}"
