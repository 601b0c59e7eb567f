"""Synthesizing a deployment inside a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import aws_cdk as cdk

from sonic_eks.catalogue import Catalogue
from sonic_eks.config import Configuration
from sonic_eks.config.model import PROFILE
from sonic_eks.deployment import Deployment
from sonic_eks.k8s.render import RenderedChart, render_charts
from sonic_eks.stacks.deployment import Stacks, add_stacks

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent


@cache
def cdk_context() -> dict[str, Any]:
    """Return the feature flags of cdk.json, which the CLI passes to the app."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context


def charts_of(config: Configuration) -> tuple[RenderedChart, ...]:
    """Return the rendered charts of a configuration."""
    return render_charts(config, Catalogue(config))


def once(make: Callable[[Configuration], T]) -> Callable[[Configuration], T]:
    """Make the app of a configuration once a process: tests read it and leave it as it is."""
    made: dict[tuple[str, str], T] = {}

    @wraps(make)
    def kept(config: Configuration) -> T:
        key = (config.model_dump_json(), repr(config.profile))
        if key not in made:
            made[key] = make(config)
        return made[key]

    return kept


def stacks_of(config: Configuration, *, outdir: Path | None = None) -> Stacks:
    """Return the stacks of a configuration, in a new app if it is to write to a folder."""
    return _stacks(config) if outdir is None else _new_stacks(config, outdir)


@once
def _stacks(config: Configuration) -> Stacks:
    return _new_stacks(config)


def _new_stacks(config: Configuration, outdir: Path | None = None) -> Stacks:
    app = cdk.App(context=cdk_context(), outdir=None if outdir is None else str(outdir))
    return add_stacks(app, Deployment(config, Catalogue(config)), charts_of(config))


def changed(config: Configuration, **sections: Any) -> Configuration:
    """Return a configuration with keys of sections replaced, by their YAML names.

    >>> changed(config, weights={"capacityGib": 2400})  # doctest: +SKIP
    """
    values = config.model_dump(by_alias=True, exclude_unset=True)
    for section, keys in sections.items():
        if isinstance(keys, dict):
            values[section] = _merged(values.get(section) or {}, keys)
        else:
            values[section] = keys
    return Configuration.model_validate(values, context={PROFILE: config.profile})


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(key), dict)
        merged[key] = _merged(old[key], value) if both else value
    return merged
