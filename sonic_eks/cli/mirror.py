"""`sonic-eks mirror`: the lock file, the copies, and whether they are right."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sonic_eks.catalogue import Catalogue
from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument, JsonOption, help_without_command
from sonic_eks.config import load_configuration
from sonic_eks.deployment import load_deployment
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError, shown
from sonic_eks.late import Late
from sonic_eks.mirror.artifact import Artifact
from sonic_eks.mirror.aws import account_id, connect
from sonic_eks.mirror.connections import Connections
from sonic_eks.mirror.copier import Copier, Outcome, Status
from sonic_eks.mirror.lock import lock_path, locked, read_lock, write_lock
from sonic_eks.mirror.locking import resolve_lock
from sonic_eks.mirror.plan import Step, plan
from sonic_eks.mirror.progress import in_bytes
from sonic_eks.mirror.verify import Check, image_references, missing_references, verify
from sonic_eks.progress import LineReporter, TerminalBar, TerminalLine

app = typer.Typer(help="Copy upstream images and charts into the account's registry.")
app.callback(invoke_without_command=True)(help_without_command)

OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only this artifact; may be given again."),
]
RegistryOption = Annotated[
    str | None,
    typer.Option("--registry", metavar="HOST", help="Registry instead of the deployment's own."),
]
ParallelOption = Annotated[
    int, typer.Option("--parallel", min=1, max=32, help="Most transfers at a time.")
]
ManifestsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--manifests",
        metavar="FILE",
        help="Kubernetes YAML or JSON whose images must be in the registry; may be given again.",
    ),
]


@app.command()
def lock(
    config: ConfigArgument = DEFAULT_CONFIG, only: OnlyOption = None, as_json: JsonOption = False
) -> None:
    """Resolve every tag to its digest and write the lock file beside the configuration."""
    path = lock_path(config)
    known = read_lock(path) or {}
    catalogue = Catalogue(load_configuration(config))
    artifacts = _chosen(catalogue.artifacts, only)
    with TerminalLine(sys.stderr, "resolving tags") as line:
        # No registry of the deployment is asked; any host will do for the upstreams' sake.
        resolved = resolve_lock(connect("localhost", heard=line.show), artifacts, line.show)
    new = {**known, **resolved} if only else resolved
    locked(catalogue.artifacts, new)  # refuses a lock that would not be whole
    changed = write_lock(path, new)
    unlocked = [a.key for a in artifacts if a.source is None]
    if as_json:
        _print_json(file=str(path), changed=changed, locked=sorted(resolved), unlocked=unlocked)
        return
    for key, entry in sorted(resolved.items()):
        moved = " (new)" if key not in known else ""
        if key in known and known[key].digest != entry.digest:
            moved = f" (was {known[key].digest})"
        print(f"{key} {entry.tag} {entry.digest}{moved}")
    for key in unlocked:
        print(f"{key}: not locked; registry.vendorRegistry is not set")
    print(f"{path}: {'written' if changed else 'unchanged'}")


@app.command(name="plan")
def plan_command(
    config: ConfigArgument = DEFAULT_CONFIG,
    only: OnlyOption = None,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would copy, how large it is, and what is there; write nothing."""
    with TerminalLine(sys.stderr, "comparing registries") as line:
        connections, artifacts, _ = _open(config, only, registry, line, parallel=8)
        steps = plan(connections, artifacts)
    problems = [step.problem for step in steps if step.problem]
    if as_json:
        _print_json(
            registry=connections.host, artifacts=[_step_row(s) for s in steps], problems=problems
        )
    else:
        for step in steps:
            size = f" {in_bytes(step.missing_bytes)} to send" if step.missing_bytes else ""
            print(f"{step.state or 'unknown':<11} {step.artifact.key} {step.artifact.tag}{size}")
        print(f"to send: {in_bytes(sum(step.missing_bytes for step in steps))}")
    _end(problems)


@app.command()
def run(
    config: ConfigArgument = DEFAULT_CONFIG,
    only: OnlyOption = None,
    registry: RegistryOption = None,
    parallel: ParallelOption = 4,
    as_json: JsonOption = False,
) -> None:
    """Copy what is missing; may be stopped at any time and run again."""
    with TerminalBar(sys.stderr) as bar:
        connections, artifacts, _ = _open(config, only, registry, bar, parallel=parallel)
        outcomes = Copier(connections, bar).run(artifacts)
    problems = [o.message for o in outcomes if o.status is Status.FAILED]
    if as_json:
        _print_json(
            registry=connections.host,
            artifacts=[_outcome_row(o) for o in outcomes],
            problems=problems,
        )
    else:
        for outcome in outcomes:
            sent = f" {in_bytes(outcome.sent_bytes)} sent" if outcome.sent_bytes else ""
            print(f"{outcome.status:<8} {outcome.artifact.key} {outcome.artifact.tag}{sent}")
    _end(problems)


