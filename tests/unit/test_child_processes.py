"""Programs that this package starts see no API key."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from sonic_eks.bench.inputs import environment_without_key
from tests.synth import ROOT

FOLDERS = ("sonic_eks", "constructs", "k8s", "stacks", "sidecar")
STARTS = {
    *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"),
    *("Popen", "check_output", "check_call", "getoutput", "getstatusoutput", "popen"),
    *("posix_spawn", "posix_spawnp", "fork", "forkpty", "execv", "execve", "execvp", "execvpe"),
    *("ProcessPoolExecutor", "spawnv", "spawnve"),
}


def starts(text: str) -> Iterator[ast.Call]:
    """Calls that start a program, also `subprocess.run` and `multiprocessing.Process`."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        module = ast.unparse(getattr(function, "value", function))
        started = ("os.system", "subprocess.run", "subprocess.call", f"multiprocessing.{name}")
        if name in STARTS or f"{module}.{name}" in started:
            yield node


def environment(call: ast.Call) -> str:
    return next((ast.unparse(k.value) for k in call.keywords if k.arg == "env"), "")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("asyncio.create_subprocess_exec('x')", 1),
        ("subprocess.run(['x'])", 1),
        ("Popen('x')", 1),
        ("os.system('x')", 1),
        ("multiprocessing.Process()", 1),
        ("asyncio.run(x())", 0),
        ("cli.run()", 0),
    ],
)
def test_a_start_is_seen(text: str, count: int) -> None:
    assert len(list(starts(text))) == count


def test_each_gets_an_environment_without_the_key() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{call.lineno}": environment(call)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for call in starts(path.read_text())
    }
    assert len(found) >= 2, "kubectl and the processes of a load"
    assert [at for at, given in found.items() if "environment_without_key(" not in given] == []


def test_an_environment_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "CARTESIA_API_KEY": "another",
        "MINE": "  sk-1\n",
        "MINE_TOO": "sk-1",
        "LONGER": "sk-12",
        "EMPTY": "",
    }.items():
        monkeypatch.setenv(name, value)
    left = environment_without_key("sk-1")
    assert left["LONGER"] == "sk-12"
    assert left["EMPTY"] == ""
    assert not {"CARTESIA_API_KEY", "MINE", "MINE_TOO"} & left.keys()
    assert "EMPTY" in environment_without_key("")
