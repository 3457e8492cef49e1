"""What places have to give: room for machines by place, machine type and spot or not.

Read next: a cloud's ``limits``, which adds the account's quotas and words the refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Protocol


class Placed(Protocol):
    """What decides on whose capacity a machine draws."""

    @property
    def region(self) -> str:
        """The region."""
        ...

    @property
    def zone(self) -> str:
        """The zone in the region."""
        ...

    @property
    def instance_type(self) -> str:
        """The machine type."""
        ...

    @property
    def spot(self) -> bool:
        """Whether the cloud may take it back."""
        ...


Live = Callable[[], Iterable[Placed]]
"""The machines of a region that hold capacity."""


@dataclass(frozen=True, slots=True)
class CapacityScope:
    """What a capacity figure is about; ``None`` means any."""

    place: str
    """A region or a zone."""
    instance_type: str | None = None
    spot: bool | None = None

    def covers(self, *, region: str, zone: str, instance_type: str, spot: bool) -> bool:
        """Whether a machine of that kind in that place draws on this capacity."""
        return (
            self.place in (region, zone)
            and self.instance_type in (None, instance_type)
            and self.spot in (None, spot)
        )


class Capacity(dict[CapacityScope, int]):
    """Settable capacity; unlimited where nothing is set.  The cloud's lock guards it."""

    def room(self, live: Live, *, region: str, zone: str, instance_type: str, spot: bool) -> float:
        """For how many more machines of that kind there is room; infinite if nothing is set."""
        room = inf
        for scope, limit in self.items():
            if scope.covers(region=region, zone=zone, instance_type=instance_type, spot=spot):
                used = sum(1 for machine in live() if _draws_on(scope, machine))
                room = min(room, max(0, limit - used))
        return room


def _draws_on(scope: CapacityScope, machine: Placed) -> bool:
    return scope.covers(
        region=machine.region,
        zone=machine.zone,
        instance_type=machine.instance_type,
        spot=machine.spot,
    )
