"""Time the mirror against `skopeo copy --all`, count the requests of a second run, watch memory.

Twelve images of one shared and one own layer each go between two registries on this machine, in
turns by the mirror and by skopeo, into an empty registry each time. Figures of two machines or two
runs say nothing about each other; the ratio of the medians of one run does.

Exit status: 0 within the limits, 1 over one, 2 when something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sonic_eks.mirror.artifact import Artifact, write_list
from sonic_eks.upstream import Kind
from tests.e2e.fault_proxy import proxy
from tests.e2e.registries import RegistryProcess, noise, push_image, registry

IMAGES = 12
SHARED_BYTES = 20_000_000
OWN_BYTES = 15_000_000

RATIO_LIMIT = 1.0
REQUESTS_LIMIT = IMAGES  # one an artifact and platform; each has one platform
MEMORY_SIZES = (1_000_000, 100_000_000)
MEMORY_LIMIT_KIB = 12_000
"""Growth of the peak over a layer a hundred times as large: noise, not a buffered layer."""

_PEAK = (
    "import sys; from sonic_eks.mirror.__main__ import main; status = main(sys.argv[1:]);"
    " lines = open('/proc/self/status').read().splitlines();"
    " print(status, next(x.split()[1] for x in lines if x.startswith('VmHWM')))"
)


class BenchmarkError(Exception):
    """A copy failed, so there is nothing to compare."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was measured."""

    mirror_seconds: list[float]
    skopeo_seconds: list[float]
    requests: int
    peak_kib: dict[int, int]

    @property
    def ratio(self) -> float:
        """Median of the mirror's runs over the median of skopeo's."""
        return statistics.median(self.mirror_seconds) / statistics.median(self.skopeo_seconds)

    @property
    def growth_kib(self) -> int:
        """Peak memory with the large layer over that with the small one."""
        return self.peak_kib[max(self.peak_kib)] - self.peak_kib[min(self.peak_kib)]

    @property
    def passed(self) -> bool:
        """Whether all is within the limits."""
        return (
            self.ratio <= RATIO_LIMIT
            and self.requests <= REQUESTS_LIMIT
            and self.growth_kib <= MEMORY_LIMIT_KIB
        )

    def to_dict(self) -> dict[str, object]:
        """Return what ``--json`` prints."""
        return {
            "passed": self.passed,
            "ratio": round(self.ratio, 3),
            "ratioLimit": RATIO_LIMIT,
            "mirrorSeconds": [round(seconds, 3) for seconds in self.mirror_seconds],
            "skopeoSeconds": [round(seconds, 3) for seconds in self.skopeo_seconds],
            "requestsOfSecondRun": self.requests,
            "requestsLimit": REQUESTS_LIMIT,
            "peakKibByLayerBytes": self.peak_kib,
            "growthKib": self.growth_kib,
            "growthLimitKib": MEMORY_LIMIT_KIB,
        }


def push_images(source: RegistryProcess) -> list[Artifact]:
    """Fill the source; return the list that copies it."""
    shared = noise(SHARED_BYTES, 0)
    artifacts = []
    for index in range(1, IMAGES + 1):
        name = f"image-{index:02}"
        image = push_image(source, f"up/{name}", "1.0", [shared, noise(OWN_BYTES, index)])
        artifacts.append(artifact(source.host, name, digest=image.digest))
    return artifacts


def artifact(host: str, name: str, *, digest: str | None = None) -> Artifact:
    """Return the artifact of an image in the source."""
    return Artifact(
        name=name,
        kind=Kind.IMAGE,
        source=f"{host}/up/{name}",
        tag="1.0",
        component="benchmark",
        repository=f"down/{name}",
        digest=digest,
        source_digest=digest,
    )


