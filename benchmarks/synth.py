"""Time a synth of a deployment against a synth of an empty CDK app.

Both sides run through the same CDK command line interface, Node.js, Python environment and feature
flags, with cdk-nag and CDK's own template validation on. They take turns, so that a busy machine
slows both alike, and the ratio of the medians is compared with a limit.

Exit status: 0 within the limit, 1 over it, 2 when a synth could not be timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
CDK = ROOT / "node_modules" / ".bin" / "cdk"
LIMIT = 2.5
TIMINGS_VARIABLE = "SONIC_EKS_TIMINGS"

PHASES = {
    "import": "import of the libraries",
    "construct": "constructs of the stacks",
    "cdk8s": "rendering of the manifests",
    "synthesis": "synthesis and validation",
}
"""Keys that the app writes to the timings file, with what they stand for."""

REMAINDER = "cli"
"""Key of the rest of the wall-clock time: the CLI and the start of the processes."""

LABELS = {**PHASES, REMAINDER: "CLI and start of the processes"}

# Validation refuses a template without resources, unless that is acknowledged.
EMPTY_APP = """\
import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

app = cdk.App()
stack = cdk.Stack(app, "Empty")
cdk.Validations.of(stack).acknowledge(
    cdk.Acknowledgment(id="CloudFormation-Validate::F0001", reason="empty on purpose")
)
cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
"""


class BenchmarkError(Exception):
    """A synth failed or left no timings, so there is nothing to compare."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Wall-clock seconds of every counted run, and the phases of the deployment's."""

    deployment: list[float]
    empty: list[float]
    phases: dict[str, list[float]]
    limit: float

    @property
    def ratio(self) -> float:
        """Median of the deployment's runs over the median of the empty app's."""
        return statistics.median(self.deployment) / statistics.median(self.empty)

    @property
    def passed(self) -> bool:
        """Whether the ratio is within the limit."""
        return self.ratio <= self.limit

    def to_dict(self) -> dict[str, object]:
        """Return what ``--json`` prints."""
        return {
            "ratio": round(self.ratio, 3),
            "limit": self.limit,
            "passed": self.passed,
            "medianSeconds": {
                "deployment": round(statistics.median(self.deployment), 3),
                "empty": round(statistics.median(self.empty), 3),
            },
            "runsSeconds": {
                "deployment": [round(seconds, 3) for seconds in self.deployment],
                "empty": [round(seconds, 3) for seconds in self.empty],
            },
            "phaseMedianSeconds": {
                phase: round(statistics.median(seconds), 3)
                for phase, seconds in self.phases.items()
            },
        }


def write_empty_app(folder: Path) -> None:
    """Write an app of one empty stack with this project's feature flags.

    Parameters
    ----------
    folder
        Where ``app.py`` and ``cdk.json`` go.
    """
    settings = json.loads((ROOT / "cdk.json").read_text())
    # By name: the environment of `run_synth` finds the interpreter that runs this benchmark.
    settings["app"] = "python app.py"
    (folder / "cdk.json").write_text(json.dumps(settings))
    (folder / "app.py").write_text(EMPTY_APP)


def run_synth(folder: Path, out: Path, *arguments: str, timings: Path | None = None) -> float:
    """Run ``cdk synth`` once.

    Parameters
    ----------
    folder
        The app's folder, which holds its ``cdk.json``.
    out
        Folder of the templates.
    arguments
        Further arguments of the command.
    timings
        File to which the app is asked to write the seconds of its phases.

    Returns
    -------
    float
        Wall-clock seconds.
    """
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), environment.get("PATH", "")]
    )
    # Left over from somewhere, either would make one side cheaper than a real synth.
    environment.pop("CDK_VALIDATION", None)
    environment.pop(TIMINGS_VARIABLE, None)
    if timings is not None:
        environment[TIMINGS_VARIABLE] = str(timings)
    command = [str(CDK), "synth", "--quiet", "-o", str(out), *arguments]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BenchmarkError(
            f"cannot run {CDK.name}: {error.strerror}; run `make setup`"
        ) from error
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise BenchmarkError(f"cdk synth failed in {folder}: {reason_of(done.stderr)}")
    return seconds


