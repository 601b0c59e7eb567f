"""`sonic-eks mirror` from end to end: every command, all artifacts, registries on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sonic_eks import catalogue
from sonic_eks.cli import main as cli
from sonic_eks.mirror.artifact import Artifact, write_list
from sonic_eks.upstream import Kind, Upstream
from tests.e2e.fault_proxy import Proxy
from tests.e2e.helm import Helm, files_served, helm_program, write_chart
from tests.e2e.registries import RegistryProcess, noise, push_image, push_index

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]

VENDOR = ("sonic-api", "sonic-license-proxy", "sonic-worker-sonic-3")

CONFIG = """\
deployment:
  name: {name}
  region: us-east-1
network:
  zones: [us-east-1a, us-east-1b]
registry:
  vendorRegistry: {vendor}
  sonicRelease: sonic-20260101
models:
  - name: sonic-3
    image: worker
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the entry point as the console script does: status, standard output, standard error."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sonic-eks", "mirror", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def chart_repository(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[str]:
    cache = pytestconfig.cache
    assert cache is not None
    helm = Helm(helm_program(Path(cache.mkdir("helm"))), tmp_path / "home")
    helm("package", write_chart(tmp_path / "source"), "-d", tmp_path / "packages")
    helm("repo", "index", tmp_path / "packages")
    with files_served(tmp_path / "packages") as address:
        yield address


@pytest.fixture
def config(
    upstream: RegistryProcess,
    chart_repository: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A configuration whose every upstream is on loopback: an index, a chart, vendor images."""
    push_index(
        upstream, f"{place}/nats", "2.0", {"amd64": [noise(5000, 1)], "arm64": [noise(50, 2)]}
    )
    for index, image in enumerate(("cartesia-api", "cartesia-license-proxy", "worker")):
        push_image(upstream, f"{place}/vendor/{image}", "sonic-20260101", [noise(9000, index)])
    source = f"{upstream.host}/{place}/nats"
    upstreams = (
        Upstream("nats", Kind.IMAGE, source, "2.0", "sonic"),
        Upstream("greeter", Kind.CHART, chart_repository, "1.2.3", "tests"),
    )
    monkeypatch.setattr(catalogue, "UPSTREAMS", upstreams)
    # No credentials of the machine, and no way to AWS either.
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    path = tmp_path / "voice.yaml"
    path.write_text(CONFIG.format(name=place, vendor=f"{upstream.host}/{place}/vendor"))
    return path


def test_lock_plan_run_verify(run: Run, config: Path, private: RegistryProcess, place: str) -> None:
    status, out, err = run("lock", config, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["changed"] is True
    lock = json.loads((config.parent / "voice.lock.json").read_text())
    assert set(lock["artifacts"]) == {
        *(f"image/{name}" for name in ("nats", *VENDOR)),
        "chart/greeter",
    }

    status, out, err = run("plan", config, "--registry", private.host, "--json")
    steps = json.loads(out)["artifacts"]
    assert (status, {step["state"] for step in steps}) == (0, {"missing"})
    size = sum(step["missingBytes"] for step in steps)
    assert size == sum(entry["sizeBytes"] for entry in lock["artifacts"].values())

    status, out, err = run("run", config, "--registry", private.host, "--json")
    assert (status, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["artifacts"]}
    assert {row["status"] for row in rows.values()} == {"copied"}
    for key, entry in lock["artifacts"].items():
        row = rows[key.partition("/")[2]]
        assert private.digest(row["repository"], row["tag"]) == entry["digest"] == row["digest"]

    status, out, err = run("verify", config, "--registry", private.host)
    assert (status, err) == (0, "")
    assert out.count("right ") == 5

    status, out, err = run("plan", config, "--registry", private.host)
    assert (status, out.splitlines()[-1]) == (0, "to send: 0 B")


def test_lock_again_changes_nothing_and_says_what_moved(
    run: Run, config: Path, upstream: RegistryProcess, place: str
) -> None:
    assert run("lock", config)[0] == 0
    path = config.parent / "voice.lock.json"
    before = path.read_bytes()
    assert run("lock", config)[1].endswith(f"{path}: unchanged\n")
    assert path.read_bytes() == before
    old = json.loads(before)["artifacts"]["image/nats"]["digest"]

    moved = push_image(upstream, f"{place}/nats", "2.0", [b"moved"])
    status, out, _ = run("lock", config, "--only", "nats")

    assert status == 0
    assert f"image/nats 2.0 {moved.digest} (was {old})" in out


def test_run_copies_what_was_locked_though_the_tag_moved(
    run: Run, config: Path, upstream: RegistryProcess, private: RegistryProcess, place: str
) -> None:
    assert run("lock", config)[0] == 0
    lock = json.loads((config.parent / "voice.lock.json").read_text())
    push_image(upstream, f"{place}/nats", "2.0", [b"moved"])

    assert run("run", config, "--registry", private.host)[0] == 0

    expected = lock["artifacts"]["image/nats"]["digest"]
    assert private.digest(f"{place}/images/nats", "2.0") == expected


def test_references_are_exact_with_a_lock(run: Run, config: Path) -> None:
    from sonic_eks.config import load_configuration
    from sonic_eks.mirror.lock import lock_path, read_lock

    assert run("lock", config)[0] == 0
    lock = read_lock(lock_path(config))
    assert lock is not None
    images = catalogue.Catalogue(load_configuration(config), lock)

    assert images.image("nats").endswith(f"/images/nats:2.0@{lock['image/nats'].digest}")
    assert images.digest(Kind.IMAGE, "nats") == lock["image/nats"].digest
    assert images.tag(Kind.CHART, "greeter") == "1.2.3"


def test_verify_lists_images_in_use_that_the_registry_lacks(
    run: Run, config: Path, private: RegistryProcess, tmp_path: Path, place: str
) -> None:
    assert run("run", config, "--registry", private.host)[0] == 0
    manifests = tmp_path / "pods.yaml"
    known = f"{private.host}/{place}/images/nats:2.0"
    unknown = known.replace("2.0", "3.0")
    pods = {"items": [{"spec": {"initContainers": [{"image": "busybox:1"}]}}]}
    deployment = {"spec": {"template": {"spec": {"containers": [{"image": unknown}]}}}}
    documents = [pods, deployment, {"spec": {"containers": [{"name": "a", "image": known}]}}]
    manifests.write_text("\n---\n".join(map(json.dumps, documents)))

    status, out, err = run(
        "verify", config, "--registry", private.host, "--manifests", manifests, "--json"
    )

    assert status == 1
    assert json.loads(out)["missing"] == sorted(["busybox:1", unknown])
    assert err.splitlines() == [
        f"image in use but not in the registry's list: {reference}"
        for reference in json.loads(out)["missing"]
    ]


def test_problem_is_one_line_and_status_1(
    run: Run, config: Path, upstream: RegistryProcess, private: RegistryProcess, place: str
) -> None:
    push_image(private, f"{place}/images/nats", "2.0", [b"something else"])

    status, out, err = run("run", config, "--registry", private.host)

    assert status == 1
    assert out.count("copied") == 4
    (line,) = err.splitlines()
    assert line.startswith("image/nats: tag 2.0 holds sha256:")


def test_missing_aws_credentials_are_one_line_and_status_1(run: Run, config: Path) -> None:
    status, out, err = run("plan", config)

    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("account of the credentials: no valid AWS credentials")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["plan", "CONFIG", "--only", "natts"],
            "got 'natts'; allowed: names of artifacts: greeter",
        ),
        (["plan", "CONFIG", "--only", "natts"], "nearest: nats"),
        (["run", "CONFIG", "--registry", "Not/A/Host"], "malformed registry host 'Not/A/Host'"),
        (["run", "CONFIG", "--registry", "example.com"], "registry 'example.com': not Amazon ECR"),
        (["run", "CONFIG", "--parallel", "0"], "--parallel"),
        (["verify", "CONFIG", "--manifests", "no/such.yaml"], "no/such.yaml: cannot be read"),
        (["lock", "no/such.yaml"], "no/such.yaml"),
        (["lock", "CONFIG", "--only", "nats"], "has no chart/greeter"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    run: Run, config: Path, arguments: list[str], said: str
) -> None:
    status, out, err = run(*(str(config) if a == "CONFIG" else a for a in arguments))

    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "{", "no JSON"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "version 2; allowed: 1"),
        (lambda text: text.replace("sha256:", "md5:"), "is no SHA-256 digest"),
        (lambda text: text.replace('"sizeBytes"', '"bytes"'), "needs source, tag, platforms"),
        (lambda text: text.replace('"tag": "2.0"', '"tag": "1.9"'), "run sonic-eks mirror lock"),
        (lambda text: text.replace("image/nats", "image/gnats"), "has no image/nats"),
    ],
)
def test_lock_that_does_not_fit_is_one_line_and_status_2(
    run: Run,
    config: Path,
    private: RegistryProcess,
    change: Callable[[str], str],
    said: str,
) -> None:
    assert run("lock", config)[0] == 0
    path = config.parent / "voice.lock.json"
    path.write_text(change(path.read_text()))

    status, out, err = run("plan", config, "--registry", private.host)

    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err


def test_progress_is_drawn_on_a_terminal_and_not_in_a_pipe(
    run: Run,
    config: Path,
    private: RegistryProcess,
    private_proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _terminal() as (stream, drawn):
        monkeypatch.setattr(sys, "stderr", stream)
        status, _, _ = run("run", config, "--registry", private.host)
        text = drawn()
    assert status == 0
    assert "copying" in text
    assert "kB" in text or "KiB" in text


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[object, Callable[[], str]]]:
    ours, theirs = pty.openpty()
    stream = os.fdopen(theirs, "w")

    def drawn() -> str:
        stream.flush()
        return os.read(ours, 65536).decode("utf-8", "replace")

    try:
        yield stream, drawn
    finally:
        stream.close()
        os.close(ours)


def test_module_runs_without_the_rest_of_the_project(
    upstream: RegistryProcess, private: RegistryProcess, place: str, tmp_path: Path
) -> None:
    """The build of a deployment has the mirror's files and its three libraries, nothing else."""
    image = push_image(upstream, f"{place}/image", "1.0", [b"layer"])
    source = f"{upstream.host}/{place}/image"
    artifact = Artifact("image", Kind.IMAGE, source, "1.0", "tests", f"{place}/copy")
    (tmp_path / "list.json").write_text(write_list([artifact]))
    script = (
        "import sys\n"
        "for name in ('aws_cdk', 'pydantic', 'typer', 'rich', 'cdk8s', 'constructs'):\n"
        "    sys.modules[name] = None\n"
        "from sonic_eks.mirror.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "list.json", "--registry", private.host],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert private.digest(f"{place}/copy", "1.0") == image.digest
