"""Events of the wire protocol are read as JSON says, however their audio is put in."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonic_eks.bench import process
from sonic_eks.bench.lag import PERIOD_SECONDS
from sonic_eks.bench.plan import Target
from sonic_eks.bench.protocol import parse_event
from sonic_eks.bench.record import Failure, Generation

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
    ],
    ids=["short last", "long last", "spaces", "deeper"],
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


def test_the_end_of_a_closed_loop_is_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Blocks()
    monkeypatch.setattr(process, "transport_of", lambda target: transport)
    target = Target(url="http://127.0.0.1:1", key="k")

    async def scenario() -> float:
        part = {
            "target": {**vars(target), "protocol": target.protocol.value},
            "seed": 1,
            "index": 0,
            "processes": 1,
            "offsets": None,
            "start": asyncio.get_running_loop().time(),
            "concurrency": 4,
            "count": 3,
        }
        return float((await process.run(part))["lag"])

    assert asyncio.run(scenario()) < 20 * PERIOD_SECONDS
    assert transport.ran > 4