def reason_of(stderr: str) -> str:
    """Return the line of a failed synth that says why.

    Parameters
    ----------
    stderr
        What the command wrote to its standard error.

    Returns
    -------
    str
        The first validation error, else the last line that is not the CLI's own closing remark.
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    findings = [line for line in lines if line.startswith("ERROR ")]
    if findings:
        return findings[0]
    own = [line for line in lines if "exited with error" not in line]
    return (own or lines or ["no output"])[-1]


def read_timings(path: Path) -> dict[str, float]:
    """Read the seconds that the app spent in each phase.

    Parameters
    ----------
    path
        JSON object that maps the keys of `PHASES` to seconds.

    Returns
    -------
    dict
        Seconds by phase, in the order of `PHASES`.
    """
    try:
        timings = json.loads(path.read_text())
        return {phase: float(timings[phase]) for phase in PHASES}
    except FileNotFoundError:
        raise BenchmarkError(f"app.py wrote no timings to ${TIMINGS_VARIABLE}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise BenchmarkError(
            f"the timings of app.py are not an object of seconds with {', '.join(PHASES)}: {error}"
        ) from None


def measure(
    config: Path, repeats: int, limit: float, advance: Callable[[str], None] = lambda _: None
) -> Result:
    """Time both apps in turns.

    Parameters
    ----------
    config
        Configuration of the deployment.
    repeats
        Counted runs of each app; one more of each warms the caches and is thrown away.
    limit
        Highest ratio that passes.
    advance
        Called with a description before each run.

    Returns
    -------
    Result
        The counted runs.
    """
    deployment: list[float] = []
    empty: list[float] = []
    phases: dict[str, list[float]] = {phase: [] for phase in LABELS}
    with tempfile.TemporaryDirectory(prefix="sonic-eks-bench-") as name:
        work = Path(name)
        empty_app = work / "empty"
        empty_app.mkdir()
        write_empty_app(empty_app)
        timings_file = work / "timings.json"
        for number in range(repeats + 1):
            label = f"run {number} of {repeats}" if number else "warm-up"
            advance(f"{label}: empty app")
            empty.append(run_synth(empty_app, work / "empty.out"))
            advance(f"{label}: {config.name}")
            timings_file.unlink(missing_ok=True)
            seconds = run_synth(
                ROOT, work / "deployment.out", "-c", f"config={config}", timings=timings_file
            )
            deployment.append(seconds)
            timings = read_timings(timings_file)
            timings[REMAINDER] = seconds - sum(timings.values())
            for phase, spent in timings.items():
                phases[phase].append(spent)
    return Result(
        deployment=deployment[1:],
        empty=empty[1:],
        phases={phase: seconds[1:] for phase, seconds in phases.items()},
        limit=limit,
    )


def measure_with_progress(config: Path, repeats: int, limit: float) -> Result:
    """Time both apps behind a progress bar, which only a terminal shows.

    Parameters
    ----------
    config, repeats, limit
        As for `measure`.

    Returns
    -------
    Result
        The counted runs.
    """
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        task = progress.add_task("", total=2 * (repeats + 1), completed=-1)
        return measure(
            config,
            repeats,
            limit,
            lambda description: progress.update(task, advance=1, description=description),
        )


def print_tables(result: Result, config: Path) -> None:
    """Print the medians, the ratio and where the deployment's time goes.

    Parameters
    ----------
    result
        What was measured.
    config
        Configuration of the deployment.
    """
    console = Console()
    runs = Table("synth", title=f"cdk synth, median of {len(result.empty)}", title_justify="left")
    for heading in ("median", "fastest", "slowest"):
        runs.add_column(f"{heading} s", justify="right")
    for label, seconds in (("empty app", result.empty), (config.name, result.deployment)):
        figures = (statistics.median(seconds), min(seconds), max(seconds))
        runs.add_row(label, *(f"{figure:.2f}" for figure in figures))
    console.print(runs)

    split = Table("phase", title=f"where {config.name} spends it", title_justify="left")
    split.add_column("median s", justify="right")
    split.add_column("share", justify="right")
    total = statistics.median(result.deployment)
    for phase, seconds in result.phases.items():
        median = statistics.median(seconds)
        split.add_row(LABELS[phase], f"{median:.2f}", f"{median / total:.0%}")
    console.print(split)

    verdict = "within" if result.passed else "over"
    console.print(f"ratio {result.ratio:.2f}, {verdict} the limit of {result.limit:.2f}")


def positive(text: str) -> int:
    """Parse a number of runs.

    Parameters
    ----------
    text
        Argument from the command line.

    Returns
    -------
    int
        The number, at least 1.
    """
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def parse_arguments() -> argparse.Namespace:
    """Read the command line.

    Returns
    -------
    argparse.Namespace
        ``config``, ``repeats``, ``limit`` and ``json``.
    """
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="benchmarks/synth.py", description=summary)
    parser.add_argument("--config", type=Path, default=ROOT / "config" / "default.yaml")
    parser.add_argument("--repeats", type=positive, default=5, help="counted runs of each app (5)")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"highest ratio ({LIMIT})")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    if not arguments.config.is_file():
        parser.error(f"no such configuration: {arguments.config}")
    return arguments


def main() -> int:
    """Run the benchmark and return its exit status."""
    arguments = parse_arguments()
    try:
        result = measure_with_progress(
            arguments.config.resolve(), arguments.repeats, arguments.limit
        )
    except BenchmarkError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print_tables(result, arguments.config)
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
