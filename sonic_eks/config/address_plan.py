"""Where each subnet of a VPC that is made lies."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

_BLOCKS_BITS = 3
_PUBLIC_BITS = 2


@dataclass(frozen=True)
class AddressPlan:
    """Where each subnet lies in the VPC.

    The VPC is cut into eight blocks: GPU nodes, serving nodes, system nodes of up to three zones,
    public subnets, and two that stay free. A subnet's place depends on its zone's position in the
    configuration alone, so that a third zone moves no subnet that is there.

    Parameters
    ----------
    vpc_cidr : str
        IPv4 range of the VPC, /22 or larger: its smallest subnet, a quarter of a block, is
        then a /27 (Amazon VPC user guide: /28 at least).
    """

    vpc_cidr: str

    @property
    def gpu(self) -> str:
        """Range of the GPU subnet."""
        return str(self._blocks[0])

    @property
    def serving(self) -> str:
        """Range of the serving subnet."""
        return str(self._blocks[1])

    def system(self, position: int) -> str:
        """Range of the system subnet of the zone at `position` (0 to 2)."""
        return str(self._blocks[2 + position])

    def public(self, position: int) -> str:
        """Range of the public subnet of the zone at `position` (0 to 2)."""
        return str(list(self._blocks[5].subnets(prefixlen_diff=_PUBLIC_BITS))[position])

    @property
    def _blocks(self) -> list[ipaddress.IPv4Network]:
        return list(ipaddress.IPv4Network(self.vpc_cidr).subnets(prefixlen_diff=_BLOCKS_BITS))
