"""What kubectl answers about pods: whatever that is, it becomes a pod or an error of one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown
from sonic_eks.verify_drain.names import LABEL, SUBDOMAIN, is_label, is_subdomain

_GRACE_SECONDS = 30
"""What Kubernetes gives a pod that asks for nothing else."""


@dataclass(frozen=True)
class Status:
    """How a container is."""

    running: bool
    terminated: bool
    restarts: int


@dataclass(frozen=True)
class Container:
    """A container of a pod.

    Attributes
    ----------
    pre_stop : bool
        Whether it has a preStop hook.
    pre_stop_path : str
        What the hook asks for; empty: it asks nobody.
    status : Status or None
        None: nothing is known yet.
    """

    pre_stop: bool
    pre_stop_path: str
    status: Status | None


@dataclass(frozen=True)
class FoundPod:
    """A pod.

    Attributes
    ----------
    owner : str
        Id of what keeps up the number of such pods; empty: nothing does.
    going : bool
        Whether it was deleted.
    shares_processes : bool
        Whether its containers see each other's processes.
    containers : dict
        By name, one at least.
    """

    uid: str
    owner: str
    going: bool
    shares_processes: bool
    grace_seconds: int
    containers: dict[str, Container]


@dataclass(frozen=True)
class Sibling:
    """A pod of the same namespace."""

    name: str
    uid: str
    owner: str
    ready: bool


def pod_of(output: bytes) -> FoundPod:
    """Return the pod of ``kubectl get pod NAME -o json``; raises SonicEksError."""
    found = _document(output)
    found["kind"].text(lambda kind: kind == "Pod", "Pod")
    metadata, spec = found["metadata"], found["spec"]
    statuses = {
        one["name"].text(): _status(one)
        for one in found["status"].required()["containerStatuses"].items()
    }
    containers = {}
    for one in spec["containers"].required().items():
        name = one["name"].text(is_label, LABEL)
        hook = one["lifecycle"]["preStop"]
        path = hook["httpGet"]["path"]
        containers[name] = Container(
            pre_stop=bool(hook.mapping()),
            pre_stop_path=path.text() if path.there else "",
            status=statuses.get(name),
        )
    if not containers:
        raise spec["containers"].odd("one container at least")
    shares = [spec[key].flag() for key in ("shareProcessNamespace", "hostPID")]
    return FoundPod(
        uid=metadata["uid"].text(),
        owner=_owner(metadata),
        going=metadata["deletionTimestamp"].there and bool(metadata["deletionTimestamp"].text()),
        shares_processes=any(shares),
        grace_seconds=spec["terminationGracePeriodSeconds"].count(_GRACE_SECONDS),
        containers=containers,
    )


def siblings_of(output: bytes) -> list[Sibling]:
    """Return the pods of ``kubectl get pods -o json``; raises SonicEksError."""
    return [_sibling(one) for one in _document(output)["items"].required().items()]


def _sibling(found: _Value) -> Sibling:
    metadata = found["metadata"]
    conditions = {
        one["type"].text(): one["status"].text() for one in found["status"]["conditions"].items()
    }
    return Sibling(
        name=metadata["name"].text(is_subdomain, SUBDOMAIN),
        uid=metadata["uid"].text(),
        owner=_owner(metadata),
        ready=conditions.get("Ready") == "True",
    )


def _owner(metadata: _Value) -> str:
    owners = metadata["ownerReferences"].items()
    return next((one["uid"].text() for one in owners if one["controller"].flag()), "")


def _status(found: _Value) -> Status:
    running, terminated = found["state"]["running"], found["state"]["terminated"]
    return Status(
        running=running.mapping() is not None,
        terminated=terminated.mapping() is not None,
        restarts=found["restartCount"].count(0),
    )


@dataclass(frozen=True)
class _Value:
    """A value of an answer and the way to it; null is as good as nothing, as in Kubernetes."""

    value: Any
    path: str = ""

    @property
    def there(self) -> bool:
        """Whether there is anything."""
        return self.value is not None

    def odd(self, expected: str) -> SonicEksError:
        """Return the error that this value is."""
        return SonicEksError(
            f"kubectl get: {self.path or 'the answer'}: got {shown(self.value)}; expected"
            f" {expected}",
            exit_status=PROBLEM_FOUND,
        )

    def __getitem__(self, key: str) -> _Value:
        path = f"{self.path}.{key}" if self.path else key
        return _Value((self.mapping() or {}).get(key), path)

    def required(self) -> _Value:
        """Return it unless it is nothing."""
        if self.value is None:
            raise self.odd("something")
        return self

    def mapping(self) -> dict[str, Any] | None:
        if self.value is None or isinstance(self.value, dict):
            return self.value
        raise self.odd("a mapping")

    def items(self) -> list[_Value]:
        """Return the values of a list; of nothing none."""
        values = [] if self.value is None else self.value
        if not isinstance(values, list):
            raise self.odd("a list")
        items = [_Value(value, f"{self.path}[{index}]") for index, value in enumerate(values)]
        for one in items:
            one.required()
        return items

    def text(self, allowed: Callable[[str], bool] = bool, expected: str = "a text") -> str:
        if not isinstance(self.value, str) or not allowed(self.value):
            raise self.odd(expected)
        return self.value

    def flag(self) -> bool:
        if self.value is None or isinstance(self.value, bool):
            return bool(self.value)
        raise self.odd("true or false")

    def count(self, default: int) -> int:
        if self.value is None:
            return default
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.odd("a whole number, 0 at least")
        return self.value


def _document(output: bytes) -> _Value:
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        raise SonicEksError(
            "kubectl get: an answer that is no JSON", exit_status=PROBLEM_FOUND
        ) from None
    if not isinstance(found, dict):
        raise _Value(found).odd("a mapping")
    return _Value(found)
