"""The nodes that run: when demand is least, and when it is as high as the bounds allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.config.node_rules import serving_nodes_for_api


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Nodes at one level of demand, without those of an update.

    Attributes
    ----------
    gpu, serving, system : int
        Nodes of each pool.
    gpus : int
        GPUs of the GPU nodes; 0 where a stand-in serves without any.
    """

    gpu: int
    serving: int
    system: int
    gpus: int


def least(config: Configuration) -> Fleet:
    """Return the nodes while every part runs its least replicas, headroom included."""
    return _fleet(
        config,
        workers=sum(config.min_replicas(model) for model in config.models),
        serving=0,
    )


def most(config: Configuration) -> Fleet:
    """Return the nodes while every part runs its most replicas, headroom included."""
    return _fleet(
        config,
        workers=sum(config.max_replicas(model) for model in config.models),
        serving=serving_nodes_for_api(config) if config.has_serving_nodes else 0,
    )


def _fleet(config: Configuration, *, workers: int, serving: int) -> Fleet:
    gpu = config.nodes.gpu
    # Each of two generations of node groups has its full size until the older one is removed.
    groups = len(config.nodes.generations)
    base = gpu.base_size * groups
    wanted = math.ceil((workers + config.headroom_gpus) / gpu.workers_per_node)
    nodes = max(base, min(wanted, config.gpu_max_nodes))
    return Fleet(
        gpu=nodes,
        gpus=nodes * config.gpu_type.gpus,
        serving=max(config.nodes.serving.size * groups, serving) if config.has_serving_nodes else 0,
        system=config.system_nodes * groups,
    )
