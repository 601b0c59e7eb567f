"""Rules of the node pools that span sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.config.instances import instance_types

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration

# EC2 user guide, "Spot Instance interruption notices": two minutes before EC2 takes the instance;
# ten seconds of them are for the notice's way to the pod.
SPOT_STREAM_SECONDS = 110

# Karpenter 1.14, "Utilizing ODCRs": it drains nodes of a Capacity Block ten minutes before EC2
# begins to terminate them.
CAPACITY_BLOCK_DRAIN_SECONDS = 600

# Share of a serving node that API pods may request, stream gates included; the rest is for the
# kubelet's reservation, the DaemonSets, NATS and the license proxy.
SERVING_SHARE = 0.78

# On small nodes that rest is more than that: requests of the DaemonSets (340m, 494 MiB), NATS
# (250m, 512 MiB) and license proxy (100m, 256 MiB), and up to 80 millicores for the kubelet.
_BESIDE_API_MILLICORES = 800
_BESIDE_API_MIB = 1300

# Karpenter's vmMemoryOverheadPercent; awslabs/amazon-eks-ami, nodeadm: 11 MiB for each address and
# 255 MiB are reserved, and the kubelet evicts below 100 MiB.
_MEMORY_SHARE = 0.925
_ADDRESS_MIB = 11
_KUBELET_MIB = 355


# What the stream gate beside each API server requests. Measured with 1,000 connections: under 2 %
# of a core and 23 MiB (docs/draining.md).
GATE_MILLICORES = 20
GATE_MIB = 64


def room_for_api(c: Configuration) -> tuple[int, int]:
    """Return what API pods may request of a serving node: millicores and MiB."""
    node = instance_types()[c.nodes.serving.instance_type]
    millicores = node.vcpus * 1000
    addresses = node.enis * (node.ipv4_per_eni - 1) + 2
    offered_mib = node.memory_mib * _MEMORY_SHARE - addresses * _ADDRESS_MIB - _KUBELET_MIB
    return (
        int(min(millicores * SERVING_SHARE, millicores - _BESIDE_API_MILLICORES)),
        int(min(node.memory_mib * SERVING_SHARE, offered_mib - _BESIDE_API_MIB)),
    )


def api_pods_per_serving_node(c: Configuration) -> int:
    """Return how many API pods one serving node holds beside what else runs on it."""
    millicores, memory_mib = room_for_api(c)
    return min(
        millicores // (c.api.cpu_millicores + GATE_MILLICORES),
        memory_mib // (c.api.memory_mib + GATE_MIB),
    )


def serving_nodes_for_api(c: Configuration) -> int:
    """Return the serving nodes that `api.maxReplicas` need."""
    return -(-c.api_max_replicas // api_pods_per_serving_node(c))


def system_nodes_are_in_every_zone(c: Configuration) -> None:
    """`nodes.system.size` is at least the number of `network.zones`."""
    # A node that is lost may come back in any zone with the fewest nodes (Amazon EC2 Auto Scaling
    # user guide, "Auto Scaling benefits"). In another zone, the disk of Prometheus is out of
    # reach, and without its metrics nothing scales.
    zones = len(c.network.zones)
    if c.system_nodes < zones:
        raise Refusal(
            c.nodes.system.size,
            f"at least {zones}, one for each of network.zones: a node that comes back in another"
            " zone cannot mount the disk of the one that is gone",
            nearest=str(zones),
            field="nodes.system.size",
        )


def api_fits_its_nodes(c: Configuration) -> None:
    """`api.cpuMillicores` and `api.memoryMib`, with the gate's, are at most 78 % of a serving node.

    On a small node they are at most what the other pods there leave.
    `nodes.serving.maxNodes` hold `api.maxReplicas` and are at least `nodes.serving.size`.
    """
    pool = c.nodes.serving
    node = instance_types()[pool.instance_type]
    millicores, memory_mib = room_for_api(c)
    for field, given, room, gate, whole in (
        ("cpuMillicores", c.api.cpu_millicores, millicores, GATE_MILLICORES, node.vcpus * 1000),
        ("memoryMib", c.api.memory_mib, memory_mib, GATE_MIB, node.memory_mib),
    ):
        share = "78 %" if room == int(whole * SERVING_SHARE) else "what is left"
        largest = room - gate
        if given > largest:
            raise Refusal(
                given,
                f"at most {largest}, {share} of a {node.name} (nodes.serving.instanceType)",
                nearest=str(largest),
                field=f"api.{field}",
            )
    if pool.max_nodes is None:
        return
    wanted = serving_nodes_for_api(c)
    least = max(pool.size, wanted)
    if pool.max_nodes < least:
        why = (
            f"nodes.serving.size ({pool.size})"
            if least > wanted
            else f"what api.maxReplicas ({c.api_max_replicas}) need"
        )
        raise Refusal(
            pool.max_nodes,
            f"at least {least}: {why}",
            nearest=str(least),
            field="nodes.serving.maxNodes",
        )


def gpu_nodes_are_shared_out(c: Configuration) -> None:
    """`nodes.gpu.overflow.maxNodes` is at most `nodes.gpu.maxNodes` less `baseSize`.

    Reservations are given only where nodes beyond the base may run, each in one place.
    """
    pool = c.nodes.gpu
    beyond = c.gpu_max_nodes - pool.base_size
    if (pool.overflow.max_nodes or 0) > beyond:
        raise Refusal(
            pool.overflow.max_nodes,
            f"at most {beyond}, maxNodes ({c.gpu_max_nodes}) less baseSize ({pool.base_size})",
            nearest=str(beyond) if beyond else None,
            field="nodes.gpu.overflow.maxNodes",
        )
    seen = {pool.base_reservation_id}
    for field, ids, nodes in (
        ("reservationIds", pool.reservation_ids, c.gpu_burst_nodes),
        ("overflow.reservationIds", pool.overflow.reservation_ids, c.gpu_overflow_nodes),
        ("overflow.capacityBlockIds", pool.overflow.capacity_block_ids, c.gpu_overflow_nodes),
    ):
        where = f"nodes.gpu.{field}"
        if ids and not nodes:
            raise Refusal(
                ids,
                f"none, as nodes.gpu.maxNodes ({c.gpu_max_nodes}) leave no node that may use it",
                field=where,
            )
        for index, reservation in enumerate(ids):
            if reservation in seen:
                raise Refusal(
                    reservation, "each reservation in one place", field=f"{where}.{index}"
                )
            seen.add(reservation)


def overflow_fits_the_type(c: Configuration) -> None:
    """`nodes.gpu.overflow.capacityBlockIds` need a type of a P family.

    `nodes.gpu.overflow.spot` needs a type with one GPU.
    """
    pool = c.nodes.gpu
    if pool.overflow.capacity_block_ids and not pool.instance_type.startswith("p"):
        raise Refusal(
            pool.overflow.capacity_block_ids,
            f"none for a {pool.instance_type}: EC2 sells Capacity Blocks for P families",
            field="nodes.gpu.overflow.capacityBlockIds",
        )
    if pool.overflow.spot and pool.workers_per_node > 1:
        # The workers' budget lets them leave a node one by one, each replaced first.
        raise Refusal(
            True,
            f"false for a {pool.instance_type}: its {pool.workers_per_node} workers cannot all"
            " leave within a Spot notice",
            field="nodes.gpu.overflow.spot",
        )
    if pool.overflow.spot and not c.gpu_overflow_nodes:
        raise Refusal(
            True,
            f"false, as nodes.gpu.maxNodes ({c.gpu_max_nodes}) leave no overflow node",
            field="nodes.gpu.overflow.spot",
        )


def spot_leaves_time(c: Configuration) -> None:
    """With `nodes.gpu.overflow.spot`, `drain.maxStreamSeconds` is 110 at most."""
    given = c.drain.max_stream_seconds
    if c.nodes.gpu.overflow.spot and given > SPOT_STREAM_SECONDS:
        raise Refusal(
            given,
            f"at most {SPOT_STREAM_SECONDS} while nodes.gpu.overflow.spot is true: EC2 takes a"
            " Spot Instance back two minutes after its notice",
            nearest=str(SPOT_STREAM_SECONDS),
            field="drain.maxStreamSeconds",
        )


def capacity_blocks_leave_time(c: Configuration) -> None:
    """With `nodes.gpu.overflow.capacityBlockIds`, workers drain within 600 seconds.

    That is `drain.propagationSeconds`, `maxStreamSeconds` and `marginSeconds` together.
    """
    if not c.nodes.gpu.overflow.capacity_block_ids:
        return
    rest = c.drain.propagation_seconds + c.drain.margin_seconds
    longest = CAPACITY_BLOCK_DRAIN_SECONDS - rest
    if longest < 0:
        raise Refusal(
            c.drain.margin_seconds,
            "a value that, with propagationSeconds, is 600 at most while"
            " nodes.gpu.overflow.capacityBlockIds is set",
            field="drain.marginSeconds",
        )
    if c.drain.max_stream_seconds > longest:
        raise Refusal(
            c.drain.max_stream_seconds,
            f"at most {longest} while nodes.gpu.overflow.capacityBlockIds is set: nodes of a"
            f" block have {CAPACITY_BLOCK_DRAIN_SECONDS} seconds to drain before it ends, of"
            f" which propagationSeconds and marginSeconds take {rest}",
            nearest=str(longest),
            field="drain.maxStreamSeconds",
        )


# The docstrings are the words of the generated reference.
NODE_RULES = (
    system_nodes_are_in_every_zone,
    api_fits_its_nodes,
    gpu_nodes_are_shared_out,
    overflow_fits_the_type,
    spot_leaves_time,
    capacity_blocks_leave_time,
)
