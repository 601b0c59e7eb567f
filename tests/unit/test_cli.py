"""The command line: what it prints, where, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.console import Run, console
from tests.synth import ROOT

DEFAULT = str(ROOT / "config" / "default.yaml")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the entry point as the console script does: status, standard output, standard error."""

    return console(monkeypatch, capsys)


def outputs(**changes: str | None) -> dict[str, dict[str, str]]:
    """What `cdk deploy --outputs-file` writes, typed by hand from a deployment named sonic."""
    values: dict[str, dict[str, str | None]] = {
        "sonic-network": {
            "AccountId": "111122223333",
            "VpcId": "vpc-0a1",
            "GpuSubnetId": "subnet-0b2",
            "ServingSubnetId": "subnet-0b3",
        },
        "sonic-weights": {
            "FileSystemId": "fs-0c3",
            "FileSystemDnsName": "fs-0c3.fsx.us-east-1.amazonaws.com",
            "FileSystemMountName": "abcdef",
        },
        "sonic-cluster": {"ClusterSecurityGroupId": "sg-0d4", "PlacementGroupId": "pg-0e5"},
        "sonic-edge": {
            "TargetGroupArn": "arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/a/b"
        },
        "sonic-eu-network": {"VpcId": "vpc-of-another-deployment"},
    }
    for stack in values.values():
        stack.update({key: value for key, value in changes.items() if key in stack})
    return {
        name: {key: value for key, value in stack.items() if value is not None}
        for name, stack in values.items()
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "nonsense"),
        (["config", "nonsense"], "nonsense"),
        (["render", "--nonsense"], "--nonsense"),
        (["config", "show", "a.yaml", "b.yaml"], "b.yaml"),
        (["config", "check", "no/such/file.yaml"], "no/such/file.yaml"),
        (["summary", "no/such/file.yaml"], "no/such/file.yaml"),
        (["render", DEFAULT, "--outputs", "no/such/outputs.json"], "no/such/outputs.json"),
        (["config", "check", "x\x1b[31m\n.yaml"], r"x\x1b[31m\n.yaml"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_status_2(
    run: Run, arguments: list[str], said: str
) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert said in line
    assert "Traceback" not in line


@pytest.mark.parametrize("arguments", [[], ["config"]])
def test_without_a_command_the_help_is_shown(run: Run, arguments: list[str]) -> None:
    status, out, _ = run(*arguments)
    assert status == 2
    assert "Commands:" in out


def test_every_fault_of_a_configuration_has_its_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "deployment: {name: sonic, region: us-east-1}\n"
        "network: {zones: [us-east-1a, us-east-1b], flowLogRetentionDays: 2}\n"
        "weights: {capacityGib: 1000}\n"
    )
    status, _, err = run("config", "check", str(path))
    assert status == 2
    assert [line.split(": ")[1] for line in err.splitlines()] == [
        "network.flowLogRetentionDays",
        "weights.capacityGib",
    ]


def test_check_is_silent_about_a_good_configuration(run: Run) -> None:
    assert run("config", "check", DEFAULT) == (0, "", "")


