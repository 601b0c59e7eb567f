"""`sonic-eks teardown`: what it asks, prints and returns."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from sonic_eks.cli import main as cli
from sonic_eks.cli import teardown as command
from sonic_eks.k8s import render
from sonic_eks.teardown.run import Teardown
from tests.synth import ROOT, charts_of, once
from tests.unit.teardown_world import FakeInstance, FakeStack, World

Run = Callable[..., tuple[int, str, str]]
OWN = {"karpenter.sh/nodepool": "gpu-burst", "kubernetes.io/cluster/sonic": "owned"}
DEFAULT = str(ROOT / "config" / "default.yaml")

charts_once = once(charts_of)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The account that the command talks to, and its clock."""
    world = World(FakeStack("sonic-workload"), instances=(FakeInstance("i-1", OWN, 90),))
    monkeypatch.setattr(command, "connect", lambda region: world.clients)
    initial = Teardown.__init__

    def on_the_worlds_clock(self: Teardown, deployment: str, **options: object) -> None:
        initial(self, deployment, **{**options, "clock": world.clock})  # type: ignore[arg-type]

    monkeypatch.setattr(Teardown, "__init__", on_the_worlds_clock)
    monkeypatch.setattr(render, "render_charts", lambda config, catalogue: charts_once(config))
    return world


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command as the console script does: status, standard output, standard error."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    app.command()(command.teardown)
    monkeypatch.setattr("sonic_eks.cli.app.app", app)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sonic-eks", "teardown", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def configuration(folder: Path, deployment: str) -> str:
    """Write a configuration with more keys of the deployment."""
    path = folder / "c.yaml"
    path.write_text(
        f"deployment: {{name: sonic, region: us-east-1, {deployment}}}\n"
        "network: {zones: [us-east-1a, us-east-1b]}\n"
        "scaling: {acceptAssumedCapacity: true}\n"
    )
    return str(path)


def test_it_says_what_it_removed_and_is_quiet_otherwise(world: World, run: Run) -> None:
    assert run(DEFAULT, "--yes") == (0, "removed stack sonic-workload\n", "")


def test_a_second_run_has_nothing_to_do_and_asks_nothing(world: World, run: Run) -> None:
    run(DEFAULT, "--yes")
    assert run(DEFAULT) == (0, "", "")


def test_json_is_for_a_program(world: World, run: Run) -> None:
    status, out, _ = run(DEFAULT, "--yes", "--json")
    assert status == 0
    assert json.loads(out) == {
        "account": "111122223333",
        "removed": ["stack sonic-workload"],
        "terminated": [],
        "kept": [],
    }


def test_without_yes_in_a_pipe_nothing_happens(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("sonic\n"))
    status, out, err = run(DEFAULT)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "--yes: not given" in line
    assert world.asked("DeleteStack") == []


class Terminal(io.StringIO):
    """Standard input of a person."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status", "deletions"), [("sonic", 0, 1), ("yes", 130, 0)])
def test_a_person_types_the_name(
    world: World,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    status: int,
    deletions: int,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    ended, _, err = run(DEFAULT)
    assert ended == status
    assert "account 111122223333, us-east-1" in err
    assert len(world.asked("DeleteStack")) == deletions


@pytest.mark.parametrize(
    ("deployment", "said"),
    [
        ("terminationProtection: true", "deployment.terminationProtection: got true"),
        ('account: "444455556666"', "got account '111122223333'; allowed: deployment.account"),
    ],
)
def test_what_must_not_be_removed_is_refused_in_one_line(
    world: World, run: Run, tmp_path: Path, deployment: str, said: str
) -> None:
    status, out, err = run(configuration(tmp_path, deployment), "--yes")
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert said in line
    assert world.asked("DeleteStack") == []


def test_a_wrong_configuration_never_reaches_aws(world: World, run: Run, tmp_path: Path) -> None:
    status, _, err = run(configuration(tmp_path, "nonsense: 1"), "--yes")
    assert status == 2
    assert "nonsense" in err
    assert world.calls == []


def test_a_problem_is_one_line_with_status_1(world: World, run: Run) -> None:
    world.stacks["sonic-workload"].status = "UPDATE_IN_PROGRESS"
    status, out, err = run(DEFAULT, "--yes")
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert "UPDATE_IN_PROGRESS" in line


def test_what_a_destroy_would_fail_on_is_one_line_and_status_1(world: World, run: Run) -> None:
    group = {"ResourceType": "AWS::EC2::PlacementGroup", "PhysicalResourceId": "g"}
    cluster = FakeStack("sonic-cluster", resources=[group | {"ResourceStatus": "CREATE_COMPLETE"}])
    world.stacks[cluster.name] = cluster
    world.reservations = [{"Id": "cr-1", "State": "active", "PlacementGroup": "g"}]
    status, out, err = run(DEFAULT, "--yes")
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert "nothing was deleted: Capacity Reservation cr-1 (active)" in line
    assert world.asked("DeleteStack") == []
    assert run(DEFAULT, "--yes", "--keep-stacks") == (0, "removed stack sonic-workload\n", "")


def test_make_destroy_tears_down_before_and_after() -> None:
    def lines(*arguments: str) -> list[str]:
        shown = subprocess.run(
            ["make", "-n", "destroy", "CONFIG=config/x.yaml", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        words = ("sonic-eks teardown", "cdk destroy")
        return [line for line in shown.stdout.splitlines() if any(w in line for w in words)]

    first, second, third = lines()
    assert first == third == '.venv/bin/sonic-eks teardown "$CONFIG" '
    assert "cdk destroy --all -c" in second
    assert "--force" not in second
    first, second, third = lines("YES=1")
    assert first == third == '.venv/bin/sonic-eks teardown "$CONFIG" --yes'
    assert "--force" in second


@pytest.mark.parametrize("value", ["`touch RAN`", "$$(touch RAN)", 'x" ; touch RAN; "', "a b.yaml"])
def test_what_is_in_a_variable_is_never_run(value: str, tmp_path: Path) -> None:
    # The recipe alone, with a command in place of each tool: it shows what it was given.
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    recipe = subprocess.run(
        ["make", "-n", "destroy", f"CONFIG={value}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    (line, *_) = [line for line in recipe if "sonic-eks teardown" in line]
    given = value.replace("$$", "$")
    shown = subprocess.run(
        ["sh", "-c", line.replace(".venv/bin/sonic-eks", str(echo))],
        cwd=tmp_path,
        env={**os.environ, "CONFIG": given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines() == ["teardown", given]
    assert not (tmp_path / "RAN").exists()
