"""Options of `sonic-eks bench`, each with its unit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sonic_eks.bench.plan import BYTES_PER_SAMPLE, Arrivals, Protocol
from sonic_eks.errors import SonicEksError, shown


def _above(low: float, high: float) -> Callable[[typer.CallbackParam, float | None], float | None]:
    """Return a check for numbers above `low` and at most `high`."""

    def check(parameter: typer.CallbackParam, value: float | None) -> float | None:
        if value is None or (math.isfinite(value) and low < value <= high):
            return value
        raise SonicEksError(
            f"{parameter.opts[0]}: got {shown(value)}; allowed: above {low:g}, at most {high:g}"
        )

    return check


def _percent(parameter: typer.CallbackParam, value: float) -> float:
    """Refuse what is not from 0 to 100."""
    if math.isfinite(value) and 0 <= value <= 100:
        return value
    raise SonicEksError(f"{parameter.opts[0]}: got {shown(value)}; allowed: 0 to 100")


def _encoding(parameter: typer.CallbackParam, value: str) -> str:
    """Refuse what has no fixed bytes a second."""
    if value in BYTES_PER_SAMPLE:
        return value
    raise SonicEksError(
        f"{parameter.opts[0]}: got {shown(value)}; allowed: {', '.join(BYTES_PER_SAMPLE)}"
    )


UrlArgument = Annotated[
    str | None, typer.Argument(metavar="URL", help="http://HOST:PORT of the service.")
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option(min=1, max=10_000, help="One run with so many generations in progress."),
]
RateOption = Annotated[
    float | None,
    typer.Option(
        callback=_above(0, 10_000), help="One run with so many generations a second (open loop)."
    ),
]
ArrivalsOption = Annotated[
    Arrivals | None, typer.Option(help="With --rate: poisson (default) or constant.")
]
MaxConcurrencyOption = Annotated[
    int, typer.Option(min=1, max=10_000, help="Search no further than this.")
]
GenerationsOption = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="Generations that count in a run.")
]
SloOption = Annotated[
    float,
    typer.Option(callback=_above(0, 60_000), help="Objective: time to first byte in ms."),
]
PercentileOption = Annotated[
    float, typer.Option(callback=_above(0, 100), help="Percentile that keeps it.")
]
UnderrunOption = Annotated[
    float, typer.Option(callback=_percent, help="Generations in % that may stand still.")
]
SpeakingOption = Annotated[
    float,
    typer.Option(
        callback=_above(0, 100),
        help="Share of a conversation in which the service speaks, in %.",
    ),
]
ProtocolOption = Annotated[Protocol, typer.Option(help="How audio is asked for.")]
ContextsOption = Annotated[
    int, typer.Option(min=1, max=1000, help="Generations that share a WebSocket.")
]
# The vendor's SDK, cartesia 4.2.0, GenerationRequest: 0 to 5000 ms.
BufferDelayOption = Annotated[
    int, typer.Option(min=0, max=5000, help="max_buffer_delay_ms of each request.")
]
PlaybackOption = Annotated[
    int, typer.Option(min=0, max=60_000, help="Audio in ms that a listener collects first.")
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        callback=_above(0, 600), help="Longest wait in s for a connection or for more audio."
    ),
]
WatchOption = Annotated[
    float,
    typer.Option(
        callback=_above(0, 3600),
        help="Longest wait in s for the end of an idle server after SIGTERM.",
    ),
]
ModelOption = Annotated[str, typer.Option(help="Model id.")]
VoiceOption = Annotated[str, typer.Option(help="Voice id.")]
LanguageOption = Annotated[str, typer.Option(help="Language of the texts, which are English.")]
EncodingOption = Annotated[str, typer.Option(callback=_encoding, help="Encoding of the audio.")]
SampleRateOption = Annotated[int, typer.Option(min=8000, max=48_000, help="Samples a second.")]
KeyEnvOption = Annotated[str, typer.Option(help="Environment variable that holds the API key.")]
KeyFileOption = Annotated[Path | None, typer.Option(help="File that holds the API key.")]
ProcessesOption = Annotated[
    int | None,
    typer.Option(min=1, max=256, help="Processes that share the load; unset: as many as it takes."),
]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of texts and random moments.")]
ReportOption = Annotated[Path | None, typer.Option(help="HTML file to write.")]
ProfileOption = Annotated[Path | None, typer.Option(help="Capacity profile (YAML) to write.")]
GpuOption = Annotated[str | None, typer.Option(help="For --profile: the GPU, such as L40S.")]
GpusOption = Annotated[
    int | None, typer.Option(min=1, max=1000, help="For --profile: how many serve behind URL.")
]
ReleaseOption = Annotated[str | None, typer.Option(help="For --profile: vendor release.")]
ReadOption = Annotated[
    Path | None, typer.Option(help="Instead of URL: what an earlier --json printed.")
]
JobOption = Annotated[
    Path | None,
    typer.Option(
        metavar="CONFIG",
        help="Print a Kubernetes Job that measures URL in this deployment, instead of measuring.",
    ),
]
OutputsOption = Annotated[
    Path | None,
    typer.Option(help="With --job: file of `cdk deploy --outputs-file`; fills in the account."),
]
