"""Options that say nothing beside others: refused, so that nobody believes that they did."""

from __future__ import annotations

from collections.abc import Collection

import typer

from sonic_eks.bench.plan import Protocol
from sonic_eks.errors import SonicEksError

_OF_A_RESULT = ("read", "report", "profile", "gpu", "gpus", "release", "as_json")
_OF_WEBSOCKETS = ("contexts_per_socket", "buffer_delay_ms")
_OF_A_SEARCH = ("max_concurrency", "speaking_percent")
_OF_A_KEY = ("key_env", "key_file")
_OF_AN_END = ("streams", "characters", "watch_seconds", "yes")
_OF_A_POD = ("namespace", "container")


def refuse_ignored(context: typer.Context, protocol: Protocol) -> None:
    """Refuse options of `bench` that the others leave without a meaning.

    Raises
    ------
    SonicEksError
        With the first of them.
    """
    given = _given(context)
    if "read" in given:
        others = given.keys() - {*_OF_A_RESULT, "url"}
        _refuse(given, others, "with --read, which reads what was measured before; give a URL")
    if "job" in given:
        _refuse(given, _OF_A_KEY, "with --job, which needs no key: the Job reads it from a Secret")
    if protocol is not Protocol.WEBSOCKET:
        _refuse(given, _OF_WEBSOCKETS, f"with --protocol {protocol}; it is for websocket alone")
    for option in ("concurrency", "rate"):
        if option in given:
            _refuse(given, _OF_A_SEARCH, f"with {given[option]}; it is for a search, without it")


def refuse_ignored_of_an_end(context: typer.Context) -> None:
    """Refuse options of `verify-drain` that the others leave without a meaning.

    Raises
    ------
    SonicEksError
        With the first of them.
    """
    given = _given(context)
    if "pod" not in given:
        _refuse(given, _OF_A_POD, "without --pod; it is for a pod")
        if "pid" not in given:
            _refuse(given, _OF_AN_END, "without --pod or --pid; it is for what is ended")
    if "url" in given:
        _refuse(given, ("port",), "with URL; it is for the port-forward, without it")


def _given(context: typer.Context) -> dict[str, str]:
    """Return the options that were given: by parameter, as they are written."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            found[str(parameter.name)] = parameter.opts[0]
    return found


def _refuse(given: dict[str, str], refused: Collection[str], why: str) -> None:
    for name, option in given.items():
        if name in refused:
            raise SonicEksError(f"{option}: got it {why}")
