"""What a deployment costs by the hour, as sums of list prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.config.endpoint_services import INTERFACE_SERVICES
from sonic_eks.config.platform import CpuPool, GpuPool
from sonic_eks.plan.fleet import least, most
from sonic_eks.plan.prices import Price, PriceList

HOURS_PER_MONTH = 730
"""365 days of 24 hours in 12 parts."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A line of the bill.

    Attributes
    ----------
    name : str
        What is paid for.
    is_gpu : bool
        Whether it is a GPU node or a part of one.
    least, most : float
        How many, when demand is least and when it is at the bounds; GB for storage.
    figure : str
        Name of the price.
    price : Price or None
        The price; None: not known.
    is_monthly : bool
        Whether the price is for a month, as that of storage is.
    """

    name: str
    is_gpu: bool = False
    least: float
    most: float
    figure: str
    price: Price | None
    is_monthly: bool = False

    @property
    def usd_per_hour_each(self) -> float | None:
        """USD an hour for one, or for one GB."""
        if self.price is None:
            return None
        return self.price.usd / HOURS_PER_MONTH if self.is_monthly else self.price.usd

    @property
    def usd_per_hour(self) -> tuple[float, float] | None:
        """USD an hour at least and at most; None: not priced."""
        each = self.usd_per_hour_each
        return None if each is None else (self.least * each, self.most * each)


def items(config: Configuration, prices: PriceList) -> list[Item]:
    """Return the lines of the bill that the configuration decides, GPU nodes first.

    What traffic decides (data processed and transferred, metrics, logs, requests) is not in it,
    and neither are the license, images and weights in their stores, nor the nodes of an update.
    """
    return [*_nodes(config, prices), *_fixed(config, prices)]


def total(lines: Iterable[Item]) -> tuple[float, float]:
    """Return USD an hour at least and at most of what is priced."""
    priced = [line.usd_per_hour for line in lines if line.usd_per_hour is not None]
    return sum(low for low, _ in priced), sum(high for _, high in priced)


def not_priced(lines: Iterable[Item]) -> list[str]:
    """Return the names of the lines without a price."""
    return [line.name for line in lines if line.price is None]


def _nodes(config: Configuration, prices: PriceList) -> list[Item]:
    low, high = least(config), most(config)
    pools = config.nodes
    rows: list[tuple[str, GpuPool | CpuPool, int, int]] = [
        ("GPU nodes" if config.gpu_type.gpus else "stand-in nodes", pools.gpu, low.gpu, high.gpu),
        ("system nodes", pools.system, low.system, high.system),
    ]
    if config.has_serving_nodes:
        rows.append(("serving nodes", pools.serving, low.serving, high.serving))
    found = []
    for position, (name, pool, fewest, most_of_them) in enumerate(rows):
        is_gpu = position == 0
        found.append(
            Item(
                name=f"{name}, {pool.instance_type}",
                is_gpu=is_gpu,
                least=fewest,
                most=most_of_them,
                figure=pool.instance_type,
                price=prices.find(pool.instance_type),
            )
        )
        found.append(
            Item(
                name=f"{name}, {pool.root_volume_gib} GiB of gp3 each",
                is_gpu=is_gpu,
                least=fewest * pool.root_volume_gib,
                most=most_of_them * pool.root_volume_gib,
                figure="gp3",
                price=prices.find("gp3"),
                is_monthly=True,
            )
        )
    return found


def _fixed(config: Configuration, prices: PriceList) -> list[Item]:
    rows = [("EKS control plane", 1, "eksCluster"), ("load balancer", 1, "networkLoadBalancer")]
    endpoints = endpoint_count(config)
    if endpoints:
        rows.append(("interface endpoints, each in each zone", endpoints, "interfaceEndpoint"))
    if has_nat_gateway(config):
        rows += [("NAT gateway", 1, "natGateway"), ("its public address", 1, "publicIpv4")]
    found = [
        Item(name=name, least=count, most=count, figure=figure, price=prices.find(figure))
        for name, count, figure in rows
    ]
    weights = config.weights
    figure = f"lustre{weights.throughput_mb_per_s_per_tib}"
    found.append(
        Item(
            name=(
                f"weights, {weights.capacity_gib} GiB of Lustre at"
                f" {weights.throughput_mb_per_s_per_tib} MB/s for each TiB"
            ),
            least=weights.capacity_gib,
            most=weights.capacity_gib,
            figure=figure,
            price=prices.find(figure),
            is_monthly=True,
        )
    )
    return found


def endpoint_count(config: Configuration) -> int:
    """Return how many interface endpoints are made, one in each zone counted."""
    network = config.network
    there = network.existing.endpoints if network.existing else ()
    return sum(
        len(network.endpoint_zones.get(service, network.zones))
        for service in INTERFACE_SERVICES
        if service not in there
    )


def has_nat_gateway(config: Configuration) -> bool:
    """Whether the deployment makes a NAT gateway; in a VPC that is there its owner has one."""
    return config.network.existing is None and config.network.egress == "system"
