"""``make mutate``: would the tests notice if a part were missing?

Exit status 0 when at most 5 % of the mutants survive and docs/mutation.md explains each of them,
1 when not, 2 for a wrong argument.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["CDK_VALIDATION"] = "false"
os.environ["CDK_DISABLE_STACK_TRACE"] = "1"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from aws_cdk.assertions import Template

from sonic_eks.config import Configuration, load_configuration
from tests.configuration import VALID
from tests.mutation.injection import Injection
from tests.mutation.mutants import Mutant, mutants_of_chart, mutants_of_template
from tests.mutation.run import Outcome, run
from tests.synth import ROOT, charts_of, stacks_of

DOCUMENT = ROOT / "docs" / "mutation.md"
MOST_SURVIVORS = 0.05


def every_mutant(config: Configuration) -> tuple[dict[str, Any], list[Mutant]]:
    """Return the templates by stack, and all mutants of templates and manifests."""
    templates = {
        name: Template.from_stack(stack).to_json()
        for name, stack in vars(stacks_of(config)).items()
    }
    mutants = [m for name, body in templates.items() for m in mutants_of_template(name, body)]
    mutants += [m for chart in charts_of(config) for m in mutants_of_chart(chart)]
    return templates, mutants


def shard(index: int, of: int, only: str, out: Path) -> None:
    """Run every `of`-th mutant, beginning with the `index`-th, and write what became of them."""
    config = load_configuration(ROOT / "config" / "default.yaml")
    templates, mutants = every_mutant(config)
    mine = [m for m in mutants if re.search(only, m.name)][index::of]
    # The tests of manifests have the default deployment as a document of their own.
    configurations = {c.model_dump_json() for c in (config, Configuration.model_validate(VALID))}

    def progress(done: int) -> None:
        out.with_suffix(".progress").write_text(f"{done} {len(mine)}")

    outcome = run(Injection(templates, configurations), mine, progress)
    out.write_text(json.dumps(asdict(outcome)))


def together(jobs: int, only: str) -> Outcome:
    """Run the shards side by side and return what became of all mutants."""
    whole = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{index}.json" for index in range(jobs)]
        command = [sys.executable, "-m", "tests.mutation", f"--only={only}"]
        processes = []
        for i, file in enumerate(files):
            with file.with_suffix(".log").open("w") as log:
                own = [f"--shard={i}/{jobs}", f"--out={file}"]
                processes.append(
                    subprocess.Popen([*command, *own], cwd=ROOT, stdout=log, stderr=log)
                )
        while any(process.poll() is None for process in processes):
            time.sleep(1)
            if sys.stderr.isatty():
                print(f"\r{_done(files)} mutants", end="", file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        for file, process in zip(files, processes, strict=True):
            if process.returncode:
                tail = file.with_suffix(".log").read_text().splitlines()[-20:]
                sys.exit("\n".join(["the tests could not be run:", *tail]))
        for file in files:
            part = json.loads(file.read_text())
            whole.killed |= part["killed"]
            whole.survived += part["survived"]
            whole.broken = sorted({*whole.broken, *part["broken"]})
            whole.tests = part["tests"]
    return whole


def _done(files: list[Path]) -> str:
    counts = []
    for file in files:
        progress = file.with_suffix(".progress")
        counts.append(progress.read_text().split() if progress.exists() else ["0", "?"])
    done = sum(int(count[0]) for count in counts)
    every = [count[1] for count in counts]
    return f"{done} of {'?' if '?' in every else sum(map(int, every))}"


def report(outcome: Outcome, seconds: float) -> int:
    """Print count and survivors by kind; return the exit status."""
    count = len(outcome.killed) + len(outcome.survived)
    explained = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    print(f"{count} mutants, {outcome.tests} tests, {seconds / 60:.1f} minutes")
    kinds = Counter(name.split(":")[0] for name in [*outcome.killed, *outcome.survived])
    lived = Counter(name.split(":")[0] for name in outcome.survived)
    for kind, number in sorted(kinds.items()):
        print(f"  {kind:<11}{number:>5}  survived {lived[kind]}")
    for name in sorted(outcome.survived):
        print(f"survived {name}{'' if f'`{name}`' in explained else '  (not explained)'}")
    for test in outcome.broken:
        print(f"fails without a mutant: {test}")
    new = [name for name in outcome.survived if f"`{name}`" not in explained]
    share = len(outcome.survived) / count if count else 0.0
    print(f"{share:.1%} survived (at most {MOST_SURVIVORS:.0%}), {len(new)} not explained")
    return int(share > MOST_SURVIVORS or bool(new) or bool(outcome.broken) or not count)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", default="", help="regular expression that a mutant's name has")
    parser.add_argument("--json", type=Path, help="write the result here, too")
    parser.add_argument("--shard", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.shard:
        index, of = map(int, arguments.shard.split("/"))
        shard(index, of, arguments.only, arguments.out)
        return 0
    started = time.monotonic()
    outcome = together(arguments.jobs, arguments.only)
    if arguments.json:
        arguments.json.write_text(json.dumps(asdict(outcome), indent=1))
    return report(outcome, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
