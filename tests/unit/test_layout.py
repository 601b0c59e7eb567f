"""The import layout: our folder constructs/ and PyPI's package of that name live side by side."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.synth import ROOT

LINKED = ("stacks", "constructs", "k8s", "sidecar", "profiles")


def run(code: str, *, cwd: Path, flags: tuple[str, ...], env: dict[str, str]) -> str:
    # Without the caller's environment but for the PATH, on which jsii finds Node.js: what counts
    # is set by the case.
    ended = subprocess.run(
        [sys.executable, *flags, "-c", code],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_constructs_is_no_package() -> None:
    assert (ROOT / "constructs").is_dir()
    assert not (ROOT / "constructs" / "__init__.py").exists(), "it would hide PyPI's constructs"


@pytest.mark.parametrize("name", LINKED)
def test_links_resolve(name: str) -> None:
    link = ROOT / "sonic_eks" / name
    assert link.is_symlink()
    assert not Path(link.readlink()).is_absolute(), "a clone elsewhere must work"
    assert link.resolve() == ROOT / name


def test_links_that_git_holds_stay_in_the_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-s", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    links = [ROOT / entry.split("\t")[1] for entry in listed.split("\0") if entry[:6] == "120000"]
    assert {link.name for link in links} == set(LINKED)
    for link in links:
        assert (link.parent / link.readlink()).resolve().is_relative_to(ROOT.resolve()), link


ENVIRONMENTS = {
    "plain": ((), {}),
    "safe path": (("-P",), {}),
    "PYTHONPATH": ((), {"PYTHONPATH": str(ROOT)}),
    "safe path and PYTHONPATH": (("-P",), {"PYTHONPATH": str(ROOT)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ENVIRONMENTS)
@pytest.mark.parametrize("place", ["root", "elsewhere"])
def test_constructs_is_pypis_and_ours_is_below_sonic_eks(
    tmp_path: Path, place: str, case: str
) -> None:
    flags, env = ENVIRONMENTS[case]
    cwd = ROOT if place == "root" else tmp_path
    code = (
        "import importlib.util as u; import constructs;"
        "print(constructs.__file__); print(hasattr(constructs, 'Construct'));"
        "print(u.find_spec('sonic_eks.constructs').submodule_search_locations[0]);"
        "print(u.find_spec('sonic_eks.stacks').origin);"
        "print(u.find_spec('sonic_eks.k8s.render').origin)"
    )
    theirs, has_construct, ours, stacks, render = run(code, cwd=cwd, flags=flags, env=env).split(
        "\n"
    )
    assert "site-packages" in theirs
    assert has_construct == "True"
    assert Path(ours).resolve() == ROOT / "constructs"
    assert Path(stacks).resolve() == ROOT / "stacks" / "__init__.py"
    assert Path(render).resolve() == ROOT / "k8s" / "render.py"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["root", "elsewhere"])
def test_a_stack_imports_both(tmp_path: Path, place: str) -> None:
    code = (
        "from constructs import Construct;"
        "from sonic_eks.stacks.deployment import add_stacks;"
        "from sonic_eks.stacks.network import NetworkStack;"
        "print(issubclass(NetworkStack, Construct), add_stacks.__module__)"
    )
    cwd = ROOT if place == "root" else tmp_path
    home = {"HOME": str(Path.home())}  # jsii's cache; without it the import unpacks again
    assert run(code, cwd=cwd, flags=(), env=home) == "True sonic_eks.stacks.deployment"


def test_every_import_of_ours_goes_through_the_import_root() -> None:
    for folder in LINKED:
        for path in (ROOT / folder).rglob("*.py"):
            for line in path.read_text().splitlines():
                words = line.split()
                if words[:1] in (["from"], ["import"]):
                    assert words[1].split(".")[0] not in ("stacks", "k8s"), f"{path}: {line}"
                    assert not words[1].startswith("constructs."), f"{path}: {line}"


SOURCES = ("sonic_eks", *LINKED, "sidecar")
MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 60  # without its docstring


def modules() -> list[Path]:
    """Every module of the product, each once: the links are not followed."""
    return sorted(path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))


def test_modules_and_functions_are_short() -> None:
    found = modules()
    assert len(found) > 100
    for path in found:
        text = path.read_text()
        assert len(text.splitlines()) <= MOST_LINES_OF_A_MODULE, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                words = len((ast.get_docstring(node, clean=False) or "").splitlines())
                length = (node.end_lineno or 0) - node.lineno + 1 - words
                assert length <= MOST_LINES_OF_A_FUNCTION, f"{path}: {node.name}"


# What may import what: each only those before it. A new package takes its place here.
LAYERS = (
    ("errors",),
    ("figures", "late", "names", "progress", "short_lived", "sidecar_code", "timings", "upstream"),
    ("manifests", "mirror", "sizing"),
    ("config",),
    ("catalogue", "nodes"),
    ("bench", "deployment", "lifecycle"),
    ("capacity",),
    ("simulation",),
    ("notices", "plan", "reference", "verify_drain"),
    ("k8s",),
    ("constructs",),
    ("stacks",),
    ("teardown",),
    ("cli",),
)


def module_of(path: Path) -> str:
    """Return a module's name, which for the linked folders begins with the import root too."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    rooted = parts if parts[0] == "sonic_eks" else ("sonic_eks", *parts)
    return ".".join(rooted).removesuffix(".__init__")


def imports_of(tree: ast.AST, known: set[str]) -> set[str]:
    """Return our modules that a module imports when it runs, late imports included."""
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known or {node.module} & known
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
    return found


@cache
def imports() -> dict[str, set[str]]:
    """Return what each of our modules imports of the others."""
    trees = {
        module_of(path): ast.parse(path.read_text())
        for path in modules()
        if path.relative_to(ROOT).parts[0] != "sidecar"
    }
    return {name: imports_of(tree, set(trees)) - {name} for name, tree in trees.items()}


def faults_of(graph: dict[str, set[str]]) -> list[str]:
    """Return the imports that go upwards or sideways."""
    place = {package: height for height, layer in enumerate(LAYERS) for package in layer}
    found = []
    for name, needed in graph.items():
        for other in needed:
            ours, theirs = (f"{module}.".split(".")[1] for module in (name, other))
            if ours != theirs and ours and theirs and not place[theirs] < place[ours]:
                found.append(f"{name} imports {other}")
    return found


def test_packages_import_downwards_only() -> None:
    graph = imports()
    assert len(graph) > 100
    assert faults_of(graph) == []
    upwards = graph | {"sonic_eks.k8s.x": {"sonic_eks.constructs.alarms"}}
    assert faults_of(upwards) == ["sonic_eks.k8s.x imports sonic_eks.constructs.alarms"]


def test_every_package_has_a_layer() -> None:
    packages = {name.split(".")[1] for name in imports() if name.count(".") >= 1}
    assert packages == {package for layer in LAYERS for package in layer}


def test_no_modules_import_each_other() -> None:
    graph = imports()
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' -> '.join((*path, name))}"
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())
