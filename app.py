"""The CDK app: one deployment, its environment and its stacks.

Run by ``cdk synth -c config=config/default.yaml -o DIR``; templates land in ``DIR``, the rendered
Kubernetes manifests in ``DIR/k8s``.
"""

import sonic_eks.short_lived  # noqa: F401 (for what its import does, before the libraries)
from sonic_eks.timings import Timings

# isort: split
import sys
from pathlib import Path

import aws_cdk as cdk
import cdk_nag

from sonic_eks.deployment import load_deployment
from sonic_eks.errors import SonicEksError
from sonic_eks.k8s.render import render_charts
from sonic_eks.manifests import write_manifests
from sonic_eks.stacks.deployment import add_stacks


def main() -> None:
    """Synthesize the deployment that the context value ``config`` names."""
    timings = Timings()
    app = cdk.App()
    path = Path(app.node.try_get_context("config") or "config/default.yaml")
    try:
        deployment = load_deployment(path)
        with timings.phase("cdk8s"):
            charts = render_charts(deployment.config, deployment.catalogue)
            write_manifests(charts, Path(app.outdir) / "k8s")
    except SonicEksError as error:
        print(*error.lines, sep="\n", file=sys.stderr)
        sys.exit(error.exit_status)
    with timings.phase("construct"):
        add_stacks(app, deployment, charts)
        cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    with timings.phase("synthesis"):
        app.synth()
    timings.write()


if __name__ == "__main__":
    main()
