"""`sonic-eks bench`: generations per GPU, measured on a service that runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from sonic_eks.bench import inputs
from sonic_eks.bench.outputs import distinct, is_special, writable, write
from sonic_eks.bench.plan import Arrivals, Load, Protocol, Slo, Target
from sonic_eks.cli import bench_options as options
from sonic_eks.cli.bench_given import refuse_ignored
from sonic_eks.cli.options import JsonOption
from sonic_eks.cli.output import give_up
from sonic_eks.deployment import load_deployment
from sonic_eks.errors import BAD_INPUT, PROBLEM_FOUND, SonicEksError, one_line, shown
from sonic_eks.late import resolve
from sonic_eks.manifests import read_outputs, to_yaml

if TYPE_CHECKING:
    from sonic_eks.bench.measure import Plan

_MOST_HOURS = 24
_MOST_HOURS_OF_A_JOB = 4


def bench(
    context: typer.Context,
    url: options.UrlArgument = None,
    concurrency: options.ConcurrencyOption = None,
    rate: options.RateOption = None,
    arrivals: options.ArrivalsOption = None,
    max_concurrency: options.MaxConcurrencyOption = 64,
    generations: options.GenerationsOption = 300,
    slo_ms: options.SloOption = 100.0,
    percentile: options.PercentileOption = 95.0,
    underrun_percent: options.UnderrunOption = 1.0,
    speaking_percent: options.SpeakingOption = 40.0,
    protocol: options.ProtocolOption = Protocol.WEBSOCKET,
    contexts_per_socket: options.ContextsOption = 1,
    buffer_delay_ms: options.BufferDelayOption = 0,
    playback_buffer_ms: options.PlaybackOption = 0,
    timeout: options.TimeoutOption = 10.0,
    model: options.ModelOption = "sonic-3",
    voice: options.VoiceOption = "",
    language: options.LanguageOption = "en",
    encoding: options.EncodingOption = "pcm_s16le",
    sample_rate: options.SampleRateOption = 24000,
    key_env: options.KeyEnvOption = inputs.KEY_VARIABLE,
    key_file: options.KeyFileOption = None,
    processes: options.ProcessesOption = None,
    seed: options.SeedOption = 1,
    report: options.ReportOption = None,
    profile: options.ProfileOption = None,
    gpu: options.GpuOption = None,
    gpus: options.GpusOption = None,
    release: options.ReleaseOption = None,
    read: options.ReadOption = None,
    job: options.JobOption = None,
    outputs: options.OutputsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a service: the highest concurrency that keeps the objective, or one run.

    The API key comes from an environment variable or a file. Exit status 1: objective not kept, or
    the client was the bottleneck.
    """
    refuse_ignored(context, protocol)
    results = _Outputs(report, profile, gpu, gpus, release, as_json)
    results.check(model, ("--read", read), ("--key-file", key_file))
    if read is not None and url is None:
        results.give_stored(read)
        return
    if read is not None or url is None:
        raise SonicEksError("bench: give either the URL of a service or --read FILE")
    key = inputs.api_key(key_env, key_file) if job is None else ""
    sound = _Sound(model, voice, language, encoding, sample_rate)
    wire = _Wire(protocol, contexts_per_socket, buffer_delay_ms, playback_buffer_ms, timeout)
    # Not at the top: other commands need not wait for what drives load.
    from sonic_eks.bench.measure import Plan

    plan = Plan(
        target=_target(inputs.service_url(url), key, sound, wire),
        load=_load(concurrency, rate, arrivals, generations=generations, seed=seed, job=job),
        slo=Slo(ttfb_ms=slo_ms, percentile=percentile, underrun_percent=underrun_percent),
        max_concurrency=None if concurrency or rate else max_concurrency,
        speaking_percent=speaking_percent,
        processes=processes or 1,
        max_processes=processes,
    )
    _carry_out(plan, results, job, outputs)


