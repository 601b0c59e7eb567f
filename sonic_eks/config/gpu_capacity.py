"""Where GPU nodes beyond the managed base come from: overflow, reservations, capacity blocks."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sonic_eks.config.base import Bool, Int, Refusal, Section, Str

ReservationId = Annotated[Str, Field(pattern=r"^cr-[0-9a-f]{8,17}$")]

# Karpenter 1.14, EC2NodeClass: capacityReservationSelectorTerms has 30 entries at most.
Reservations = Annotated[tuple[ReservationId, ...], Field(max_length=15)]


class GpuOverflow(Section):
    """GPU nodes in the same zone outside the placement group, for when that has no room."""

    enabled: Bool = True
    """Whether Karpenter may add GPU nodes outside the placement group."""
    max_nodes: Annotated[Int, Field(ge=1, le=498)] | None = None
    """GPU nodes outside the group at most; unset: half of those beyond the base, rounded down."""
    spot: Bool = False
    """Whether they may be Spot Instances, which EC2 takes back with two minutes' notice."""
    reservation_ids: Reservations = ()
    """Ids of On-Demand Capacity Reservations that were not created in the placement group."""
    capacity_block_ids: Reservations = ()
    """Ids of Capacity Blocks for ML, which end at a fixed time (P family types)."""

    @model_validator(mode="after")
    def _only_when_enabled(self) -> Self:
        """Unless `enabled`, nothing else is set."""
        if not self.enabled:
            for key, value in (
                ("maxNodes", self.max_nodes is not None),
                ("spot", self.spot),
                ("reservationIds", self.reservation_ids),
                ("capacityBlockIds", self.capacity_block_ids),
            ):
                if value:
                    raise Refusal(False, f"true while {key} is set, or no {key}", field="enabled")
        return self
