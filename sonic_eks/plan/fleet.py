"""The nodes that run: when demand is least, and when it is as high as the bounds allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sonic_eks.config import Configuration
from sonic_eks.config.node_rules import api_pods_per_serving_node
from sonic_eks.config.sizes import Sizes


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
    """Return the nodes in the quietest hours, headroom included.

    Every part runs its least replicas, or what the trough of its traffic needs above them.
    """
    sizes = Sizes(config)
    return _fleet(
        config,
        workers=sum(sizes.workers_in_trough(model) for model in config.models),
        api_pods=sizes.api_pods_in_trough,
    )


def most(config: Configuration) -> Fleet:
    """Return the nodes while every part runs its most replicas, headroom included."""
    return _fleet(
        config,
        workers=sum(config.max_replicas(model) for model in config.models),
        api_pods=config.api_max_replicas,
    )


def _fleet(config: Configuration, *, workers: int, api_pods: int) -> Fleet:
    gpu = config.nodes.gpu
    # Each of two generations of node groups has its full size until the older one is removed.
    groups = len(config.nodes.generations)
    base = gpu.base_size * groups
    room = config.gpu_max_nodes + gpu.base_size * (groups - 1)
    wanted = math.ceil((workers + config.headroom_gpus) / gpu.workers_per_node)
    nodes = max(base, min(wanted, room))
    serving = 0
    if config.has_serving_nodes:
        needed = math.ceil(api_pods / api_pods_per_serving_node(config))
        serving = max(config.nodes.serving.size * groups, needed)
    return Fleet(
        gpu=nodes,
        gpus=nodes * config.gpu_type.gpus,
        serving=serving,
        system=config.system_nodes * groups,
    )
