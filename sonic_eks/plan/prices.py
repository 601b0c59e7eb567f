"""List prices: what the project ships, and what an operator gives in a file of the same form.

A figure has a region, a day and a source, or it does not exist. Prices differ by region, so a
figure of one is never used for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AllowInfNan, Field, Strict, ValidationError, field_validator, model_validator

from sonic_eks.config.aws import is_region
from sonic_eks.config.base import Refusal, Section, Str
from sonic_eks.config.faults import first_fault
from sonic_eks.config.instances import instance_types
from sonic_eks.config.read import FileFault, read_mapping
from sonic_eks.config.values import Day
from sonic_eks.errors import SonicEksError, shown

OLD_AFTER = timedelta(days=365)
"""Age from which a figure is marked."""

# The dearest instance of all, u7in-32tb, is at 361 USD an hour (the source of prices.yaml).
_MOST_USD = 10_000

_SEE = 'see docs/capacity.md, "The plan"'

Usd = Annotated[float, Strict(), Field(gt=0, le=_MOST_USD), AllowInfNan(False)]
Hourly = Literal[
    "eksCluster", "natGateway", "publicIpv4", "networkLoadBalancer", "interfaceEndpoint"
]
Monthly = Literal["gp3", "lustre125", "lustre250", "lustre500", "lustre1000"]


class Sheet(Section):
    """Figures of one region, day and source."""

    region: Str
    """AWS region, such as us-east-1."""
    dated: Day
    """Day on which the source says so (YYYY-MM-DD, quoted)."""
    source: Annotated[Str, Field(max_length=400)]
    """Document, or agreement, that the figures are from."""
    instance_hour: dict[Str, Usd] = Field(default={})
    """USD an hour by EC2 instance type, on-demand Linux."""
    hour: dict[Hourly, Usd] = Field(default={})
    """USD an hour: a cluster, a gateway, an address, a load balancer, an endpoint in a zone."""
    gb_month: dict[Monthly, Usd] = Field(default={})
    """USD for a GB and month: gp3, and Lustre (PERSISTENT_2 SSD) by MB/s for each TiB."""

    @field_validator("region")
    @classmethod
    def _region(cls, value: str) -> str:
        """`region` is a region."""
        if not is_region(value):
            raise Refusal(value, "a region name such as us-east-1")
        return value

    @field_validator("instance_hour")
    @classmethod
    def _types(cls, value: dict[str, float]) -> dict[str, float]:
        """`instanceHour` names instance types that a node pool may have."""
        for name in value:
            if name not in instance_types():
                raise Refusal(name, "instance types that nodes may have", field=name)
        return value

    def figures(self) -> Iterator[tuple[str, float]]:
        """Give every figure under the name that `PriceList.find` takes."""
        yield from self.instance_hour.items()
        yield from self.hour.items()
        yield from self.gb_month.items()


class Prices(Section):
    """A file of prices."""

    sheets: Annotated[tuple[Sheet, ...], Field(min_length=1, max_length=200)]
    """Figures, by where they are from."""

    @model_validator(mode="after")
    def _once(self) -> Self:
        """Each figure of a region stands once."""
        seen = set()
        for index, sheet in enumerate(self.sheets):
            for name, _ in sheet.figures():
                if (sheet.region, name) in seen:
                    raise Refusal(
                        name, f"each figure of {sheet.region} once", field=f"sheets.{index}"
                    )
                seen.add((sheet.region, name))
        return self


@dataclass(frozen=True)
class Price:
    """A figure with what it rests on.

    Attributes
    ----------
    usd : float
        US dollars for its unit.
    region, source : str
        Where it holds, and who says so.
    dated : date
        When that was said.
    """

    usd: float
    region: str
    dated: date
    source: str

    def is_old(self, today: date) -> bool:
        """Tell whether the figure is so old that a reader should look for a newer one."""
        return today - self.dated > OLD_AFTER


class PriceList:
    """The figures of one region.

    Parameters
    ----------
    region : str
        The deployment's region.
    files : Prices
        Those that come later replace figures of those before.
    """

    def __init__(self, region: str, *files: Prices) -> None:
        self.region = region
        found: dict[str, Price] = {}
        for sheet in (sheet for prices in files for sheet in prices.sheets):
            if sheet.region == region:
                day = date.fromisoformat(sheet.dated)
                for name, usd in sheet.figures():
                    found[name] = Price(usd, region, day, sheet.source)
        self._found: Mapping[str, Price] = found

    def find(self, name: str) -> Price | None:
        """Return the figure of an instance type or of another name; None where none is known."""
        return self._found.get(name)


def shipped_prices() -> Prices:
    """Return the prices that the package holds."""
    with resources.as_file(resources.files("sonic_eks").joinpath("data/prices.yaml")) as path:
        return _read(path)


def read_prices(path: Path, today: date) -> Prices:
    """Read a file of prices.

    Parameters
    ----------
    path : Path
        The file.
    today : date
        Day, in UTC, after which no source can have said anything: such a figure never became old.

    Raises
    ------
    SonicEksError
        When it cannot be read or is no such file, with the first fault.
    """
    prices = _read(path)
    last = today + timedelta(days=1)  # where the day begins before it does in UTC
    for index, sheet in enumerate(prices.sheets):
        if date.fromisoformat(sheet.dated) > last:
            raise SonicEksError(
                f"{path}: sheets.{index}.dated: got {shown(sheet.dated)}; allowed: a day up to"
                f" today, {today}; {_SEE}"
            )
    return prices


def _read(path: Path) -> Prices:
    try:
        return Prices.model_validate(read_mapping(path, begin=_SEE), by_alias=True, by_name=False)
    except FileFault as fault:
        raise SonicEksError(f"{path}: {fault}") from None
    except ValidationError as error:
        first = first_fault(error, whole="prices")
        raise SonicEksError(f"{path}: {first}; {_SEE}") from None
