"""The EC2 instance types that a node pool may use, from recorded DescribeInstanceTypes data.

The table (`sonic_eks/data/instance_types.csv`) holds what EC2's DescribeInstanceTypes answered:
vCPUs, memory (MiB), NVIDIA GPUs, their memory (MiB), local NVMe (GB), network interfaces and
placement group strategies. It makes synthesis independent of an account.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

# Cartesia's "Hardware selection" page: NVIDIA Ampere or newer with at least 24 GB. EC2 reports
# the usable part of a 24 GB card: 22,888 MiB.
SUPPORTED_GENERATIONS = ("Ampere", "Ada Lovelace", "Hopper", "Blackwell")
MIN_GPU_MEMORY_MIB = 22_888


@dataclass(frozen=True)
class InstanceType:
    """One row of the table."""

    name: str
    architecture: str
    vcpus: int
    memory_mib: int
    gpus: int
    gpu: str
    gpu_generation: str
    gpu_memory_mib: int
    local_nvme_gb: int
    cluster_placement: bool
    enis: int
    ipv4_per_eni: int

    @property
    def family(self) -> str:
        """The part before the dot, such as ``g6e``."""
        return self.name.split(".")[0]

    @property
    def serves_sonic(self) -> bool:
        """Whether the GPU is one that the vendor's worker image runs on."""
        return (
            self.architecture == "x86_64"
            and self.gpus >= 1
            and self.gpu_generation in SUPPORTED_GENERATIONS
            and self.gpu_memory_mib >= MIN_GPU_MEMORY_MIB
        )

    @property
    def serves_cpu(self) -> bool:
        """Whether a CPU pool may use the type."""
        return self.architecture == "x86_64" and not self.gpu

    @property
    def max_pods(self) -> int:
        """Pods that the VPC CNI can address: ENIs x (addresses - 1) + 2 (EKS user guide).

        The guide caps it at 110 below 30 vCPUs and at 250 from there on.
        """
        addresses = self.enis * (self.ipv4_per_eni - 1) + 2
        return min(addresses, 110 if self.vcpus < 30 else 250)


@cache
def instance_types() -> dict[str, InstanceType]:
    """Return the table by instance type name."""
    text = resources.files("sonic_eks").joinpath("data/instance_types.csv").read_text("utf-8")
    table = {}
    for row in csv.DictReader(text.splitlines()):
        table[row["instance_type"]] = InstanceType(
            name=row["instance_type"],
            architecture=row["architecture"],
            vcpus=int(row["vcpus"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["gpus"]),
            gpu=row["gpu"],
            gpu_generation=row["gpu_generation"],
            gpu_memory_mib=int(row["gpu_memory_mib"]),
            local_nvme_gb=int(row["local_nvme_gb"]),
            cluster_placement=row["cluster_placement"] == "yes",
            enis=int(row["enis"]),
            ipv4_per_eni=int(row["ipv4_per_eni"]),
        )
    return table


def _valid(*, gpu: bool) -> list[InstanceType]:
    return [t for t in instance_types().values() if (t.serves_sonic if gpu else t.serves_cpu)]


def families(*, gpu: bool) -> list[str]:
    """Return the families with a type that a GPU pool, or a CPU pool, may use."""
    return list(dict.fromkeys(t.family for t in _valid(gpu=gpu)))


def nearest_types(name: str, *, gpu: bool) -> list[str]:
    """Return up to three valid types that resemble `name`: by family, then by size."""
    family, _, size = name.partition(".")

    def likeness(candidate: InstanceType) -> float:
        same_letter = candidate.family[:1] == family[:1]
        return same_letter + difflib.SequenceMatcher(None, family, candidate.family).ratio()

    def distance(candidate: InstanceType) -> tuple[float, float]:
        sizes = _log_size(size), _log_size(candidate.name.partition(".")[2])
        return (-likeness(candidate), abs(sizes[0] - sizes[1]))

    close = [t for t in _valid(gpu=gpu) if likeness(t) >= _LEAST_LIKENESS]
    return [t.name for t in sorted(close, key=distance)[:3]]


_LEAST_LIKENESS = 0.5


def _log_size(size: str) -> float:
    """Return the size of a type in doublings of ``xlarge``: ``4xlarge`` is 2."""
    match = re.fullmatch(r"([0-9]{0,3})xlarge", size)
    return math.log2(int(match.group(1) or 1) or 1) if match else -1.0
