"""Running the tests that read what a mutant edits, until one of them fails."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.injection import CHARTS, Injection
from tests.mutation.mutants import Mutant

FOLDERS = ("tests/template", "tests/manifests")
# They check constructs before they become templates (cdk-nag), and other deployments.
IGNORED = (
    "tests/template/test_foundation_compliance.py",
    "tests/template/test_cluster_variants.py",
    "tests/template/test_modes.py",
)


@dataclass
class Outcome:
    """What became of a shard's mutants."""

    killed: dict[str, str] = field(default_factory=dict)
    survived: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Tests that fail without a mutant; they prove nothing and are left out."""
    tests: int = 0


class Runner:
    """A pytest plugin that takes the place of the loop over the tests.

    Parameters
    ----------
    injection : Injection
        Where the mutants enter.
    mutants : sequence of Mutant
        The mutants of this process.
    progress : callable
        Called with the number of mutants that are done.
    """

    def __init__(
        self, injection: Injection, mutants: Sequence[Mutant], progress: Callable[[int], None]
    ) -> None:
        self.outcome = Outcome()
        self._injection = injection
        self._mutants = mutants
        self._progress = progress
        self._fixture_reads: dict[Any, set[str]] = {}
        self._readers: dict[str, list[pytest.Item]] = {}
        self._seconds: dict[str, float] = {}
        self._kills: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Note what a fixture reads: its later users read it, too."""
        before = set(self._injection.reads)
        self._injection.reads = set()
        try:
            return (yield)
        finally:
            self._fixture_reads.setdefault(fixturedef, set()).update(self._injection.reads)
            self._injection.reads |= before

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every test once as it is, then the readers of each mutant."""
        items = [item for item in session.items if item.get_closest_marker("slow") is None]
        self.outcome.tests = len(items)
        for index, item in enumerate(items):
            self._baseline(item, items[index + 1] if index + 1 < len(items) else None)
        for done, mutant in enumerate(self._mutants, start=1):
            self._injection.show(mutant)
            killer = self._killer(CHARTS if mutant.manifest else mutant.where)
            session._setupstate.teardown_exact(None)
            if killer is None:
                self.outcome.survived.append(mutant.name)
            else:
                self.outcome.killed[mutant.name] = killer
                self._kills[killer] += 1
            self._progress(done)
        self._injection.show(None)
        return True

    def _baseline(self, item: pytest.Item, following: pytest.Item | None) -> None:
        # Without what earlier tests kept, so that every read is this test's own.
        self._injection.show(None)
        self._injection.reads = set()
        started = time.monotonic()
        passed = _passes(item, following)
        self._seconds[item.nodeid] = time.monotonic() - started
        if not passed:
            self.outcome.broken.append(item.nodeid)
            return
        reads = set(self._injection.reads)
        for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
            for definition in definitions:
                reads |= self._fixture_reads.get(definition, set())
        # Edited manifests do not reach the workload's template: a test that compares the two would
        # see a difference that a fault in the code does not make.
        for read in reads if reads == {CHARTS} else reads - {CHARTS}:
            self._readers.setdefault(read, []).append(item)

    def _killer(self, read: str) -> str | None:
        """Return the first test that fails, trying the keenest and fastest files first."""
        kills: Counter[str] = Counter()
        seconds: defaultdict[str, float] = defaultdict(float)
        for item in self._readers.get(read, ()):
            # A file's tests stay together: they share fixtures.
            kills[_file(item)] += self._kills[item.nodeid]
            seconds[_file(item)] += self._seconds[item.nodeid]
        items = sorted(
            self._readers.get(read, ()),
            key=lambda i: (
                -kills[_file(i)],
                seconds[_file(i)],
                _file(i),
                -self._kills[i.nodeid],
                self._seconds[i.nodeid],
            ),
        )
        for index, item in enumerate(items):
            if not _passes(item, items[index + 1] if index + 1 < len(items) else None):
                return item.nodeid
        return None


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    if hasattr(item, "_initrequest"):
        # As after collection: a test runs more than once here.
        item._initrequest()
    reports = runtestprotocol(item, nextitem=following, log=False)
    return all(report.passed or report.skipped for report in reports)


def run(
    injection: Injection, mutants: Sequence[Mutant], progress: Callable[[int], None]
) -> Outcome:
    """Show the mutants to the tests in this process."""
    injection.install()
    runner = Runner(injection, mutants, progress)
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow"]
    ignored = [f"--ignore={path}" for path in IGNORED]
    status = pytest.main([*options, *ignored, *FOLDERS], plugins=[runner])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {status!r}")
    return runner.outcome
