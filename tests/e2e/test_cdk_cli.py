"""The real CDK CLI over the whole app, with CDK's validation and cdk-nag switched on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sonic_eks.k8s.render import RenderedChart
from sonic_eks.manifests import to_yaml
from sonic_eks.names import STACKS
from tests.synth import ROOT

pytestmark = pytest.mark.slow

CDK = ROOT / "node_modules" / ".bin" / "cdk"


def synth(
    out: Path, config: str, *, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `cdk synth` as a user without AWS credentials and without a network does."""
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    unreachable = "http://127.0.0.1:9"
    clean = {
        "PATH": path,
        "HOME": str(out.parent),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
        # jsii unpacks its libraries once a home; the cache saves seconds of this test.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "HTTPS_PROXY": unreachable,
        "HTTP_PROXY": unreachable,
        **environment,
    }
    return subprocess.run(
        [str(CDK), "synth", "--quiet", "-c", f"config={config}", "-o", str(out)],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A synthesis of config/default.yaml: its folder and what it said."""
    out = tmp_path_factory.mktemp("first") / "cdk.out"
    ended = synth(out, "config/default.yaml", PYTHONHASHSEED="1")
    assert ended.returncode == 0, ended.stderr[-4000:]
    return out, ended.stdout + ended.stderr


def assert_nothing_is_left_unexplained(out: Path, said: str) -> None:
    report = json.loads((out / "validation-report.json").read_text())
    failed = [
        f"{violation['ruleName']}: {violation.get('description', '')}"
        for plugin in report["pluginReports"]
        for violation in plugin.get("violations", [])
    ]
    assert failed == []
    assert "WARNING" not in said
    assert "ERROR" not in said


def test_no_finding_is_left_unexplained(first: tuple[Path, str]) -> None:
    assert_nothing_is_left_unexplained(*first)


@pytest.mark.parametrize("name", ["isolated", "existing-vpc", "production"])
def test_every_configuration_synthesizes(tmp_path: Path, name: str) -> None:
    out = tmp_path / "cdk.out"
    ended = synth(out, f"config/{name}.yaml")
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert_nothing_is_left_unexplained(out, ended.stdout + ended.stderr)
    assert len(list(out.glob("*.template.json"))) == len(STACKS)


def test_manifests_on_disk_are_those_that_are_applied(
    first: tuple[Path, str], default_charts: tuple[RenderedChart, ...]
) -> None:
    out, _ = first
    files = sorted((out / "k8s").iterdir())
    assert [path.read_text() for path in files] == [to_yaml(c.manifests) for c in default_charts]


def copy_of_the_project(folder: Path) -> Path:
    """Return a copy of what a synthesis reads, with the installed tools linked in."""
    folder.mkdir()
    for name in (
        "app.py",
        "cdk.json",
        "config",
        "sonic_eks",
        "stacks",
        "constructs",
        "k8s",
        "sidecar",
        "profiles",
    ):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)
        else:
            shutil.copy(source, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def test_templates_do_not_depend_on_folder_umask_or_hash_seed(
    first: tuple[Path, str], tmp_path: Path
) -> None:
    out, _ = first
    elsewhere = copy_of_the_project(tmp_path / "a folder with spaces")
    (elsewhere / "k8s" / "__pycache__").mkdir(exist_ok=True)
    (elsewhere / "k8s" / "__pycache__" / "stray.pyc").write_bytes(b"stray")
    again = tmp_path / "cdk.out"
    before = os.umask(0o077)
    try:
        ended = synth(
            again, "config/default.yaml", cwd=elsewhere, PYTHONHASHSEED="2", TZ="Asia/Kolkata"
        )
    finally:
        os.umask(before)
    assert ended.returncode == 0, ended.stderr[-4000:]
    names = sorted(path.name for path in out.glob("*.template.json"))
    assert len(names) == len(STACKS)
    for name in names:
        assert (again / name).read_text() == (out / name).read_text(), name
    for path in (out / "k8s").iterdir():
        assert (again / "k8s" / path.name).read_text() == path.read_text()


def test_a_finding_of_cdk_nag_fails_the_synthesis(tmp_path: Path) -> None:
    broken = copy_of_the_project(tmp_path / "broken")
    bucket = broken / "constructs" / "weights_bucket.py"
    source = bucket.read_text()
    assert source.count("enforce_ssl=True") == 1
    bucket.write_text(source.replace("enforce_ssl=True", "enforce_ssl=False"))
    ended = synth(tmp_path / "cdk.out", "config/default.yaml", cwd=broken)
    assert ended.returncode != 0
    assert "AwsSolutions-S10" in ended.stdout + ended.stderr


def test_a_wrong_configuration_reaches_no_template(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "deployment: {name: sonic, region: us-east-1}\nnetwork: {zones: [us-east-1a, use1-az4]}\n"
    )
    ended = synth(tmp_path / "cdk.out", str(bad))
    assert ended.returncode != 0
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    assert lines[0].startswith(f"{bad}: network.zones")
    assert "'use1-az4'" in lines[0]
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.glob("cdk.out/*.template.json"))