def run(*command: str) -> str:
    """Run a command; return its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise BenchmarkError(f"{Path(command[0]).name} failed: {reason[-1]}")
    return done.stdout


def run_mirror(work: Path, host: str) -> None:
    """Copy the list by the mirror."""
    run(sys.executable, "-m", "sonic_eks.mirror", str(work), "--registry", host)


def run_skopeo(artifacts: list[Artifact], host: str) -> None:
    """Copy the list by skopeo, one command an image as its users do."""
    for one in artifacts:
        run(
            *("skopeo", "--insecure-policy", "copy", "--all", "--preserve-digests", "--quiet"),
            *("--src-tls-verify=false", "--dest-tls-verify=false"),
            f"docker://{one.source}:{one.tag}",
            f"docker://{host}/{one.repository}:{one.tag}",
        )


@contextmanager
def empty_registry(folder: Path) -> Iterator[RegistryProcess]:
    """Run a registry that holds nothing yet; remove what it held."""
    with registry(folder) as running:
        yield running
    shutil.rmtree(folder)


def timed(folder: Path, copy: Callable[[str], None], artifacts: list[Artifact]) -> float:
    """Return the seconds of a copy into an empty registry; check that it arrived."""
    with empty_registry(folder) as target:
        start = time.perf_counter()
        copy(target.host)
        seconds = time.perf_counter() - start
        for one in artifacts:
            if target.digest(one.repository, one.tag) != one.digest:
                raise BenchmarkError(f"{one.name} did not arrive as it was")
    return seconds


def second_run_requests(folder: Path, work: Path) -> int:
    """Return the number of requests of a run with everything present."""
    with empty_registry(folder) as target, proxy(target.host) as counted:
        run_mirror(work, target.host)
        run_mirror(work, counted.host)
        return len(counted.requests)


def peak_kib(folder: Path, source: RegistryProcess, size: int) -> int:
    """Return the peak memory of a process that copies one layer of `size` bytes."""
    name = f"layer-{size}"
    push_image(source, f"up/{name}", "1.0", [noise(size, 99)])
    work = folder / f"{name}.json"
    work.write_text(write_list([artifact(source.host, name)]))
    with empty_registry(folder / name) as target:
        output = run(sys.executable, "-c", _PEAK, str(work), "--registry", target.host)
    return int(output.split()[-1])


def measure(folder: Path, repeats: int) -> Result:
    """Measure everything in one run."""
    with registry(folder / "source") as source:
        artifacts = push_images(source)
        work = folder / "list.json"
        work.write_text(write_list(artifacts))
        mirror, skopeo = [], []
        for _ in range(repeats):
            mirror.append(timed(folder / "target", lambda host: run_mirror(work, host), artifacts))
            skopeo.append(
                timed(folder / "target", lambda host: run_skopeo(artifacts, host), artifacts)
            )
        return Result(
            mirror_seconds=mirror,
            skopeo_seconds=skopeo,
            requests=second_run_requests(folder / "target", work),
            peak_kib={size: peak_kib(folder, source, size) for size in MEMORY_SIZES},
        )


def table(result: Result) -> Table:
    """Return the figures for people."""
    shown = Table(title=f"{IMAGES} images, {IMAGES + 1} layers")
    for column in ("figure", "measured", "limit"):
        shown.add_column(column)
    shown.add_row("time over that of skopeo copy --all", f"{result.ratio:.2f}", f"{RATIO_LIMIT}")
    shown.add_row("requests of a second run", str(result.requests), str(REQUESTS_LIMIT))
    for size, peak in result.peak_kib.items():
        shown.add_row(f"peak memory, layer of {size // 1_000_000} MB", f"{peak // 1024} MiB", "")
    shown.add_row("growth", f"{result.growth_kib} KiB", f"{MEMORY_LIMIT_KIB} KiB")
    return shown


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="copies by each (5)")
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read")
    options = parser.parse_args()
    for program in ("docker-registry", "skopeo"):
        if shutil.which(program) is None:
            print(f"mirror: {program} is not installed (Debian: {program})", file=sys.stderr)
            return 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = measure(Path(folder), max(options.repeats, 1))
    except (BenchmarkError, AssertionError, OSError) as error:
        print(f"mirror: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        Console().print(table(result))
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
