"""Who works where: memberships of pools, what each location's list said, and the outbox.

A membership's places are only ever added to by pool changes; ``expire`` takes out those that have
long been empty, so that a place is listed until long after its last machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pynamodb.exceptions import UpdateError

from worker_manager.core.ids import is_pool_id
from worker_manager.core.model import Json, Location
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.core.sightings import Baseline
from worker_manager.store.offering_items import OFFERING, to_offering
from worker_manager.store.outbox_items import OUTBOX
from worker_manager.store.transactions import is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from pynamodb.expressions.update import Action

    from worker_manager.core.breaker import Breaker
    from worker_manager.store.tables import ProviderItem, Tables

ALL = "#all"
LOC = "loc#"


@dataclass(frozen=True, slots=True)
class Membership:
    """A pool of a provider, and where it may have machines.

    ``previous`` if the pool has moved on to another provider; ``empty_since`` tells since when an
    unused place has been without workers.
    """

    pool_id: str
    previous: bool
    places: frozenset[Location]
    empty_since: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of one location.

    ``complete`` is when its last complete and believed list began; ``not_before`` until when the
    cloud asked not to be asked; ``strays`` how many machines without row that list's scans found,
    ``strays_held`` how many lists in a row had too many of them to believe; ``absent`` the pools
    that have moved away and of which that list showed nothing.
    """

    location: Location
    complete: datetime | None = None
    baseline: Baseline = field(default_factory=Baseline)
    strays: int = 0
    strays_held: int = 0
    absent: frozenset[str] = frozenset()
    not_before: datetime | None = None
    stale_since: datetime | None = None
    stale_reason: str | None = None

    def unlisted_since(self, now: datetime, patience: timedelta) -> datetime | None:
        """Since when no list of this location is believed; ``None`` while all is well.

        A list that fails says so.  One whose function dies says nothing, and shows by its absence:
        past ``patience`` the location is stale since its last complete list.
        """
        if self.stale_since is not None:
            return self.stale_since
        if self.complete is not None and now - self.complete > patience:
            return self.complete
        return None


@dataclass(frozen=True, slots=True)
class Survey:
    """All that is known of one provider: its members, locations, and breakers that are shared.

    ``offerings`` are those that are not closed, or were not within the hour.
    """

    members: list[Membership]
    places: dict[Location, Place]
    offerings: dict[str, Breaker]


@dataclass(frozen=True, slots=True)
class Unpublished:
    """Events that were written together with what they tell of, and when that was."""

    key: str
    created: datetime
    events: Sequence[Json]


