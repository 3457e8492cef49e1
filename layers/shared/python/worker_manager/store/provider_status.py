"""Which providers fail at what, and since when.

Launching and listing may need different permissions, so each activity fails and recovers by
itself.  An item is written when something begins to fail or fails otherwise, and at most once a
minute while it goes on; a container that knows of no change asks the table at most as often.  A
success removes it, and what nobody has seen fail for long no longer counts: its item lapses.

Where to read next: ``reconcile.provider_status``, which writes; ``api.providers``, which shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING

from pynamodb.exceptions import DeleteError, UpdateError

from worker_manager.store.transactions import is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action

    from worker_manager.store.tables import ProviderItem, Tables

STATUS = "#status#"
REFRESH = timedelta(minutes=1)
"""How often what does not change is written, or looked for, at most."""
LONGEST_REASON = 300
KEPT = timedelta(days=7)
"""How long an item stays in the table after a failure was last seen."""


class Activity(StrEnum):
    """What a provider may fail at."""

    SETUP = "setup"
    """starting: its code, its settings, its secret"""
    LIST = "list"
    TERMINATE = "terminate"


UNSEEN: Mapping[Activity, timedelta] = {
    Activity.SETUP: timedelta(minutes=10),
    Activity.LIST: timedelta(minutes=10),
    Activity.TERMINATE: timedelta(hours=1),
}
"""What nobody has seen fail for so long fails no more, as far as anybody can know.

The first two are tried at every tick, the last only where there is something to delete.
"""


@dataclass(frozen=True, slots=True)
class Failing:
    """A provider fails at ``activity`` since ``since``; ``seen`` is when it last did.

    ``kind`` is the error's, ``reason`` is for everybody to see.
    """

    activity: Activity
    since: datetime
    seen: datetime
    kind: str
    reason: str

    def is_current(self, now: datetime) -> bool:
        """Whether it is still so, as far as anybody can know."""
        return now - self.seen < UNSEEN[self.activity]


class ProviderStatusStore:
    """Items ``#status#<activity>`` in the partitions of table ``providers``."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = tables.providers
        self._known: dict[tuple[str, str], tuple[str | None, datetime]] = {}
        self._lock = Lock()

    def failing(self, provider_id: str, now: datetime) -> list[Failing]:
        """What the provider fails at, what failed first in front; usually nothing."""
        found = self._model.query(
            provider_id, self._model.worker_pool_id.startswith(STATUS), consistent_read=True
        )
        failing = [_to_failing(item) for item in found]
        current = [one for one in failing if one.is_current(now)]
        return sorted(current, key=lambda one: one.since)

    def failed(
        self, provider_id: str, activity: Activity, *, kind: str, reason: str, now: datetime
    ) -> bool:
        """It failed at ``activity``; whether that was written, so that it is logged as often."""
        reason = reason[:LONGEST_REASON]
        if not self._is_news(provider_id, activity, reason, now):
            return False
        model = self._model
        lapsed = now - UNSEEN[activity]
        changes = [
            model.seen.set(now),
            model.kind.set(kind),
            model.reason.set(reason),
            model.ttl.set(int((now + KEPT).timestamp())),
        ]
        if not self._update(provider_id, activity, changes, condition=model.seen > lapsed):
            changes.append(model.since.set(now))
            begins = model.seen.does_not_exist() | (model.seen <= lapsed)
            self._update(provider_id, activity, changes, condition=begins)
        self._remember(provider_id, activity, reason, now)
        return True

    def recovered(self, provider_id: str, activity: Activity, *, now: datetime) -> bool:
        """It did not fail at ``activity``; whether it had until now.

        A failure that was seen while we looked stays.
        """
        if not self._is_news(provider_id, activity, None, now):
            return False
        is_over = self._remove(provider_id, activity)
        self._remember(provider_id, activity, None, now)
        return is_over

    def is_failing_here(self, provider_id: str) -> bool:
        """Whether the last that this container saw of any activity was a failure."""
        with self._lock:
            return any(
                reason is not None
                for (name, _), (reason, _) in self._known.items()
                if name == provider_id
            )

    def _update(
        self,
        provider_id: str,
        activity: Activity,
        changes: Sequence[Action],
        *,
        condition: Condition,
    ) -> bool:
        """Change an item where the condition holds; whether it did."""
        try:
            self._model(provider_id, STATUS + activity).update(
                list(changes), condition=condition, add_version_condition=False
            )
        except UpdateError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True

    def _remove(self, provider_id: str, activity: Activity) -> bool:
        """Remove an item as it is now; whether there was one, and nobody changed it meanwhile."""
        model = self._model
        item = model(provider_id, STATUS + activity)
        try:
            item.refresh(consistent_read=True)
        except model.DoesNotExist:
            return False
        try:
            item.delete(condition=model.seen == item.seen, add_version_condition=False)
        except DeleteError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True

    def _is_news(
        self, provider_id: str, activity: Activity, reason: str | None, now: datetime
    ) -> bool:
        """Whether this container had not written, or looked, as much within the last minute."""
        with self._lock:
            known = self._known.get((provider_id, activity))
        return known is None or known[0] != reason or now - known[1] >= REFRESH

    def _remember(
        self, provider_id: str, activity: Activity, reason: str | None, now: datetime
    ) -> None:
        """Note what this container saw, once the table knows of it."""
        with self._lock:
            self._known[provider_id, activity] = (reason, now)


def _to_failing(item: ProviderItem) -> Failing:
    assert item.since is not None
    assert item.seen is not None
    return Failing(
        activity=Activity(item.worker_pool_id.removeprefix(STATUS)),
        since=item.since,
        seen=item.seen,
        kind=item.kind or "",
        reason=item.reason or "",
    )
