"""The search finds the capacity, with runs that now and then say the wrong thing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from sonic_eks.bench.search import Search


def search(
    capacity: int, maximum: int, wrong: dict[int, list[int]] | None = None
) -> tuple[int, Counter[int]]:
    """Search a service of known capacity; `wrong` names the runs of a concurrency that lie."""
    runs: Counter[int] = Counter()

    async def passes(concurrency: int) -> bool:
        runs[concurrency] += 1
        lies = runs[concurrency] in (wrong or {}).get(concurrency, ())
        return (concurrency <= capacity) != lies

    return asyncio.run(Search(passes, maximum).highest()), runs


@pytest.mark.parametrize("maximum", [1, 2, 3, 10, 64])
@pytest.mark.parametrize("capacity", [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 200])
def test_finds_the_capacity(capacity: int, maximum: int) -> None:
    found, runs = search(capacity, maximum)
    assert found == min(capacity, maximum)
    assert max(runs) <= maximum
    if found:
        assert runs[found] >= 2, "confirmed"
    if found < maximum:
        assert runs[found + 1] >= 2, "the next one was seen to fail twice"


@pytest.mark.parametrize("capacity", [1, 3, 8, 20])
@pytest.mark.parametrize("place", [-1, 0, 1, 2])
def test_one_wrong_run_does_not_move_it(capacity: int, place: int) -> None:
    concurrency = max(capacity + place, 1)
    for number in (1, 2):
        found, _ = search(capacity, 64, {concurrency: [number]})
        assert found == capacity


def test_a_search_costs_few_runs() -> None:
    _, runs = search(40, 64)
    # 1, 2, 4, 8, 16, 32, 64, then bisection of 32 to 64 (5), confirmations of 40 and 41
    assert sum(runs.values()) <= 7 + 5 + 2


def test_noise_at_the_border_costs_one_step_at_most() -> None:
    """Each run at the capacity and at the next one lies in a fifth of all cases."""
    for seed in range(200):
        dice = random.Random(seed)

        async def passes(concurrency: int, dice: random.Random = dice) -> bool:
            lies = concurrency in (12, 13) and dice.random() < 0.2
            return (concurrency <= 12) != lies

        assert asyncio.run(Search(passes, 64).highest()) in (11, 12, 13)
