"""Comparing a complete list of machines with our rows.

Only a list that was read to its end concludes anything.  ``match`` partitions the union of rows
and sightings into matched, missing and stray; rows too young to be in the list are not judged.
``Baseline.accept`` is the breaker over whole locations: a list that lost too many machines at once
is not believed until three in a row agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.core.model import MachineStatus, Sighting, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

CONSISTENT_LISTS = 3
"""So many complete lists must agree before a suspicious one is acted upon."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Rows with their sightings, rows that should have been seen, machines without a row."""

    seen: tuple[tuple[Worker, Sighting], ...]
    missing: tuple[Worker, ...]
    young: tuple[Worker, ...]
    strays: tuple[Sighting, ...]


def match(
    workers: Iterable[Worker],
    sightings: Iterable[Sighting],
    *,
    listed_at: datetime,
    list_lag: timedelta,
) -> Matched:
    """Partition rows and sightings of one pool and location.

    ``listed_at`` is when the list began, ``list_lag`` how far it may lag: a row created or changed
    after their difference is ``young`` and not judged by its absence.
    """
    unmatched = {sighting.key: sighting for sighting in sightings}
    seen, missing, young = [], [], []
    for worker in workers:
        sighting = unmatched.pop(worker.key, None)
        if sighting is not None:
            seen.append((worker, sighting))
        elif max(worker.created, worker.modified) > listed_at - list_lag:
            young.append(worker)
        else:
            missing.append(worker)
    strays = tuple(
        sighting for sighting in unmatched.values() if sighting.status is not MachineStatus.GONE
    )
    return Matched(tuple(seen), tuple(missing), tuple(young), strays)


def orphans(
    strays: Iterable[Sighting], ordered: Mapping[str, object]
) -> tuple[list[Sighting], list[Sighting]]:
    """Split strays into those an open plan ordered (to adopt) and the rest."""
    adopted: list[Sighting] = []
    rest: list[Sighting] = []
    for stray in strays:
        (adopted if stray.order_id in ordered else rest).append(stray)
    return adopted, rest


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the last believed list of a location showed.

    ``machines`` that were not stopping; ``told`` of them told to stop since; ``held`` lists in a
    row that were not believed.
    """

    machines: int = 0
    told: int = 0
    held: int = 0

    def accept(self, machines: int) -> tuple[bool, Baseline]:
        """Whether to believe a complete list showing ``machines``, and the next baseline."""
        expected = max(0, self.machines - self.told)
        lost = expected - machines
        if lost > max(5, 0.2 * expected) and self.held + 1 < CONSISTENT_LISTS:
            return False, replace(self, held=self.held + 1)
        return True, Baseline(machines=machines)


def too_many_strays(strays: int, machines: int) -> bool:
    """Whether machines without rows are so many that our rows are the likelier fault."""
    return strays > max(5, 0.05 * machines)
