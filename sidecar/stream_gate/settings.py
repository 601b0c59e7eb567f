"""The command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Settings:
    """What the command line says; see --help."""

    port: int
    watch_port: tuple[int, ...]
    load_url: str | None
    load_metric: str
    propagation_seconds: float
    budget_seconds: float
    idle_seconds: float
    poll_seconds: float
    warm_up_url: str | None
    warm_up_body: str
    warm_up_requests: int
    warm_up_key_file: str | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"stream_gate: {message}\n")


def _number(low: float, high: float, kind: type[float] = float) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not from {low:g} to {high:g}")
        return value

    return convert


def _is_http(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme == "http" and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def parse_arguments(arguments: Sequence[str]) -> Settings:
    """Turn the command line into settings, or exit with status 2 and one line."""
    parser = _Parser(prog="stream_gate", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    port, seconds = _number(1, 65535, int), _number(0, 86_400)
    add("--port", type=port, required=True, help="port that the gate answers on")
    add("--watch-port", type=port, action="append", default=[], help="port of the server; repeat")
    add("--load-url", help="http:// address of the server's metrics")
    add("--load-metric", default="inferno_worker_load", help="its load metric")
    add("--propagation-seconds", type=seconds, required=True, help="shortest drain")
    add("--budget-seconds", type=seconds, required=True, help="longest drain")
    add("--idle-seconds", type=_number(0.05, 600), default=2.0, help="silence that counts as idle")
    add("--poll-seconds", type=_number(0.02, 60), default=0.5, help="time between two looks")
    add("--warm-up-url", help="http:// address that must answer before the pod is ready")
    add("--warm-up-body", default="{}", help="what is posted there")
    add("--warm-up-requests", type=_number(1, 1000, int), default=3, help="how many times")
    add("--warm-up-key-file", help="file with the API key that goes with it")
    given = vars(parser.parse_args(arguments))
    given["watch_port"] = tuple(given["watch_port"])
    settings = Settings(**given)
    if not settings.watch_port and not settings.load_url:
        parser.error("neither --watch-port nor --load-url is given; give what is to be watched")
    for name, text in (("load", settings.load_url), ("warm-up", settings.warm_up_url)):
        if text is not None and not _is_http(text):
            parser.error(f"--{name}-url {text!r} is not an http:// address")
    if settings.budget_seconds < settings.propagation_seconds:
        parser.error("--budget-seconds is less than --propagation-seconds")
    if settings.poll_seconds > settings.idle_seconds:
        parser.error("--poll-seconds is more than --idle-seconds")
    return settings
