"""Whatever kubectl answers: a pod, or one line that says what it answered and what was expected."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.verify_drain import pod as pod_module
from sonic_eks.verify_drain.answer import Status, pod_of, siblings_of
from sonic_eks.verify_drain.kubectl import Ended, Kubectl
from sonic_eks.verify_drain.pod import Pod

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "o", "controller": True}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "w-1", "uid": "1", "ownerReferences": [OWNER]},
    "spec": {
        "containers": [
            {"name": "w", "lifecycle": {"preStop": {"httpGet": {"path": "/drain", "port": 1}}}},
            {"name": "b"},
        ],
        "terminationGracePeriodSeconds": 60,
        "shareProcessNamespace": False,
        "hostPID": False,
    },
    "status": {
        **READY,
        "containerStatuses": [
            {"name": "b", "state": {"waiting": {"reason": "x"}}},
            {"name": "w", "restartCount": 2, "state": {"running": {"startedAt": "t"}}},
        ],
    },
}
OTHER: dict[str, Any] = {
    "metadata": {"name": "w-2", "uid": "2", "ownerReferences": [OWNER]},
    "status": READY,
}
PODS = {"kind": "List", "items": [POD, OTHER]}

NONSENSE: list[Any] = [
    *(None, True, 5, -1, 1.5, 10**200, "", "x", "-x", "a\nb", "a\x00b", "\ud800", "x" * 300),
    *([], [None], [5], [[]], [{}], {}, {"x": 1}, {"name": 5}, {"uid": None}),
]
ABSENT = object()


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the way to every value of a document, the document itself first."""
    yield way
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*way, key))


def spoiled(document: Any, way: tuple[Any, ...], value: Any) -> bytes:
    """Return the document with another value, or none, at a place."""
    if not way:
        return b"" if value is ABSENT else json.dumps(value).encode()
    document = copy.deepcopy(document)
    inner = document
    for key in way[:-1]:
        inner = inner[key]
    if value is ABSENT:
        del inner[way[-1]]
    else:
        inner[way[-1]] = value
    return json.dumps(document).encode()


class Answering(Kubectl):
    """Gives fixed answers."""

    def __init__(self, pod: bytes, pods: bytes) -> None:
        super().__init__("sonic")
        object.__setattr__(self, "answers", {"pod": pod, "pods": pods})
        object.__setattr__(self, "asked", [])

    answers: dict[str, bytes]
    asked: list[tuple[str, ...]]

    async def run(self, *arguments: str) -> Ended:
        self.asked.append(arguments)
        return Ended(arguments[0], 0, self.answers[arguments[1]], b"")


def everything(kubectl: Answering) -> None:
    """Ask all that is asked of a pod, first of one that is as it should be."""

    async def scenario() -> list[SonicEksError]:
        bad = dict(kubectl.answers)
        subject = Pod("w-1", kubectl)
        kubectl.answers["pod"] = json.dumps(POD).encode()
        await subject.check()
        kubectl.answers.update(bad)
        asked = Pod("w-1", kubectl).check, subject.running, subject.others, subject.leave
        answers = await asyncio.gather(*(ask() for ask in asked), return_exceptions=True)
        errors = [one for one in answers if isinstance(one, BaseException)]
        for one in errors:
            if not isinstance(one, SonicEksError):
                raise one
        return [one for one in errors if isinstance(one, SonicEksError)]

    for error in asyncio.run(scenario()):
        said = str(error)
        refused = said.startswith("--pod w-1: ")
        assert refused or said.startswith("kubectl get: ")
        assert refused or error.exit_status == PROBLEM_FOUND
        assert said.isprintable()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_module, "_PAUSE_SECONDS", 0.0)


@pytest.mark.parametrize("way", list(places(POD)), ids=str)
def test_a_pod_spoiled_anywhere(way: tuple[Any, ...]) -> None:
    for value in (ABSENT, *NONSENSE):
        everything(Answering(spoiled(POD, way, value), json.dumps(PODS).encode()))


@pytest.mark.parametrize("way", list(places(PODS)), ids=str)
def test_a_list_spoiled_anywhere(way: tuple[Any, ...]) -> None:
    for value in (ABSENT, *NONSENSE):
        everything(Answering(json.dumps(POD).encode(), spoiled(PODS, way, value)))


