"""`sonic-eks render`: the Kubernetes manifests without CDK, for review and GitOps."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument
from sonic_eks.deployment import load_deployment
from sonic_eks.manifests import read_outputs, resolved, to_yaml, write_manifests


def render(
    config: ConfigArgument = DEFAULT_CONFIG,
    outputs: Annotated[
        Path | None,
        typer.Option(help="File of `cdk deploy --outputs-file`; fills in what a deployment made."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write one file a chart to; else one stream.")
    ] = None,
) -> None:
    """Print or write the manifests that the Workload stack applies."""
    # The notice of jsii about old releases of Node.js is not what this command is asked for.
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    # Not at the top: cdk8s takes a second to import, which other commands need not wait for.
    from sonic_eks.k8s.render import render_charts

    deployment = load_deployment(config)
    charts = render_charts(deployment.config, deployment.catalogue)
    if outputs is not None:
        value_of = read_outputs(outputs, deployment.config.deployment.name)
        charts = tuple(replace(c, manifests=tuple(resolved(c, value_of))) for c in charts)
    if out is None:
        for chart in charts:
            print(to_yaml(chart.manifests), end="")
        return
    for path in write_manifests(charts, out):
        print(path)
