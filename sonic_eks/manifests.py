"""Rendered manifests as files: ``DIR/k8s/*.yaml`` and the GitOps rendering."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import yaml

from sonic_eks.errors import SonicEksError, shown
from sonic_eks.late import Late, is_value_of, markers_in, resolve
from sonic_eks.names import Names

_WAITING = """\
# Values written <<known-after-deploy:NAME>> exist only after `cdk deploy`. The Workload stack
# fills them in; for GitOps, `sonic-eks render --outputs FILE` does.
"""


class Chart(Protocol):
    """What is needed of a rendered chart here."""

    @property
    def name(self) -> str:
        """Name of the chart."""

    @property
    def manifests(self) -> tuple[dict[str, Any], ...]:
        """Kubernetes objects in apply order."""


def to_yaml(manifests: Iterable[dict[str, Any]]) -> str:
    """Return manifests as one multi-document YAML text."""
    documents = list(manifests)
    header = _WAITING if any(markers_in(document) for document in documents) else ""
    text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=100)
    return f"{header}---\n{text}"


def write_manifests(charts: Iterable[Chart], folder: Path) -> list[Path]:
    """Write one file a chart into `folder` and remove files of charts that are gone.

    The number in front of a name is the apply order, so that ``kubectl apply -f DIR`` is right.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    SonicEksError
        When the folder cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, chart in enumerate(charts):
            path = folder / f"{index:02d}-{chart.name}.yaml"
            path.write_text(to_yaml(chart.manifests), encoding="utf-8")
            written.append(path)
        for stale in set(folder.glob("[0-9][0-9]-*.yaml")) - set(written):
            stale.unlink()
    except OSError as error:
        raise SonicEksError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return written


def read_outputs(path: Path, deployment: str) -> Callable[[Late], str]:
    """Return a look-up of late values in a file of ``cdk deploy --outputs-file``.

    Parameters
    ----------
    path : Path
        The JSON file: stack name -> output name -> value.
    deployment : str
        Name of the deployment, whose stacks are searched.

    Raises
    ------
    SonicEksError
        When the file cannot be read, is not such a file, or lacks a value (at look-up).
    """
    try:
        stacks = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SonicEksError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise SonicEksError(
            f"{path}: not JSON; give the file that `cdk deploy --all --outputs-file FILE` wrote"
        ) from None
    if not isinstance(stacks, dict) or not all(isinstance(v, dict) for v in stacks.values()):
        raise SonicEksError(
            f"{path}: a mapping of stacks to outputs is expected, got {shown(stacks)}"
        )
    known: dict[str, Any] = {}
    for stack in Names(deployment).stacks.values():
        known.update(stacks.get(stack, {}))

    def value_of(value: Late) -> str:
        found = known.get(value.value)
        if not isinstance(found, str) or not found:
            raise SonicEksError(
                f"{path}: no output {value.value} of a stack {deployment}-*; deploy all stacks"
                " with --outputs-file, then render again"
            )
        if not is_value_of(value, found):
            raise SonicEksError(f"{path}: output {value.value} is none: got {shown(found)}")
        return found

    return value_of


def resolved(chart: Chart, value_of: Callable[[Late], str]) -> list[dict[str, Any]]:
    """Return a chart's manifests with every late value filled in."""
    return [resolve(manifest, value_of) for manifest in chart.manifests]
