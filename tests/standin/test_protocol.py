"""The stand-in speaks the wire protocol: checked with the vendor's own SDK."""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import cartesia
import pytest
from cartesia import AsyncCartesia
from websockets.exceptions import ConnectionClosed

from sidecar.stand_in import speech
from sidecar.stand_in.faults import FAULTS, Faults
from sidecar.stand_in.speech import Speech
from tests.standin.process import ROOT, Process, free_ports, http_get, metric, python, until

TEXT = "Seven words make up this short sentence."
VOICE: Any = {"mode": "id", "id": "standin"}
FORMAT: Any = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 16000}
# 40 characters at 15 a second, 16000 samples a second of 2 bytes
BYTES = 42667 * 2
WHAT: dict[str, Any] = {"model_id": "sonic-3", "transcript": TEXT, "output_format": FORMAT}


@dataclass
class Api:
    process: Process
    port: int
    metrics_port: int
    sdk: AsyncCartesia

    async def fault(self, text: str) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.metrics_port)
        body = text.encode()
        head = f"PUT /faults HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        status = int((await reader.readline()).split()[1])
        writer.transport.abort()
        return status

    @contextlib.asynccontextmanager
    async def websocket(self) -> AsyncIterator[Any]:
        async with self.sdk.tts.websocket_connect() as connection:
            yield connection


def with_api(scenario: Callable[[Api], Awaitable[None]], *arguments: object) -> None:
    """Run `scenario` against a standalone stand-in, ten times faster than the wall clock."""

    async def start() -> None:
        port, metrics_port = free_ports(2)
        process = Process(
            python(
                "tests.standin.api",
                *("--port", port, "--metrics-port", metrics_port, "--standalone"),
                *("--clock", 10, *arguments),
            )
        )
        await process.start()
        address = f"127.0.0.1:{port}"
        sdk = AsyncCartesia(
            api_key="standin",
            base_url=f"http://{address}",
            websocket_base_url=f"ws://{address}",
            max_retries=0,
        )

        async def up() -> bool:
            assert process.running, process.lines
            return (await http_get(port, "/status"))[0] == 200

        try:
            async with asyncio.timeout(60):
                await until(up, "start of the stand-in")
                await scenario(Api(process, port, metrics_port, sdk))
        finally:
            await sdk.close()
            await process.stop()

    asyncio.run(start())


async def say(connection: Any, timeout: float = 3.0, **more: Any) -> list[Any]:
    context = connection.context(timeout=timeout)
    await context.send(**WHAT, voice=VOICE, continue_=False, **more)
    return [event async for event in context.receive()]


pytestmark = pytest.mark.slow


def test_websocket_bytes_and_sse_give_the_same_audio() -> None:
    async def scenario(api: Api) -> None:
        async with api.websocket() as connection:
            first, *chunks, done = await say(connection, add_timestamps=True)
            assert (first.type, done.type) == ("timestamps", "done")
            assert first.word_timestamps.words == TEXT.split()
            assert sum(len(chunk.audio) for chunk in chunks) == BYTES
            again = await say(connection)  # the same socket, another context
            assert again[-1].type == "done"
            assert again[0].context_id != done.context_id
        audio = await api.sdk.tts.generate(**WHAT, voice=VOICE)
        assert len(await audio.read()) == BYTES
        events: list[Any] = []
        async for event in await api.sdk.tts.generate_sse(**WHAT, voice=VOICE):
            events.append(event)
        assert events[-1].type == "done"
        assert sum(len(event.audio) for event in events[:-1]) == BYTES

    with_api(scenario)


def test_contexts_share_a_socket_and_text_may_come_in_parts() -> None:
    async def scenario(api: Api) -> None:
        async with api.websocket() as connection:
            one, two = connection.context(timeout=5), connection.context(timeout=5)
            part = {**WHAT, "voice": VOICE}
            await one.send(**part, continue_=True)
            await two.send(**part, continue_=False)
            assert [event async for event in two.receive()][-1].type == "done"
            await one.send(**part, continue_=True, flush=True)
            await one.send(**part, continue_=True)
            await one.no_more_inputs()
            events = [event async for event in one.receive()]
            assert [e.type for e in events if e.type != "chunk"] == ["flush_done", "done"]
            total = sum(len(event.audio) for event in events if event.type == "chunk")
            assert abs(total - 3 * BYTES) <= 6  # rounding to whole samples

    with_api(scenario)


