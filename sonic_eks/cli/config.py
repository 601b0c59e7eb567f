"""`sonic-eks config`: the schema, and the resolved values of a file."""

from __future__ import annotations

import json
from typing import Any

import typer
import yaml

from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument, JsonOption, help_without_command
from sonic_eks.config import Configuration, load_configuration
from sonic_eks.deployment import load_deployment

app = typer.Typer(help="Show the configuration's schema and values.")
app.callback(invoke_without_command=True)(help_without_command)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a configuration file, for editors and pipelines."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Configuration.model_json_schema(by_alias=True),
    }
    print(json.dumps(document, indent=2))


@app.command()
def check(config: ConfigArgument = DEFAULT_CONFIG) -> None:
    """Validate a configuration and its lock: silent when good, one line for each fault if not."""
    load_deployment(config)


@app.command()
def show(config: ConfigArgument = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Print every value of a configuration, defaults filled in, and what follows from them."""
    resolved = load_configuration(config)
    values = resolved.model_dump(by_alias=True, mode="json")
    if as_json:
        print(json.dumps({"configuration": values, "derived": derived(resolved)}, indent=2))
        return
    print(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), end="")
    # As comments, so that the output is a configuration file itself.
    for key, value in derived(resolved).items():
        print(f"# derived: {key} = {value}")


def derived(config: Configuration) -> dict[str, Any]:
    """Return the values that follow from the configuration, by a readable key."""
    values: dict[str, Any] = {
        "network.inferenceZone": config.network.gpu_zone,
        "edge.clientCidrs": ", ".join(config.client_cidrs),
        "edge.listenerPort": config.edge.port,
        "scaling.generationsPerGpu": config.generations_per_gpu,
        "scaling.generationsPerGpu.assumed": config.capacity_is_assumed,
        "scaling.generationsPerGpu.reason": config.gpu_capacity.reason,
        "scaling.reserveGenerations": config.reserve_generations,
        "scaling.headroomGpus": config.headroom_gpus,
        "nodes.gpu.maxNodes": config.gpu_max_nodes,
        "drain.budgetSeconds": config.drain.budget_seconds,
        "drain.graceSeconds": config.drain.grace_seconds,
    }
    if config.topology == "distributed":
        values["api.minReplicas"] = config.api_min_replicas
        values["api.maxReplicas"] = config.api_max_replicas
    for index, model in enumerate(config.models):
        values[f"models.{index}.minReplicas"] = config.min_replicas(model)
        values[f"models.{index}.maxReplicas"] = config.max_replicas(model)
        values[f"models.{index}.cpuMillicores"] = config.worker_cpu_millicores(model)
        values[f"models.{index}.memoryMib"] = config.worker_memory_mib(model)
    return values
