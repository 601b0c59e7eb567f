"""The rule that ends a drain, look by look."""

from __future__ import annotations

import pytest

from sidecar.stream_gate.drain import Drain
from sidecar.stream_gate.watch import State

# propagation 120 s, budget 720 s: the defaults of the drain section
PROPAGATION, BUDGET = 120.0, 720.0


def look(time: float, names: str | None, active: int | None = None, source: str = "netlink"):
    """A look that finds one open connection per letter of `names`."""
    keys = None if names is None else frozenset(names)
    live = (0 if names is None else len(names)) if active is None else active
    return State(time, source, keys, live, quiet=live == 0)


def blind(time: float) -> State:
    return State(time, "none")


def run(*looks: State, propagation: float = PROPAGATION, budget: float = BUDGET) -> Drain:
    drain = Drain(0.0, propagation, budget)
    for state in looks:
        drain.step(state)
    return drain


@pytest.mark.parametrize(
    ("looks", "reason", "seconds"),
    [
        ([look(0, ""), look(119.9, "")], "", 119.9),
        ([look(0, ""), look(120, "")], "drained", 120),
        ([look(0, "a"), look(120, "a"), look(130, "a"), look(140, "")], "drained", 140),
        ([look(0, "a"), look(119, "a", 0)], "", 119),
        ([look(0, "ab"), look(120, "ab", 0)], "idle", 120),
        ([look(120, "ab", 1), look(300, "ab", 1), look(301, "ab", 0)], "idle", 301),
        ([look(120, "a"), look(719, "a"), look(720, "a")], "budget", 720),
    ],
    ids=[
        "empty but propagation runs",
        "empty after propagation",
        "last connection leaves",
        "quiet but propagation runs",
        "open but quiet",
        "falls quiet later",
        "busy to the budget",
    ],
)
def test_rule(looks: list[State], reason: str, seconds: float) -> None:
    drain = run(*looks)
    assert (drain.reason, drain.seconds) == (reason, seconds)


@pytest.mark.parametrize(("waited", "reason"), [(False, "restarted"), (True, "")])
def test_a_server_that_comes_back_ends_a_drain_that_nobody_waits_for(
    waited: bool, reason: str
) -> None:
    drain = Drain(0.0, 0.0, BUDGET, waited=waited)
    busy = [State(time, "metrics", active=3) for time in (0.0, 5.0, 30.0)]
    for state in (*busy[:2], blind(10.0), blind(20.0)):
        drain.step(state)
    assert not drain.reason
    drain.step(busy[2])
    assert drain.reason == reason


def test_a_server_that_could_never_be_read_is_no_new_one() -> None:
    drain = Drain(0.0, 0.0, BUDGET, waited=False)
    for time in (0.0, 100.0, BUDGET - 1):
        drain.step(blind(time))
    assert not drain.reason
    drain.step(blind(BUDGET))
    assert drain.reason == "budget"


def test_arrivals_during_propagation_are_waited_for() -> None:
    drain = run(look(0, ""), look(60, "a"), look(120, "a"), look(200, "a"))
    assert not drain.reason
    assert drain.step(look(201, ""))


def test_connections_after_propagation_do_not_hold_the_drain() -> None:
    """Health checks and probes: the load balancer sends nothing new by then."""
    drain = run(look(120, "a"), look(130, "ap"), look(140, "p"))
    assert drain.reason == "drained"


def test_budget_counts_what_it_cuts() -> None:
    drain = run(look(120, "abc", 2), look(720, "abc", 2))
    assert (drain.reason, drain.cut) == ("budget", 2)


def test_ending_early_cuts_nothing() -> None:
    assert run(look(120, "a", 0)).cut == 0


def test_blind_drain_lasts_to_the_budget_and_says_that_cuts_are_unknown() -> None:
    drain = run(blind(0), blind(120), blind(719))
    assert not drain.reason
    drain.step(blind(720))
    assert (drain.reason, drain.cut) == ("budget", None)


def test_a_blind_look_does_not_end_a_drain() -> None:
    drain = run(look(120, "ab"), blind(121), look(122, "b"))
    assert not drain.reason


def test_keys_of_another_source_are_not_taken_for_departures() -> None:
    drain = run(look(120, "ab"), look(121, "xy", source="proc"))
    assert not drain.reason
    assert drain.step(look(122, "", source="proc"))


def test_worker_drain_needs_no_connections() -> None:
    """A load metric has no connections to leave; only quiet or the budget ends it."""
    busy = State(0.0, "metrics", None, 3, quiet=False)
    not_long_enough = State(1.0, "metrics", None, 0, quiet=False)
    quiet = State(2.0, "metrics", None, 0, quiet=True)
    drain = run(busy, not_long_enough, propagation=0)
    assert not drain.reason
    drain.step(quiet)
    assert (drain.reason, drain.cut) == ("idle", 0)


def test_zero_budget_ends_at_once() -> None:
    drain = run(look(0, "a"), propagation=0, budget=0)
    assert (drain.reason, drain.cut) == ("budget", 1)


def test_over_is_over() -> None:
    drain = run(look(120, ""))
    drain.step(look(720, "abc"))
    assert (drain.reason, drain.seconds, drain.cut) == ("drained", 120, 0)


def test_a_drain_that_begins_its_times_anew_waits_for_what_came_since() -> None:
    """A stray call, past its own propagation, and then the kubelet's."""
    drain = run(look(0, "a"), look(130, "a"))
    drain.again(140)
    # b arrives in the new propagation time; a, of the old one, leaves.
    for state in (look(150, "ab"), look(260, "b"), look(300, "b")):
        assert not drain.step(state)
    assert drain.step(look(301, ""))
    assert (drain.reason, drain.seconds) == ("drained", 161)