def _carry_out(plan: Plan, results: _Outputs, job: Path | None, outputs: Path | None) -> None:
    if job is not None:
        results.refuse_with_job()
        _print_job(job, outputs, plan)
    elif outputs is not None:
        raise SonicEksError("--outputs: got no --job; it fills in what a Job needs")
    else:
        results.give(_measure(plan))


class _Sound(NamedTuple):
    """What is said how."""

    model: str
    voice: str
    language: str
    encoding: str
    sample_rate: int


class _Wire(NamedTuple):
    """How it comes, and how long a listener waits."""

    protocol: Protocol
    contexts_per_socket: int
    buffer_delay_ms: int
    playback_buffer_ms: int
    timeout: float


def _target(url: str, key: str, sound: _Sound, wire: _Wire) -> Target:
    return Target(
        url=url,
        key=key,
        **sound._asdict(),
        protocol=wire.protocol,
        contexts_per_socket=wire.contexts_per_socket,
        buffer_delay_ms=wire.buffer_delay_ms,
        playback_buffer_seconds=wire.playback_buffer_ms / 1000,
        timeout_seconds=wire.timeout,
    )


def _load(
    concurrency: int | None,
    rate: float | None,
    arrivals: Arrivals | None,
    *,
    generations: int,
    seed: int,
    job: Path | None,
) -> Load:
    if concurrency is not None and rate is not None:
        raise SonicEksError("--concurrency and --rate: got both; give one, or neither to search")
    if rate is None:
        if arrivals not in (None, Arrivals.CLOSED):
            raise SonicEksError(f"--arrivals: got {arrivals} without --rate; give --rate too")
        return Load(generations=generations, concurrency=concurrency or 1, seed=seed)
    if arrivals is Arrivals.CLOSED:
        raise SonicEksError("--arrivals: got closed with --rate; allowed: poisson, constant")
    _check_length(rate, generations, _MOST_HOURS if job is None else _MOST_HOURS_OF_A_JOB)
    return Load(
        arrivals=arrivals or Arrivals.POISSON,
        generations=generations,
        rate=rate,
        seed=seed,
    )


def _check_length(rate: float, generations: int, most_hours: int) -> None:
    """Refuse an open loop that would go on for days: all of its moments are fixed before."""
    least = generations / (most_hours * 3600)
    if rate < least:
        raise SonicEksError(
            f"--rate: got {shown(rate)} with {generations} generations, which takes more"
            f" than {most_hours} h; allowed: {least * 1.005:.3g} or more, or fewer --generations"
        )


def _measure(plan: Plan) -> dict[str, Any]:
    from sonic_eks.bench.measure import measure
    from sonic_eks.bench.progress import RunProgress
    from sonic_eks.progress import TerminalLine

    with TerminalLine(sys.stderr, "asking the service") as line:
        return asyncio.run(measure(plan, RunProgress(line))).to_dict()


def _print_job(config: Path, outputs: Path | None, plan: Plan) -> None:
    # The notice of jsii about old releases of Node.js is not what this command is asked for.
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
    # What renders is Node.js, a process of its own, and no Job holds the key.
    os.environ.pop(inputs.KEY_VARIABLE, None)
    deployment = load_deployment(config)
    from sonic_eks.k8s.bench_job import render_bench_job

    manifests = render_bench_job(deployment.config, deployment.catalogue, plan)
    if outputs is not None:
        value_of = read_outputs(outputs, deployment.config.deployment.name)
        manifests = tuple(resolve(manifest, value_of) for manifest in manifests)
    print(to_yaml(manifests), end="")


