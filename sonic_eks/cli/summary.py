"""`sonic-eks summary`: what a synthesized deployment consists of, for a person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sonic_eks.cli.columns import print_section
from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument, JsonOption
from sonic_eks.deployment import Deployment, load_deployment
from sonic_eks.errors import SonicEksError
from sonic_eks.names import Names
from sonic_eks.notices import Notice, unset_vendor_names, warnings


@dataclass(frozen=True)
class Summary:
    """The figures of a synthesized deployment."""

    deployment: str
    region: str
    stacks: dict[str, int]
    artifacts: list[dict[str, str]]
    gpu: dict[str, Any]
    replicas: dict[str, dict[str, int]]
    warnings: list[Notice]
    unset_vendor_names: list[Notice]
    templates: str
    manifests: str


def summary(
    config: ConfigArgument = DEFAULT_CONFIG,
    out: Annotated[Path, typer.Option(help="Folder of the synthesized templates.")] = Path(
        "cdk.out"
    ),
    as_json: JsonOption = False,
) -> None:
    """Summarize a synthesized deployment: stacks, images, GPUs, replicas, warnings, files."""
    result = summarize(load_deployment(config), out)
    if as_json:
        print(json.dumps(asdict(result), indent=2))
    else:
        _print(result)


def summarize(deployment: Deployment, out: Path) -> Summary:
    """Read the templates in `out` and the configuration into a summary.

    Raises
    ------
    SonicEksError
        When `out` does not hold the deployment's templates.
    """
    config = deployment.config
    name = config.deployment.name
    replicas = {}
    if config.topology == "distributed":
        replicas["api"] = {"min": config.api_min_replicas, "max": config.api_max_replicas}
    part = "worker" if config.topology == "distributed" else "server"
    for model in config.models:
        replicas[f"{part} {model.name}"] = {
            "min": config.min_replicas(model),
            "max": config.max_replicas(model),
        }
    return Summary(
        deployment=name,
        region=config.deployment.region,
        stacks={
            stack: _resources(out, stack)
            for kind, stack in Names(name).stacks.items()
            if kind != "mirror" or config.registry.mirror_on_deploy
        },
        artifacts=[
            {
                "name": artifact.name,
                "kind": artifact.kind.value,
                "source": artifact.source or "registry.vendorRegistry is not set",
                "tag": artifact.tag,
                "repository": artifact.repository,
            }
            for artifact in deployment.catalogue.artifacts
        ],
        gpu={
            "instanceType": config.nodes.gpu.instance_type,
            "gpu": config.gpu_type.gpu,
            "zone": config.network.gpu_zone,
            "baseNodes": config.nodes.gpu.base_size,
            "maxNodes": config.gpu_max_nodes,
            "generationsPerGpu": config.generations_per_gpu,
            "assumed": config.capacity_is_assumed,
        },
        replicas=replicas,
        warnings=warnings(deployment),
        unset_vendor_names=unset_vendor_names(config),
        templates=str(out),
        manifests=str(out / "k8s"),
    )


def _resources(out: Path, stack: str) -> int:
    path = out / f"{stack}.template.json"
    try:
        template = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise SonicEksError(f"{path}: not there; run `make synth` first", exit_status=1) from None
    except (ValueError, RecursionError):
        template = None
    resources = template.get("Resources") if isinstance(template, dict) else None
    if not isinstance(resources, dict):
        raise SonicEksError(f"{path}: not a template; run `make synth` again", exit_status=1)
    return len(resources)


def _print(result: Summary) -> None:
    gpu = result.gpu
    rows = [(stack, str(count)) for stack, count in result.stacks.items()]
    rows.append(("all", str(sum(result.stacks.values()))))
    _section(f"Stacks of {result.deployment} in {result.region}, with their resources", rows)
    _section(
        "Images and charts to mirror",
        [(a["name"], a["kind"], a["tag"], a["source"]) for a in result.artifacts],
    )
    place = "GPU" if gpu["gpu"] else "node"
    assumed = " (assumed)" if gpu["assumed"] else ""
    _section(
        "Capacity",
        [
            (
                "GPU nodes" if gpu["gpu"] else "nodes in the place of GPU nodes",
                f"{gpu['instanceType']} ({gpu['gpu'] or 'no GPU'}) in {gpu['zone']}",
            ),
            ("", f"{gpu['baseNodes']} always, {gpu['maxNodes']} at most"),
            (f"generations per {place}", f"{gpu['generationsPerGpu']}{assumed}"),
            *(
                (f"replicas of {workload}", f"{bounds['min']} to {bounds['max']}")
                for workload, bounds in result.replicas.items()
            ),
        ],
    )
    for title, notices in (
        ("Warnings", result.warnings),
        ("Not rendered, since only the vendor knows the name", result.unset_vendor_names),
    ):
        if notices:
            _section(title, [(notice.field, notice.text) for notice in notices])
    _section("Files", [("templates", result.templates), ("manifests", result.manifests)])


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    print_section(title, rows)
    print()
