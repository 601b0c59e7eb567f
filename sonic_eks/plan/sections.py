"""The sections of a plan: each is a module in `sonic_eks.plan.parts` that registers itself.

A module there has one function under `section`. To add a part to the plan is to add a module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from sonic_eks.config import Configuration
from sonic_eks.plan import parts
from sonic_eks.plan.prices import PriceList


@dataclass(frozen=True)
class Context:
    """What a section is made from.

    Attributes
    ----------
    config : Configuration
        The deployment.
    prices : PriceList
        Prices in its region.
    today : date
        The plan's day, by which prices are old.
    """

    config: Configuration
    prices: PriceList
    today: date


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the plan: a table for people, and the same for programs.

    Attributes
    ----------
    title : str
        Heading.
    headings : tuple of str
        Names of the columns; empty where the rows explain themselves.
    rows : tuple of tuple of str
        Cells, as many in each row as there are headings, if there are.
    notes : tuple of str
        Sentences below the table.
    problems : tuple of str
        What the configuration cannot do that it states; the plan then ends with status 1.
    data : dict
        The section as JSON can hold it.
    """

    title: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    data: dict[str, Any]


Builder = Callable[[Context], Section | None]

_BUILDERS: dict[str, tuple[int, Builder]] = {}


def section(key: str, *, place: int) -> Callable[[Builder], Builder]:
    """Register the function that makes a section; one that returns None has nothing to say.

    Parameters
    ----------
    key : str
        Name of the section in JSON.
    place : int
        Where it comes: lower ones first.
    """

    def register(builder: Builder) -> Builder:
        if key in _BUILDERS:
            raise ValueError(f"two sections are named {key}")
        _BUILDERS[key] = (place, builder)
        return builder

    return register


def sections(context: Context) -> dict[str, Section]:
    """Return the sections of a plan by key, in their order."""
    for module in pkgutil.iter_modules(parts.__path__, f"{parts.__name__}."):
        importlib.import_module(module.name)
    found = {}
    for key, (_, builder) in sorted(_BUILDERS.items(), key=lambda item: item[1][0]):
        made = builder(context)
        if made is not None:
            found[key] = made
    return found