def test_cancel_ends_the_work_on_a_context() -> None:
    async def scenario(api: Api) -> None:
        async with api.websocket() as connection:
            context = connection.context(timeout=5)
            await context.send(**{**WHAT, "transcript": TEXT * 500}, voice=VOICE, continue_=False)
            async for event in context.receive():
                assert event.type == "chunk"
                break
            await context.cancel()

            async def idle() -> bool:
                text = (await http_get(api.metrics_port, "/metrics"))[1]
                return metric(text, "inferno_worker_load") == 0

            await until(idle, "cancelling", 5)

    with_api(scenario)


def test_faults() -> None:
    async def scenario(api: Api) -> None:
        async with api.websocket() as connection:
            assert await api.fault("stall") == 200
            with pytest.raises(TimeoutError):
                await say(connection, timeout=0.5)
            assert await api.fault("hang") == 200
            with pytest.raises(TimeoutError):
                await say(connection, timeout=0.5)
            assert await api.fault("reject") == 200
            [error] = await say(connection)
            assert (error.type, error.status_code) == ("error", 429)
            with pytest.raises(cartesia.RateLimitError):
                await api.sdk.tts.generate(**WHAT, voice=VOICE)
            assert await api.fault("slow") == 200
            assert (await say(connection, timeout=5))[-1].type == "done"
            assert await api.fault("reject:0.5") == 200
            ends = [(await say(connection))[-1].type for _ in range(4)]
            assert ends == ["done", "error"] * 2
            assert await api.fault("explode") == 400
            assert await api.fault("close") == 200
            with pytest.raises(TimeoutError):  # the SDK does not tell that the socket is gone
                await say(connection, timeout=0.5)
            with pytest.raises(ConnectionClosed):  # nor does it connect again
                await say(connection)
        assert await api.fault("") == 200
        async with api.websocket() as connection:
            assert (await say(connection))[-1].type == "done"

    with_api(scenario)


def test_mistakes_of_a_client_are_answered() -> None:
    async def scenario(api: Api) -> None:
        bad = {**WHAT, "output_format": {**FORMAT, "encoding": "opus"}}
        with pytest.raises(cartesia.BadRequestError, match="opus"):
            await api.sdk.tts.generate(**bad, voice=VOICE)
        assert (await http_get(api.port, "/voices"))[0] == 401
        assert (await http_get(api.port, "/nowhere"))[0] == 404
        async with api.websocket() as connection:
            context = connection.context(timeout=3)
            await context.send(**bad, voice=VOICE, continue_=False)
            [error] = [event async for event in context.receive()]
            assert error.error_code == "invalid_request"

    with_api(scenario)


def test_serves_both_address_families() -> None:
    async def scenario(api: Api) -> None:
        assert (await http_get(api.port, "/status", host="::1"))[0] == 200
        assert (await http_get(api.port, "/status", host="127.0.0.1"))[0] == 200

    with_api(scenario, "--host", "*")


@pytest.mark.parametrize(
    ("generations", "p50", "p95"), [(1, 50, 55), (4, 80, 115), (8, 120, 165), (16, 195, 300)]
)
def test_time_to_first_audio_follows_the_published_table(
    generations: int, p50: int, p95: int
) -> None:
    """Rows of the vendor's table for Sonic 3.5 on an H100."""
    dice = random.Random(7)
    draws = [speech.first_audio_seconds(generations, dice) * 1000 for _ in range(20_000)]
    cuts = statistics.quantiles(draws, n=100)
    assert cuts[49] == pytest.approx(p50, rel=0.03)
    assert cuts[94] == pytest.approx(p95, rel=0.03)


def test_figures_rise_between_and_beyond_the_rows() -> None:
    # halfway between the rows of 4 and 8; twice the last row
    assert speech.figures(6) == pytest.approx((100, 140, 0.175))
    assert speech.figures(32) == pytest.approx((390, 600, 0.6))


def test_standalone_server_needs_the_standard_library_only() -> None:
    command = [sys.executable, "-S", "-m", "tests.standin.api", "--help"]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_audio_has_the_length_of_the_text() -> None:
    text = Speech("x" * 150, "pcm_mulaw", 8000)
    assert sum(len(chunk) for chunk in text.chunks(0.7)) == text.audio_bytes == 80_000


@pytest.mark.parametrize("text", ["explode", "stall:0", "stall:2", "stall:x"])
def test_unknown_faults_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not one of|is not a share|could not convert"):
        Faults.parse(text)


def test_share_of_a_fault_is_even() -> None:
    fault = Faults.parse("hang:0.25")
    assert [fault.strike() for _ in range(8)] == ["", "", "", "hang"] * 2
    assert set(FAULTS) == {"stall", "reject", "slow", "close", "hang"}