class PlaceStore:
    """Table ``providers``."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = tables.providers

    def of_provider(self, provider_id: str) -> tuple[list[Membership], dict[Location, Place]]:
        """All members and locations of one provider, in one consistent query."""
        survey = self.survey(provider_id)
        return survey.members, survey.places

    def survey(self, provider_id: str, now: datetime | None = None) -> Survey:
        """Members, locations and, for ``now``, offerings of a provider, in one consistent query."""
        found = Survey([], {}, {})
        for item in self._model.query(provider_id, consistent_read=True):
            key = item.worker_pool_id
            if key.startswith(LOC):
                place = _to_place(item)
                found.places[place.location] = place
            elif key.startswith(OFFERING):
                known = to_offering(item, now) if now is not None else None
                if known is not None:
                    found.offerings[known[0]] = known[1]
            elif is_pool_id(key):
                found.members.append(_to_membership(item))
        return found

    def place(self, provider_id: str, location: Location) -> Place:
        """One location; an empty one if nothing was written of it yet."""
        try:
            return _to_place(self._model.get(provider_id, LOC + location, consistent_read=True))
        except self._model.DoesNotExist:
            return Place(location)

    def places(self, provider_id: str, locations: Collection[Location]) -> list[Place]:
        """Those of these locations that something was written of, in few requests."""
        keys = [(provider_id, LOC + name) for name in sorted(set(locations))]
        if not keys:
            return []
        return [_to_place(item) for item in self._model.batch_get(keys, consistent_read=True)]

    def believed(
        self,
        provider_id: str,
        before: Place,
        *,
        began: datetime,
        machines: int,
        strays_held: int = 0,
        absent: Collection[str] = (),
    ) -> None:
        """A complete list that began at ``began`` and showed ``machines`` was believed.

        ``strays_held`` lists in a row, this one included, had too many strays before them; of the
        previous pools in ``absent`` it showed nothing.
        What others added to ``told`` and ``strays`` since ``before`` was read is kept.
        """
        model = self._model
        model(provider_id, LOC + before.location).update(
            [
                model.complete.set(began),
                model.machines.set(machines),
                model.held.set(0),
                model.told.add(-before.baseline.told),
                model.strays.add(-before.strays),
                model.strays_held.set(strays_held),
                model.absent.set(set(absent)) if absent else model.absent.remove(),
                model.stale_since.remove(),
                model.stale_reason.remove(),
            ],
            add_version_condition=False,
        )

    def held(self, provider_id: str, location: Location, *, held: int, since: datetime) -> None:
        """A complete list was not believed; ``held`` in a row now."""
        reason = "the list lost too many machines at once; waiting for lists that agree"
        self._update(provider_id, location, held=held, stale_since=since, stale_reason=reason)

    def stale(
        self,
        provider_id: str,
        location: Location,
        *,
        since: datetime,
        reason: str,
        not_before: datetime | None = None,
    ) -> None:
        """A list failed; nothing is concluded about ``location`` since ``since``.

        A pause that was asked for before stays, where no longer one is given.
        """
        self._update(provider_id, location, stale_since=since, stale_reason=reason[:500])
        if not_before is not None:
            self.postpone(provider_id, location, not_before)

    def postpone(self, provider_id: str, location: Location, not_before: datetime) -> None:
        """The cloud asked for a pause: no orders to ``location`` before then.

        Of two pauses the longer one counts, in whatever order they are written.
        """
        model = self._model
        try:
            model(provider_id, LOC + location).update(
                [model.not_before.set(not_before)],
                condition=model.not_before.does_not_exist() | (model.not_before < not_before),
                add_version_condition=False,
            )
        except UpdateError as error:
            if not is_condition_failure(error):
                raise

    def told_to_stop(self, provider_id: str, location: Location, count: int) -> None:
        """So many machines there were told to stop since the last list."""
        self._add(provider_id, location, "told", count)

    def found_strays(self, provider_id: str, location: Location, count: int) -> None:
        """So many machines without row or order were seen there by the last list."""
        self._add(provider_id, location, "strays", count)

    def note_empty(
        self,
        provider_id: str,
        member: Membership,
        *,
        empty_since: Mapping[str, datetime],
        gone: Collection[Location],
    ) -> None:
        """Write since when unused places are empty, and take out those in ``gone``."""
        actions: list[Action] = []
        if empty_since != member.empty_since:
            stored = {name: to_wire(moment) for name, moment in empty_since.items()}
            actions.append(self._model.empty_since.set(stored))
        if gone:
            actions.append(self._model.places.delete(sorted(gone)))
        if actions:
            self._model(provider_id, member.pool_id).update(
                actions,
                condition=self._model.worker_pool_id.exists(),
                add_version_condition=False,
            )

    def unpublished(self, *, limit: int = 200) -> Iterator[Unpublished]:
        """Outbox items, oldest first."""
        for item in self._model.query(OUTBOX, limit=limit, consistent_read=True):
            if item.created is not None:
                yield Unpublished(item.worker_pool_id, item.created, json.loads(item.event or "[]"))

    def published(self, key: str) -> None:
        """Remove one outbox item; removing it twice is fine."""
        self._model(OUTBOX, key).delete(add_version_condition=False)

    def _update(self, provider_id: str, location: Location, **values: Any) -> None:
        actions = [getattr(self._model, name).set(value) for name, value in values.items()]
        item = self._model(provider_id, LOC + location)
        item.update(actions, add_version_condition=False)

    def _add(self, provider_id: str, location: Location, name: str, count: int) -> None:
        item = self._model(provider_id, LOC + location)
        item.update([getattr(self._model, name).add(count)], add_version_condition=False)


def membership_item(
    model: type[ProviderItem],
    provider_id: str,
    pool_id: str,
    *,
    locations: Collection[Location],
    previous: bool,
) -> tuple[ProviderItem, list[Action]]:
    """The update that makes a pool a member: known places stay, new ones are added."""
    actions: list[Action] = [model.previous.set(previous)]
    if locations:
        actions.append(model.places.add(set(locations)))
    return model(provider_id, pool_id), actions


def _to_membership(item: ProviderItem) -> Membership:
    return Membership(
        pool_id=item.worker_pool_id,
        previous=bool(item.previous),
        places=frozenset(Location(name) for name in item.places or ()),
        empty_since={name: from_wire(text) for name, text in (item.empty_since or {}).items()},
    )


def _to_place(item: ProviderItem) -> Place:
    return Place(
        location=Location(item.worker_pool_id.removeprefix(LOC)),
        complete=item.complete,
        baseline=Baseline(
            machines=int(item.machines or 0),
            told=int(item.told or 0),
            held=int(item.held or 0),
        ),
        strays=int(item.strays or 0),
        strays_held=int(item.strays_held or 0),
        absent=frozenset(item.absent or ()),
        not_before=item.not_before,
        stale_since=item.stale_since,
        stale_reason=item.stale_reason,
    )