def test_schema_accepts_the_shipped_configuration(run: Run) -> None:
    status, out, _ = run("config", "schema")
    schema = json.loads(out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert status == 0
    assert validator.is_valid(yaml.safe_load(Path(DEFAULT).read_text()))
    assert not validator.is_valid({"deployment": {}, "network": {}, "nonsense": 1})


def test_show_prints_a_configuration_that_loads_again(run: Run, tmp_path: Path) -> None:
    _, first, _ = run("config", "show", DEFAULT)
    path = tmp_path / "shown.yaml"
    path.write_text(first)
    status, second, err = run("config", "show", str(path))
    assert (status, err) == (0, "")
    assert second == first
    assert "capacityGib: 1200" in first
    assert "# derived: drain.graceSeconds = 780" in first


def test_show_json_holds_values_and_what_follows(run: Run) -> None:
    _, out, _ = run("config", "show", DEFAULT, "--json")
    document = json.loads(out)
    assert document["configuration"]["drain"]["maxStreamSeconds"] == 600
    # 120 s of propagation and 600 s of stream.
    assert document["derived"]["drain.budgetSeconds"] == 720


def test_render_marks_what_only_a_deployment_knows(run: Run) -> None:
    _, out, _ = run("render", DEFAULT)
    assert "<<known-after-deploy:TargetGroupArn>>" in out
    assert "exist only after `cdk deploy`" in out
    assert all(isinstance(document, dict) for document in yaml.safe_load_all(out))


def test_render_fills_in_the_outputs_of_a_deployment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "outputs.json"
    path.write_text(json.dumps(outputs()))
    status, out, _ = run("render", DEFAULT, "--outputs", str(path))
    assert status == 0
    assert "known-after-deploy" not in out
    assert "targetGroupARN: arn:aws:elasticloadbalancing:us-east-1:111122223333:" in out
    assert "111122223333.dkr.ecr.us-east-1.amazonaws.com/sonic/images/" in out
    assert "vpc-of-another-deployment" not in out


def test_render_writes_a_file_for_each_chart_and_removes_stale_ones(
    run: Run, tmp_path: Path
) -> None:
    stale = tmp_path / "99-gone.yaml"
    stale.write_text("{}")
    kept = tmp_path / "kustomization.yaml"
    kept.write_text("{}")
    status, out, _ = run("render", DEFAULT, "--out", str(tmp_path))
    assert status == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted([*(Path(line).name for line in out.splitlines()), kept.name])
    assert not stale.exists()


def test_a_folder_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k8s").touch()
    status, out, err = run("render", DEFAULT, "--out", str(tmp_path / "k8s"))
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "k8s: cannot be written: File exists" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "not JSON"),
        ("[1, 2]", "got a list of 2"),
        ('{"sonic-network": 3}', "stacks to outputs"),
        ("{}", "no output"),
        (json.dumps(outputs(FileSystemId=None)), "no output FileSystemId"),
        (json.dumps(outputs(VpcId="")), "no output VpcId"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(
    run: Run, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "outputs.json"
    path.write_text(content)
    status, out, err = run("render", DEFAULT, "--outputs", str(path))
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert said in line


def test_summary_before_a_synth_says_what_to_do(run: Run, tmp_path: Path) -> None:
    status, out, err = run("summary", DEFAULT, "--out", str(tmp_path))
    assert (status, out) == (1, "")
    assert "run `make synth` first" in err


@pytest.mark.parametrize(
    "template",
    ["[]", "5", "null", '{"Resources": 5}', '{"Resources": null}', "{}", "[" * 100_000, "x"],
)
def test_a_file_that_is_no_template_is_one_line(run: Run, tmp_path: Path, template: str) -> None:
    (tmp_path / "sonic-network.template.json").write_text(template)
    status, out, err = run("summary", DEFAULT, "--out", str(tmp_path))
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert "not a template" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AccountId", "not an account"),
        ("VpcId", "vpc-1\nvpc-2"),
        ("VpcId", "vpc-\0"),
        ("GpuSubnetId", " "),
        ("FileSystemId", "<<known-after-deploy:VpcId>>"),
        ("FileSystemMountName", "../etc"),
        ("TargetGroupArn", "arn:aws:iam::111122223333:role/x"),
    ],
)
def test_an_output_of_another_shape_is_refused(
    run: Run, tmp_path: Path, name: str, value: str
) -> None:
    path = tmp_path / "outputs.json"
    path.write_text(json.dumps(outputs(**{name: value})))
    status, out, err = run("render", DEFAULT, "--outputs", str(path))
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert f"output {name} is none" in line


def test_outputs_may_begin_with_a_byte_order_mark(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "outputs.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(outputs()).encode())
    status, _, _ = run("render", DEFAULT, "--outputs", str(path))
    assert status == 0


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", "nonsense"])
def test_check_reads_the_lock_too(run: Run, tmp_path: Path, text: str) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text(Path(DEFAULT).read_text())
    (tmp_path / "mine.lock.json").write_text(text)
    status, out, err = run("config", "check", str(config))
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "mine.lock.json" in err


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which $CLI is this command."""
    return subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "CLI": f"{sys.executable} -m sonic_eks.cli.main", **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["config schema", "config show", "render"])
def test_a_reader_that_goes_away_is_no_error(command: str) -> None:
    ended = shell(f'$CLI {command} | head -c 1 >/dev/null; echo "${{PIPESTATUS[0]}}"')
    assert (ended.stdout.strip(), ended.stderr) == ("0", "")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["config schema", "render"])
def test_a_full_disk_is_one_line(command: str) -> None:
    ended = shell(f"$CLI {command} >/dev/full")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "the output cannot be written: No space left on device" in line


@pytest.mark.slow
def test_values_are_shown_as_utf8_in_any_locale(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(Path(DEFAULT).read_text() + "api: {env: {NAME: é}}\n")
    ended = shell(f"$CLI config show '{path}'", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "NAME: é" in ended.stdout