@app.command(name="verify")
def verify_command(
    config: ConfigArgument = DEFAULT_CONFIG,
    only: OnlyOption = None,
    registry: RegistryOption = None,
    manifests: ManifestsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the registry with the lock file, and images in use with the registry."""
    in_use = {reference for path in manifests or () for reference in _images_in(path)}
    with TerminalLine(sys.stderr, "reading the registry") as line:
        connections, artifacts, catalogue = _open(config, only, registry, line, parallel=8)
        checks = verify(connections, artifacts)
    problems = [check.problem for check in checks if check.problem]
    # Manifests that were rendered before a deployment do not know the account yet.
    strangers = missing_references(in_use, {catalogue.host, connections.host}, catalogue.artifacts)
    problems += [f"image in use but not in the registry's list: {r}" for r in strangers]
    if as_json:
        _print_json(
            registry=connections.host,
            artifacts=[_check_row(check) for check in checks],
            missing=strangers,
            problems=problems,
        )
    else:
        for check in checks:
            state = "wrong" if check.problem else "right"
            print(
                f"{state} {check.artifact.key} {check.artifact.tag} {check.digest or ''}".rstrip()
            )
    _end(problems)


def _open(
    config: Path,
    only: list[str] | None,
    registry: str | None,
    reporter: LineReporter,
    *,
    parallel: int,
) -> tuple[Connections, tuple[Artifact, ...], Catalogue]:
    """Read list and lock, and connect to the registry."""
    catalogue = load_deployment(config).catalogue
    artifacts = _chosen(catalogue.artifacts, only)
    host = registry or catalogue.host
    if Late.ACCOUNT.marker in host:
        host = host.replace(Late.ACCOUNT.marker, account_id())
    return connect(host, parallel=parallel, heard=reporter.show), artifacts, catalogue


def _chosen(artifacts: tuple[Artifact, ...], names: list[str] | None) -> tuple[Artifact, ...]:
    if not names:
        return artifacts
    known = {artifact.name for artifact in artifacts} | {artifact.key for artifact in artifacts}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            nearest = f"; nearest: {close[0]}" if close else ""
            allowed = ", ".join(sorted({artifact.name for artifact in artifacts}))
            raise SonicEksError(
                f"--only: got {shown(name)}; allowed: names of artifacts: {allowed}{nearest}"
            )
    return tuple(a for a in artifacts if a.name in names or a.key in names)


def _images_in(path: Path) -> set[str]:
    try:
        text = path.read_text("utf-8")
        return image_references(list(yaml.safe_load_all(text)))
    except (OSError, UnicodeDecodeError) as error:
        raise SonicEksError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    except yaml.YAMLError:
        raise SonicEksError(f"{path}: neither YAML nor JSON") from None


def _row(artifact: Artifact) -> dict[str, Any]:
    return {
        "name": artifact.name,
        "kind": artifact.kind.value,
        "source": artifact.source,
        "tag": artifact.tag,
        "repository": artifact.repository,
        "needed": artifact.needed,
    }


def _step_row(step: Step) -> dict[str, Any]:
    return {
        **_row(step.artifact),
        "state": step.state.value if step.state else None,
        "digest": step.digest,
        "totalBytes": step.total_bytes,
        "missingBytes": step.missing_bytes,
    }


def _outcome_row(outcome: Outcome) -> dict[str, Any]:
    return {
        **_row(outcome.artifact),
        "status": outcome.status.value,
        "digest": outcome.digest,
        "sentBytes": outcome.sent_bytes,
    }


def _check_row(check: Check) -> dict[str, Any]:
    return {**_row(check.artifact), "digest": check.digest, "right": not check.problem}


def _print_json(**document: Any) -> None:
    print(json.dumps(document, indent=2))


def _end(problems: Iterable[str]) -> None:
    """Print what is wrong, a line each, and exit 1 if anything is."""
    lines = list(problems)
    if lines:
        print(*lines, sep="\n", file=sys.stderr)
        raise typer.Exit(PROBLEM_FOUND)
