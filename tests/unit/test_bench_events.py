"""Events of the wire protocol are read as JSON says, however their audio is put in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonic_eks.bench import process
from sonic_eks.bench.lag import PERIOD_SECONDS
from sonic_eks.bench.plan import Target
from sonic_eks.bench.protocol import parse_event
from sonic_eks.bench.record import Failure, Generation
from tests import virtual_time
from tests.virtual_time import stand_still

AUDIO = "QUJD" * 200

texts = st.text(max_size=8) | st.sampled_from(['"data"', 'x "data": "y', "\\", AUDIO, AUDIO + "\\"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["data", "a"]) | texts, inner, max_size=2)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(["data", "title", "a"]), values, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_an_event_is_what_json_says(
    fields: dict[str, object], first: bool, ascii_only: bool
) -> None:
    known = {"type": "chunk", "context_id": "c"}
    event = {**fields, **known} if first else {**known, **fields}
    assert parse_event(json.dumps(event, ensure_ascii=ascii_only).encode()) == event


@pytest.mark.parametrize(
    "text",
    [
        f'{{"type":"chunk","data":"{AUDIO}","data":"QUJD"}}',
        f'{{"type":"chunk","data":"QUJD","data":"{AUDIO}"}}',
        f'{{"type":"chunk","data" : "{AUDIO}", "a": [1, {{"data": ""}}]}}',
        f'{{"type":"chunk","a":{{"data":"{AUDIO}"}},"data":""}}',
        f'{{"type":"chunk","data":"{AUDIO}\\/QUJD"}}',
        f'{{"type":"chunk","data":"\\u0041{AUDIO}"}}',
        f'{{"type":"chunk","data":"{AUDIO}\\\\"}}',
        f'{{"type":"chunk","data":"{AUDIO}\\"QUJD"}}',
    ],
    ids=["short last", "long last", "spaces", "deeper", "slash", "unicode", "backslash", "quote"],
)
def test_unusual_events_are_what_json_says(text: str) -> None:
    assert parse_event(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [f'{{"type":"chunk","data":"{AUDIO}"', f'["data","{AUDIO}"]', f'"data":"{AUDIO}"', '"data"'],
)
def test_what_is_no_event_is_a_failure(text: str) -> None:
    with pytest.raises(Failure, match="no event of the protocol"):
        parse_event(text.encode())


class Blocks:
    """A transport whose generations stop the process for a while when they are cancelled."""

    connect_seconds = None

    def __init__(self) -> None:
        self.ran = 0

    async def reserve(self) -> Blocks:
        """See `protocol.Transport`."""
        return self

    async def generate(self, generation: Generation) -> None:
        """See `protocol.Reservation`."""
        self.ran += 1
        generation.sent = asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            until = asyncio.get_running_loop().time() + 40 * PERIOD_SECONDS
            while asyncio.get_running_loop().time() < until:
                pass
            await asyncio.sleep(2 * PERIOD_SECONDS)  # as the word that ends it takes its time
            raise
        generation.heard(asyncio.get_running_loop().time(), 100)

    def release(self) -> None:
        """See `protocol.Reservation`."""

    async def close(self) -> None:
        """See `protocol.Transport`."""


def part_of(concurrency: int = 4, **changes: Any) -> dict[str, Any]:
    """A part of a load as a process gets it, due at once."""
    target = Target(url="http://127.0.0.1:1", key="k")
    return {
        "target": {**vars(target), "protocol": target.protocol.value},
        "seed": 1,
        "index": 0,
        "processes": 1,
        "offsets": None,
        "start": asyncio.get_running_loop().time(),
        "concurrency": concurrency,
        "count": 3,
        **changes,
    }


def test_the_end_of_a_closed_loop_is_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Blocks()
    monkeypatch.setattr(process, "transport_of", lambda target: transport)

    async def scenario() -> float:
        return float((await process.run(part_of()))["lag"])

    assert asyncio.run(scenario()) < 20 * PERIOD_SECONDS
    assert transport.ran > 4


class Steady(Blocks):
    """A transport whose generations take 1 s; opening its connections stops the process."""

    def __init__(self, opening_seconds: float = 0.0) -> None:
        super().__init__()
        self._opening = opening_seconds

    async def reserve(self) -> Steady:
        """See `protocol.Transport`."""
        if self.ran < 4:
            stand_still(self._opening)
        return self

    async def generate(self, generation: Generation) -> None:
        """See `protocol.Reservation`."""
        self.ran += 1
        generation.sent = asyncio.get_running_loop().time()
        await asyncio.sleep(1.0)
        generation.heard(asyncio.get_running_loop().time(), 100)


def lags(monkeypatch: pytest.MonkeyPatch, transport: Steady, **changes: Any) -> list[float]:
    """Lag of the counted time and of the time before, in seconds; all of it in virtual time."""
    monkeypatch.setattr(process, "transport_of", lambda target: transport)

    async def scenario() -> list[float]:
        if "stop_at" in changes:
            asyncio.get_running_loop().call_at(changes.pop("stop_at"), stand_still, 0.1)
        answer = await process.run(part_of(**changes))
        return [round(answer[name], 6) for name in ("lag", "opening_lag")]

    return virtual_time.run(scenario())


def test_lag_before_and_while_generations_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lags(monkeypatch, Steady()) == [0, 0]
    [lag, opening] = lags(monkeypatch, Steady(opening_seconds=0.1))
    assert lag == 0
    assert opening > 0.05
    # Counted generations run from 1 s to 2 s.
    [lag, opening] = lags(monkeypatch, Steady(), stop_at=1.5)
    assert lag > 0.05
    assert opening == 0


def test_a_late_send_is_lag_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of ten sends is late by 90 ms, and the probe's 99th percentile of 100 s sees nothing."""
    offsets = [[number, 10.0 * (number + 1)] for number in range(10)]
    transport = Steady()
    assert lags(monkeypatch, transport, offsets=offsets, stop_at=49.99) == [0.09, 0]
    assert transport.ran == 10


def test_what_stops_before_the_end_is_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    [lag, _] = lags(monkeypatch, Steady(), stop_at=1.99)
    assert lag > 0.02