@pytest.mark.parametrize(
    ("way", "value", "said"),
    [
        ((), [], "the answer: got a list of 0; expected a mapping"),
        ((), 5, "the answer: got 5; expected a mapping"),
        ((), None, "the answer: got nothing; expected a mapping"),
        ((), {"kind": "List"}, "kind: got 'List'; expected Pod"),
        (("spec",), ABSENT, "spec.containers: got nothing; expected something"),
        (("spec", "containers"), [], "spec.containers: got a list of 0; expected one container"),
        (("spec", "containers"), 5, "spec.containers: got 5; expected a list"),
        (("spec", "containers", 1), None, "spec.containers[1]: got nothing; expected something"),
        (("spec", "containers", 0, "name"), "-x", "spec.containers[0].name: got '-x'; expected a"),
        (("spec", "hostPID"), "no", "spec.hostPID: got 'no'; expected true or false"),
        (
            ("spec", "terminationGracePeriodSeconds"),
            -1,
            "spec.terminationGracePeriodSeconds: got -1; expected a whole number, 0 at least",
        ),
        (("status",), None, "status: got nothing; expected something"),
        (("metadata", "uid"), ABSENT, "metadata.uid: got nothing; expected a text"),
        (("metadata", "deletionTimestamp"), "", "metadata.deletionTimestamp: got ''; expected a"),
        (
            ("status", "containerStatuses", 1, "state", "running"),
            True,
            "status.containerStatuses[1].state.running: got true; expected a mapping",
        ),
    ],
)
def test_what_it_answered_and_what_was_expected(
    way: tuple[Any, ...], value: Any, said: str
) -> None:
    with pytest.raises(SonicEksError) as odd:
        pod_of(spoiled(POD, way, value))
    assert str(odd.value).startswith(f"kubectl get: {said}")
    assert odd.value.exit_status == PROBLEM_FOUND


@pytest.mark.parametrize("output", [b"no", b"{", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_what_is_no_json(output: bytes) -> None:
    for read in (pod_of, siblings_of):
        with pytest.raises(SonicEksError, match="kubectl get: an answer that is no JSON"):
            read(output)


def test_a_pod_as_it_should_be() -> None:
    found = pod_of(json.dumps(POD).encode())
    assert (found.uid, found.owner, found.going, found.shares_processes) == ("1", "o", False, False)
    assert found.grace_seconds == 60
    assert list(found.containers) == ["w", "b"]
    worker, beside = found.containers.values()
    assert (worker.pre_stop, worker.pre_stop_path) == (True, "/drain")
    assert (beside.pre_stop, beside.pre_stop_path) == (False, "")
    assert worker.status is not None
    assert worker.status == Status(running=True, terminated=False, restarts=2)
    assert beside.status is not None
    assert not beside.status.running
    subject = Pod("w-1", Answering(json.dumps(POD).encode(), json.dumps(PODS).encode()))

    async def scenario() -> tuple[bool, list[str]]:
        await subject.check()
        return await subject.running(), await subject.others()

    assert asyncio.run(scenario()) == (True, ["w-2"])
    assert (subject.container, subject.has_pre_stop) == ("w", True)


@pytest.mark.parametrize("key", ["lifecycle", "shareProcessNamespace", "hostPID"])
def test_null_is_nothing(key: str) -> None:
    document = copy.deepcopy(POD)
    place = document["spec"]["containers"][0] if key == "lifecycle" else document["spec"]
    place[key] = None
    document["spec"]["terminationGracePeriodSeconds"] = None
    document["metadata"]["ownerReferences"] = None
    found = pod_of(json.dumps(document).encode())
    assert (found.owner, found.grace_seconds) == ("", 30)
    assert found.containers["w"].pre_stop == (key != "lifecycle")


def test_a_container_without_a_status_has_not_ended_for_that() -> None:
    """It is asked for again, and told of: to call it running, or ended, would be a guess."""
    kubectl = Answering(json.dumps(POD).encode(), b"")
    subject = Pod("w-1", kubectl)
    asyncio.run(subject.check())
    kubectl.answers["pod"] = spoiled(POD, ("status", "containerStatuses"), [])
    with pytest.raises(SonicEksError, match="got no status of container w; expected one"):
        asyncio.run(subject.running())
    assert len(kubectl.asked) == 4