@dataclass(frozen=True)
class _Outputs:
    """Where a result goes."""

    report: Path | None
    profile: Path | None
    gpu: str | None
    gpus: int | None
    release: str | None
    as_json: bool

    def check(self, model: str, *inputs_given: tuple[str, Path | None]) -> None:
        """Refuse what could not be written, before hours of measuring."""
        distinct({**dict(inputs_given), "--report": self.report, "--profile": self.profile})
        if self.profile is not None and self.gpu is None:
            raise SonicEksError("--profile: got no --gpu; name the GPU, such as --gpu L40S")
        if self.profile is not None and self.gpus is None:
            raise SonicEksError(
                "--profile: got no --gpus; say how many GPUs serve behind the address, such as"
                " --gpus 2"
            )
        if self.profile is None and {self.gpu, self.gpus, self.release} != {None}:
            raise SonicEksError(
                "--gpu, --gpus and --release: got no --profile; they are written there"
            )
        if self.profile is not None and self.gpu is not None and self.gpus is not None:
            from sonic_eks.bench.profile import check_names

            check_names(gpu=self.gpu, gpus=self.gpus, model=model, release=self.release)
        for option, path in (("--report", self.report), ("--profile", self.profile)):
            if path is not None:
                writable(option, path)

    def refuse_with_job(self) -> None:
        """Refuse outputs that a Job cannot write."""
        if self.report or self.profile or self.as_json:
            raise SonicEksError(
                "--job: got --report, --profile or --json too; the Job prints JSON, which"
                " `sonic-eks bench --read` makes into those"
            )

    def give_stored(self, path: Path) -> None:
        """Give what an earlier `bench --json` printed."""
        from sonic_eks.bench.stored import read_result

        result = read_result(path)
        if self.profile is not None:
            try:
                self._profile_of(result)
            except SonicEksError as fault:
                if fault.exit_status == BAD_INPUT:
                    raise  # it is no measurement that would be lost
        self.give(result)

    def give(self, result: dict[str, Any]) -> None:
        """Write and print a result; exit 1 when it has problems, whatever becomes of the output."""
        problems = result["problems"]
        try:
            # First, since whoever reads the output may have left.
            faults = self._write(result, special=False)
        finally:
            unprinted = _print(self._text(result))
            _tell(problems)
        # Last, since a pipe without a reader would wait for one.
        faults += [*self._write(result, special=True), *unprinted]
        _tell(str(fault) for fault in faults)
        if problems or faults:
            raise typer.Exit(max([PROBLEM_FOUND, *(fault.exit_status for fault in faults)]))

    def _text(self, result: dict[str, Any]) -> str:
        from sonic_eks.bench.table import HEADINGS, capacity_lines, failure_lines, row

        if self.as_json:
            return json.dumps(result, indent=2)
        rows = [HEADINGS, *map(row, result["runs"])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for cells in rows:
            padded = (c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))
            lines.append("  ".join((cells[0].ljust(widths[0]), *padded)))
        return "\n".join(
            [*lines, *map(one_line, (*failure_lines(result), *capacity_lines(result)))]
        )

    def _write(self, result: dict[str, Any], *, special: bool) -> list[SonicEksError]:
        """Write the files, or else what is none, and return what went wrong."""
        faults = []
        for option, path, content in (
            ("--report", self.report, _report_of),
            ("--profile", self.profile, self._profile_of),
        ):
            if path is not None and is_special(path) is special:
                try:
                    write(option, path, content(result))
                except SonicEksError as fault:
                    faults.append(fault)
        return faults

    def _profile_of(self, result: dict[str, Any]) -> str:
        from sonic_eks.bench.profile import from_result, to_yaml

        # `check` lets no profile pass without a GPU.
        gpu, gpus = self.gpu or "", self.gpus or 0
        return to_yaml(from_result(result, gpu=gpu, gpus=gpus, release=self.release))


def _report_of(result: dict[str, Any]) -> str:
    from sonic_eks.bench.report import html_report

    return html_report(result)


def _print(text: str) -> list[SonicEksError]:
    """Print a text and return what went wrong."""
    try:
        print(text, flush=True)
    except OSError as error:
        said = give_up(error)
        return [] if said is None else [SonicEksError(said, exit_status=PROBLEM_FOUND)]
    return []


def _tell(lines: Iterable[str]) -> None:
    with contextlib.suppress(OSError):  # the status tells it too
        for line in lines:
            print(one_line(line), file=sys.stderr)
