"""`sonic-eks verify-drain`: what an image does over capacity and on SIGTERM, by experiment."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sonic_eks.bench import inputs
from sonic_eks.bench.outputs import writable, write
from sonic_eks.bench.plan import Protocol, Target
from sonic_eks.cli import bench_options as options
from sonic_eks.cli.bench_given import refuse_ignored_of_an_end
from sonic_eks.cli.options import JsonOption
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError
from sonic_eks.verify_drain.names import check_names

if TYPE_CHECKING:
    from sonic_eks.verify_drain.experiment import Settings
    from sonic_eks.verify_drain.findings import Findings
    from sonic_eks.verify_drain.subject import Subject
    from sonic_eks.verify_drain.way import Way

PodOption = Annotated[str | None, typer.Option(help="Pod to end, by kubectl.")]
NamespaceOption = Annotated[str, typer.Option(help="Namespace of the pod.")]
ContainerOption = Annotated[
    str | None, typer.Option(help="Container to end; unset: the pod's first.")
]
PortOption = Annotated[
    int, typer.Option(min=1, max=65535, help="Without URL: port on which the pod serves.")
]
MostOption = Annotated[
    int, typer.Option("--max-concurrency", min=2, max=10_000, help="Most generations at a time.")
]
PidOption = Annotated[int | None, typer.Option(min=2, help="Process of this machine to end.")]
StreamsOption = Annotated[int, typer.Option(min=1, max=100, help="Generations at SIGTERM.")]
CharactersOption = Annotated[
    int, typer.Option(min=100, max=20_000, help="Length of their text; they must last for seconds.")
]
OutOption = Annotated[Path | None, typer.Option(help="File for the configuration that fits.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before it ends something.")]


def verify_drain(
    context: typer.Context,
    url: options.UrlArgument = None,
    pod: PodOption = None,
    namespace: NamespaceOption = "sonic",
    container: ContainerOption = None,
    port: PortOption = 5000,
    pid: PidOption = None,
    streams: StreamsOption = 4,
    characters: CharactersOption = 1500,
    max_concurrency: MostOption = 32,
    watch_seconds: options.WatchOption = 30.0,
    protocol: options.ProtocolOption = Protocol.WEBSOCKET,
    timeout: options.TimeoutOption = 10.0,
    model: options.ModelOption = "sonic-3",
    voice: options.VoiceOption = "",
    key_env: options.KeyEnvOption = inputs.KEY_VARIABLE,
    key_file: options.KeyFileOption = None,
    out: OutOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Learn what an image does over capacity and on SIGTERM; print the configuration that fits.

    What is ended (--pod or --pid) must be all that serves URL; without URL the pod itself is asked.
    Use a service that nobody else uses. Exit status 1: what was seen is not clear.
    """
    from sonic_eks.verify_drain.experiment import Settings
    from sonic_eks.verify_drain.kubectl import Kubectl
    from sonic_eks.verify_drain.pod import Pod
    from sonic_eks.verify_drain.subject import LocalProcess
    from sonic_eks.verify_drain.way import PortForwards

    _refuse_without_meaning(context, url, pod, pid)
    check_names(pod, namespace, container)
    if out is not None:
        writable("--out", out)
    settings = Settings(
        streams=streams,
        stream_characters=characters,
        max_concurrency=max_concurrency,
        watch_seconds=watch_seconds,
    )
    target = Target(
        url=inputs.service_url(url) if url is not None else f"http://{pod}:{port}",
        key=inputs.api_key(key_env, key_file),
        protocol=protocol,
        model=model,
        voice=voice,
        timeout_seconds=timeout,
    )
    subject: Subject | None = None
    way: Way | None = None
    if pod is not None:
        kubectl = Kubectl(namespace, target.key)
        subject = Pod(pod, kubectl, container)
        way = PortForwards(kubectl, pod, port) if url is None else None
    elif pid is not None:
        subject = LocalProcess(pid)
    if subject is not None and not yes:
        _confirm(subject.name)
    _give(asyncio.run(_experiment(target, subject, way, settings)), out, as_json=as_json)


def _refuse_without_meaning(
    context: typer.Context, url: str | None, pod: str | None, pid: int | None
) -> None:
    if pod is not None and pid is not None:
        raise SonicEksError("--pod and --pid: got both; give what is to be ended, one of them")
    if url is None and pod is None:
        raise SonicEksError("verify-drain: got neither URL nor --pod; give one at least")
    refuse_ignored_of_an_end(context)


def _confirm(name: str) -> None:
    if not sys.stdin.isatty():
        raise SonicEksError("--yes: not given; it is needed where nobody can be asked")
    if not typer.confirm(f"{name} will be ended. Go on?", err=True):
        raise typer.Abort


async def _experiment(
    target: Target, subject: Subject | None, way: Way | None, settings: Settings
) -> Findings:
    from dataclasses import replace

    from sonic_eks.bench.check import check_service
    from sonic_eks.progress import TerminalLine
    from sonic_eks.verify_drain.experiment import Experiment
    from sonic_eks.verify_drain.way import Address

    with TerminalLine(sys.stderr, "asking the service") as line:
        if subject is not None:
            await subject.check()
        async with (way or Address(target.url)).road() as road:
            await check_service(replace(target, url=road.url))
        return await Experiment(target, subject, settings, line.show, way).run()


def _give(findings: Findings, out: Path | None, *, as_json: bool) -> None:
    text = findings.to_yaml()
    # First: whoever reads the other may have left.
    if out is not None:
        write("--out", out, text)
    if as_json:
        print(json.dumps(findings.to_dict(), indent=2))
    else:
        print(text, end="")
    if findings.unclear:
        print(f"verify-drain: {findings.unclear}", file=sys.stderr)
        raise typer.Exit(PROBLEM_FOUND)
