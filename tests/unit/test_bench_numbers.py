"""Percentiles, arrivals, conversations and summaries, against values worked out by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from sonic_eks.bench.arrivals import constant, poisson
from sonic_eks.bench.capacity import conversations
from sonic_eks.bench.plan import Arrivals, Load, Slo, Target
from sonic_eks.bench.record import Outcome, Record
from sonic_eks.bench.run import deal
from sonic_eks.bench.statistics import percentile, summarize, ttfb_percentile
from sonic_eks.bench.texts import TEXTS, texts


def record(number: int = 0, **changes: Any) -> Record:
    """A generation that was due at 0 and completed: first audio after 0.1 s, 4 s of it in 1 s."""
    values: dict[str, Any] = {
        "number": number,
        "context_id": str(number),
        "counted": True,
        "outcome": Outcome.COMPLETED,
        "detail": "",
        "characters": 60,
        "scheduled": 0.0,
        "sent": 0.0,
        "first_audio": 0.1,
        "last_audio": 1.0,
        "end": 1.0,
        "connect_seconds": None,
        "audio_seconds": 4.0,
        "longest_gap_seconds": 0.2,
        "underruns": 0,
        "stall_seconds": 0.0,
    }
    return Record(**{**values, **changes})


@pytest.mark.parametrize(
    ("percent", "expected"), [(1, 1), (50, 10), (90, 18), (95, 19), (99, 20), (100, 20)]
)
def test_percentile_is_the_nearest_rank(percent: float, expected: float) -> None:
    assert percentile(range(20, 0, -1), percent) == expected


def test_percentile_of_nothing_is_no_number() -> None:
    assert math.isnan(percentile([], 50))


@pytest.mark.parametrize(
    "outcome", [o for o in Outcome if o not in (Outcome.COMPLETED, Outcome.STOPPED)]
)
def test_a_failure_is_infinitely_late_whatever_it_had_delivered(outcome: Outcome) -> None:
    good = [record(n) for n in range(95)]
    failed = [record(n, outcome=outcome) for n in range(95, 101)]  # 6 of 101: above 5 %
    assert ttfb_percentile(good + failed[:5], 95) == 0.1
    assert ttfb_percentile(good + failed, 95) == math.inf
    summary = summarize(good + failed, 0.0)
    assert summary.failures == {outcome.value: 6}
    assert summary.ttfb[90] == 0.1
    assert summary.misses(Slo(), math.inf) == [
        "TTFB p95 is never, over 100 ms",
        "6 of 101 generations failed, over 1 %",
    ]
    for figure in (summary.ttfb, summary.rtf, summary.gap):
        assert figure[99] == math.inf
        assert figure[90] < math.inf


@pytest.mark.parametrize(("failed", "missed"), [(0, False), (2, False), (3, True)])
def test_more_than_one_percent_of_failures_miss_the_objective(failed: int, missed: bool) -> None:
    """Of 200, whatever the percentile allows and however fast the others are."""
    records = [record(n) for n in range(200 - failed)]
    records += [record(n, outcome=Outcome.ERROR) for n in range(failed)]
    found = summarize(records, 0.0).misses(Slo(ttfb_ms=200), ttfb_percentile(records, 95))
    assert found == (["3 of 200 generations failed, over 1 %"] if missed else [])


def test_a_connection_that_cannot_be_made_takes_for_ever() -> None:
    records = [record(n, connect_seconds=0.02) for n in range(9)]
    records += [record(9), record(10, outcome=Outcome.UNREACHABLE)]
    assert summarize(records, 0.0).connect == {50: 0.02, 90: 0.02, 95: math.inf, 99: math.inf}
    assert summarize([record(0)], 0.0).connect == {}


def test_what_does_not_count_is_told_apart_whatever_became_of_it() -> None:
    """Or failures would come from more generations than successes."""
    records = [record(n) for n in range(200)]
    alone = summarize(records, 0.0)
    records += [record(n, counted=False, outcome=Outcome.CLOSED) for n in range(50)]
    records += [record(n, counted=False, outcome=Outcome.STOPPED) for n in range(50)]
    found = summarize(records, 0.0)
    assert (found.generations, found.failures) == (200, {})
    assert found.failures_outside == {"closed": 50}
    assert (found.ttfb, found.rtf, found.gap) == (alone.ttfb, alone.rtf, alone.gap)
    assert found.misses(Slo(ttfb_ms=200), ttfb_percentile(records, 95)) == []


def test_a_failure_of_the_warm_up_does_not_lengthen_the_run() -> None:
    records = [record(0), record(1)]
    records.append(
        record(2, counted=False, outcome=Outcome.ERROR, scheduled=-10.0, sent=-10.0, end=-9.0)
    )
    found = summarize(records, 0.0)
    assert (found.seconds, found.in_progress) == (1.0, 2.0)


@pytest.mark.parametrize(("opening_lag", "shown"), [(0.005, True), (0.00501, False)])
def test_connections_of_a_client_that_was_late_are_not_told(
    opening_lag: float, shown: bool
) -> None:
    found = summarize([record(0, connect_seconds=0.02)], 0.0, opening_lag)
    assert bool(found.connect) is shown
    assert found.valid, "what counts began later"


def test_summary_of_two_generations_side_by_side_and_one_after() -> None:
    records = [
        record(0),
        record(1, first_audio=0.3, end=2.0, last_audio=2.0, audio_seconds=5.0, underruns=3),
        record(2, scheduled=2.0, sent=2.0, first_audio=2.2, last_audio=4.0, end=4.0),
    ]
    summary = summarize(records, 0.001)
    assert summary.ttfb[50] == pytest.approx(0.2)
    assert summary.rtf[50] == pytest.approx(0.4)  # 1/4, 2/5, 2/4
    assert summary.in_progress == pytest.approx((1 + 2 + 2) / 4)
    assert summary.characters_per_second == pytest.approx(3 * 60 / 4)
    assert summary.audio_per_second == pytest.approx(13 / 4)
    assert summary.busy == pytest.approx(5 / 13)
    assert (summary.underruns, summary.stuttering) == (3, 1)
    assert summary.valid
    assert summary.misses(Slo(ttfb_ms=250), 0.25) == ["1 of 3 generations stood still, over 1 %"]


def test_what_lies_outside_the_counted_time_is_left_out() -> None:
    """A generation of 2 s that was half over when the first counted one began gives half."""
    records = [record(0, counted=False, scheduled=-1.0, sent=-1.0, end=1.0), record(1, end=2.0)]
    summary = summarize(records, 0.0)
    assert summary.in_progress == pytest.approx((1 + 2) / 2)
    assert summary.characters_per_second == pytest.approx((30 + 60) / 2)


def test_a_stopped_generation_counts_by_its_audio() -> None:
    """Of 60 characters that would be 4 s of audio, 3 s came in the run of 1 s: 45 characters."""
    stopped = {"counted": False, "outcome": Outcome.STOPPED}
    records = [record(0), record(1, audio_seconds=3.0, **stopped)]
    assert summarize(records, 0.0).characters_per_second == pytest.approx(60 + 45)
    # half of its time is before the run
    records[1] = record(1, scheduled=-1.0, audio_seconds=3.0, **stopped)
    assert summarize(records, 0.0).characters_per_second == pytest.approx(60 + 22.5)
    # never more than it has, and nothing where nothing came or nothing completed
    records[1] = record(1, audio_seconds=9.0, **stopped)
    assert summarize(records, 0.0).characters_per_second == pytest.approx(60 + 60)
    records[1] = record(1, audio_seconds=0.0, **stopped)
    assert summarize(records, 0.0).characters_per_second == pytest.approx(60)
    records = [record(0, outcome=Outcome.CLOSED), record(1, **stopped)]
    assert summarize(records, 0.0).characters_per_second == 0


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_characters_a_second_do_not_fall_with_the_concurrency(concurrency: int) -> None:
    """Slots that make 60 characters in each second, begun at even distances, 3 s on end."""
    records = []
    for slot in range(concurrency):
        begin = slot / concurrency
        for number in range(3):
            at = begin + number
            part = max(0.0, min(3.0 - at, 1.0))  # the run ends at 3 s
            records.append(
                record(
                    scheduled=at,
                    end=at + part,
                    audio_seconds=4.0 * part,
                    counted=part == 1.0,
                    outcome=Outcome.COMPLETED if part == 1.0 else Outcome.STOPPED,
                )
            )
    found = summarize(records, 0.0)
    assert found.characters_per_second == pytest.approx(60 * found.in_progress)


@pytest.mark.parametrize(("lag", "valid"), [(0.005, True), (0.00501, False)])
def test_a_client_that_lags_makes_a_run_not_valid(lag: float, valid: bool) -> None:
    assert summarize([record()], lag).valid is valid


def test_constant_arrivals_are_even() -> None:
    assert constant(4, 5) == [0, 0.25, 0.5, 0.75, 1.0]


def test_poisson_arrivals_have_their_rate_and_no_memory() -> None:
    moments = poisson(20, 20_000, seed=3)
    assert moments == sorted(moments)
    assert moments == poisson(20, 20_000, seed=3) != poisson(20, 20_000, seed=4)
    gaps = [b - a for a, b in itertools.pairwise(moments)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(1 / 20, rel=0.03)
    # of an exponential distribution, 1/e of all gaps are longer than the mean
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.02)


def test_each_round_says_every_text_once() -> None:
    said = list(itertools.islice(texts(1), 2 * len(TEXTS)))
    assert sorted(said[: len(TEXTS)]) == sorted(TEXTS) == sorted(said[len(TEXTS) :])
    assert said[: len(TEXTS)] != said[len(TEXTS) :]
    lengths = sorted(map(len, TEXTS))
    assert (lengths[0], lengths[-1]) == (15, 415)
    assert len(set(TEXTS)) == 24


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
@pytest.mark.parametrize("arrivals", list(Arrivals))
def test_processes_share_a_load_without_loss(arrivals: Arrivals, processes: int) -> None:
    load = Load(arrivals=arrivals, generations=50, concurrency=5, rate=10, seed=2)
    parts = deal(Target(url="http://h", key="k"), load, processes)
    if arrivals is Arrivals.CLOSED:
        assert len(parts) == min(processes, 5)
        assert sum(part["count"] for part in parts) == 50
        assert sum(part["concurrency"] for part in parts) == 5
        assert all(part["concurrency"] and part["offsets"] is None for part in parts)
        return
    dealt = sorted(entry for part in parts for entry in part["offsets"])
    expected = constant(10, 50) if arrivals is Arrivals.CONSTANT else poisson(10, 50, 2)
    assert dealt == list(enumerate(expected))


@pytest.mark.parametrize("processes", [2, 3, 4, 8])
def test_processes_end_at_the_same_time(processes: int) -> None:
    """Each has as many generations for a slot as the others, to one generation."""
    for concurrency in range(1, 65):
        load = Load(concurrency=concurrency, generations=300)
        for part in deal(Target(url="http://h", key="k"), load, processes):
            assert abs(part["count"] - 300 * part["concurrency"] / concurrency) < 1


def test_conversations_on_average() -> None:
    # a generation occupies its slot 0.2 s for each second of audio, the service speaks 40 %:
    # a conversation occupies 0.08 of a slot
    found = conversations(4, busy=0.2, speaking_percent=40, percentile=95)
    assert found.average == pytest.approx(50)


def test_conversations_alone_by_hand() -> None:
    # one slot, each conversation in it 10 % of the time: a generation finds it free when none of
    # the others speaks, 0.9 ** others >= 0.8 up to 2 others (0.81; 0.729 with 3)
    assert conversations(1, busy=0.25, speaking_percent=40, percentile=80).alone == 3
    # two slots: at most one of the others speaks. 10 others: 0.9**10 + 10 * 0.1 * 0.9**9 = 0.736;
    # 11: 0.697
    assert conversations(2, busy=0.25, speaking_percent=40, percentile=70).alone == 11


def test_conversations_at_the_edges() -> None:
    assert conversations(0, busy=0.2, speaking_percent=40, percentile=95).alone == 0
    # never silent, slower than speech: as many as there are slots
    assert conversations(3, busy=2.0, speaking_percent=100, percentile=95).alone == 3
