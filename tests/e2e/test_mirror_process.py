"""The mirror as a process: killed, interrupted, and the memory that it takes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sonic_eks.mirror.artifact import write_list
from tests.e2e.artifacts import MakeArtifact
from tests.e2e.fault_proxy import Fault, Proxy, once
from tests.e2e.registries import (
    RegistryProcess,
    digest_of,
    noise,
    push_image,
)

pytestmark = pytest.mark.slow


LARGE = noise(3_000_000, 1)
BLOB = f"/blobs/{digest_of(LARGE)}"


def test_killed_run_leaves_no_tag_and_the_next_one_goes_on(
    upstream: RegistryProcess,
    private: RegistryProcess,
    private_proxy: Proxy,
    place: str,
    artifact_of: MakeArtifact,
    tmp_path: Path,
) -> None:
    layers = [noise(2_000_000, seed) for seed in range(4)]
    image = push_image(upstream, f"{place}/image", "1.0", layers)
    artifact = artifact_of(upstream.host)
    work = tmp_path / "list.json"
    work.write_text(write_list([artifact]))
    module = [sys.executable, "-m", "sonic_eks.mirror"]
    command = [*module, str(work), "--registry", private_proxy.host, "--parallel", "1"]
    # The third layer's upload hangs: the process is killed in the middle of it.
    uploads = 0

    def hang(method: str, path: str) -> Fault | None:
        nonlocal uploads
        if method == "PUT" and "digest=" in path:
            uploads += 1
            if uploads == 4:  # after the configuration and two layers
                return Fault("stall", seconds=60)
        return None

    private_proxy.rule = hang
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while uploads < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert uploads == 4
    assert private.tags(artifact.repository) == []
    before = private_proxy.received_bytes
    private_proxy.rule = None

    second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout.startswith(f"copied   image/image 1.0 {image.digest}")
    assert private.digest(artifact.repository, "1.0") == image.digest
    # Two of the four layers were there already.
    assert 4_000_000 <= private_proxy.received_bytes - before < 4_010_000


def test_memory_does_not_grow_with_the_layer(
    upstream: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    tmp_path: Path,
) -> None:
    def peak_kib(name: str, size: int) -> int:
        push_image(upstream, f"{place}/{name}", "1.0", [noise(size, 1)])
        work = tmp_path / f"{name}.json"
        work.write_text(write_list([artifact_of(upstream.host, name)]))
        # Of getrusage a part is the parent's: it is kept over exec.
        script = (
            "import sys; from sonic_eks.mirror.__main__ import main;"
            " status = main(sys.argv[1:]); lines = open('/proc/self/status').read().split('\\n');"
            " print(status, next(x.split()[1] for x in lines if x.startswith('VmHWM')))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(work), "--registry", private.host],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        status, peak = done.stdout.split()[-2:]
        assert status == "0"
        return int(peak)

    small, large = peak_kib("small", 1_000_000), peak_kib("large", 100_000_000)

    # 100 times the layer; half of it in memory at once would already be 49,000 KiB more.
    assert large - small < 12_000


def test_interrupted_run_ends_soon_with_one_line(
    upstream: RegistryProcess,
    upstream_proxy: Proxy,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    tmp_path: Path,
) -> None:
    push_image(upstream, f"{place}/image", "1.0", [LARGE])
    artifact = artifact_of(upstream_proxy.host)
    (tmp_path / "list.json").write_text(write_list([artifact]))
    # The download breaks off over and over, so that the run is alive when the signal comes.
    upstream_proxy.rule = once(BLOB, Fault("truncate", after=1000), times=1000)
    process = subprocess.Popen(
        [sys.executable, "-m", "sonic_eks.mirror", "list.json", "--registry", private.host],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not upstream_proxy.count("GET", BLOB) and time.monotonic() < deadline:
        time.sleep(0.02)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert (process.returncode, err) == (130, "sonic-eks: interrupted; run it again to go on\n")
    assert private.tags(artifact.repository) == []
