"""`sonic-eks teardown`: workload and nodes removed, before the stacks are destroyed."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from sonic_eks.catalogue import Catalogue
from sonic_eks.cli.options import DEFAULT_CONFIG, ConfigArgument, JsonOption
from sonic_eks.config import Configuration, load_configuration
from sonic_eks.errors import SonicEksError, shown
from sonic_eks.teardown.aws import Clients, call, connect


def teardown(
    config: ConfigArgument = DEFAULT_CONFIG,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    keep_stacks: Annotated[
        bool,
        typer.Option(
            "--keep-stacks",
            help="Do not stop for what would keep the other stacks from being destroyed.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Drain and remove workload and nodes, then what a destroyed deployment left behind.

    Every live stream ends. Stops before that when Capacity Reservations or endpoint connections
    would keep the stacks from being destroyed. May be stopped and run again; after `destroy` it
    removes what came back.
    """
    # The notice of jsii about old releases of Node.js is not what this command is asked for.
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    settings = load_configuration(config)
    # Not before: cdk8s takes a second to import, which a wrong file need not wait for.
    from sonic_eks.k8s.render import render_charts
    from sonic_eks.lifecycle.budget import drain_seconds
    from sonic_eks.progress import TerminalLine
    from sonic_eks.teardown.run import Teardown

    if settings.deployment.termination_protection:
        raise SonicEksError(
            f"{config}: deployment.terminationProtection: got true; set false and deploy, which"
            " lifts the protection, then try again"
        )
    clients = connect(settings.deployment.region)
    account = _account(settings, clients)
    with TerminalLine(sys.stderr) as line:
        work = Teardown(
            settings.deployment.name,
            drain_seconds=drain_seconds(render_charts(settings, Catalogue(settings))),
            clients=clients,
            reporter=line,
            keeps_stacks=keep_stacks,
        )
        has_work = work.has_work()
    if has_work and not yes:
        _confirm(settings, account)
    with line:
        outcome = work.run()
    if as_json:
        print(json.dumps({"account": account, **asdict(outcome)}, indent=2))
        return
    for what in outcome.removed:
        print(f"removed {what}")
    for instance in outcome.terminated:
        print(f"terminated {instance}: it did not end in time")
    for what in outcome.kept:
        print(f"kept {what}")


def _account(settings: Configuration, clients: Clients) -> str:
    account = str(call("account of the credentials", clients.sts.get_caller_identity)["Account"])
    wanted = settings.deployment.account
    if wanted is not None and account != wanted:
        raise SonicEksError(
            f"credentials: got account {shown(account)}; allowed: deployment.account ({wanted})"
        )
    return account


def _confirm(settings: Configuration, account: str) -> None:
    deployment = settings.deployment
    if not sys.stdin.isatty():
        raise SonicEksError("--yes: not given; it is needed where nobody can be asked")
    answer = typer.prompt(
        f"Every stream of {deployment.name} in account {account}, {deployment.region} will end."
        " Type the deployment's name to go on",
        default="",
        show_default=False,
        err=True,
    )
    if answer != deployment.name:
        raise typer.Abort
