"""Breakers that pools share: one item an offering, in its provider's partition.

Every change is conditional on what was read, so that of many pools that meet the same refusal one
writes it, and of many that would probe one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pynamodb.exceptions import UpdateError

from worker_manager.core.breaker import Breaker, BreakerState, credentials_key, probe, recover, trip
from worker_manager.core.health import REMEMBERED, WINDOW
from worker_manager.core.standing import location_of_offering
from worker_manager.store.offering_items import OFFERING, to_offering
from worker_manager.store.transactions import is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from worker_manager.store.tables import Tables


class OfferingStore:
    """Table ``providers``, items of offerings."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = tables.providers

    def get(self, provider_id: str, offering: str) -> Breaker | None:
        """One breaker, closed ones included, read consistently."""
        try:
            item = self._model.get(provider_id, OFFERING + offering, consistent_read=True)
        except self._model.DoesNotExist:
            return None
        return Breaker.from_json(item.breaker) if item.breaker else None

    def known(
        self, provider_id: str, offerings: Collection[str], *, now: datetime
    ) -> dict[str, Breaker]:
        """Those of ``offerings``, and their locations' credentials, that failed lately."""
        places = {credentials_key(location_of_offering(name)) for name in offerings}
        wanted = sorted({OFFERING + name for name in {*offerings, *places}})
        if not wanted:
            return {}
        keys = [(provider_id, name) for name in wanted]
        found = self._model.batch_get(keys, consistent_read=True)
        return dict(one for item in found if (one := to_offering(item, now)) is not None)

    def claim(self, provider_id: str, offering: str, seen: Breaker, at: datetime) -> bool:
        """Make ``seen`` half-open, because it is to be probed; false if somebody else does."""
        return self._write(provider_id, offering, seen, probe(seen, at))

    def failed(
        self, provider_id: str, offering: str, *, kind: str, reason: str, at: datetime
    ) -> bool:
        """A call was refused at ``at``; whether this opened the breaker.

        Whoever reports the same meanwhile is as right.
        """
        before = self.get(provider_id, offering)
        after = trip(before, kind, reason, at)
        return after != before and self._write(provider_id, offering, before, after)

    def worked(self, provider_id: str, offering: str, at: datetime) -> None:
        """A probe got its machine: closed again, and remembered for a while."""
        before = self.get(provider_id, offering)
        if before is not None and before.state is BreakerState.HALF_OPEN:
            self._write(provider_id, offering, before, recover(before, at))

    def counted(self, provider_id: str, offering: str, seen: Breaker, after: Breaker) -> None:
        """Keep what a tick found out about an open breaker, if it is still the one seen."""
        self._write(provider_id, offering, seen, after)

    def _write(
        self, provider_id: str, offering: str, before: Breaker | None, after: Breaker
    ) -> bool:
        model = self._model
        kept = after.since + REMEMBERED if after.next_try is None else after.next_try + 24 * WINDOW
        unchanged = model.since.does_not_exist() if before is None else model.since == before.since
        try:
            model(provider_id, OFFERING + offering).update(
                [
                    model.breaker.set(after.to_json()),
                    model.since.set(after.since),
                    model.ttl.set(int(kept.timestamp())),
                ],
                condition=unchanged,
                add_version_condition=False,
            )
        except UpdateError as error:
            if is_condition_failure(error):
                return False
            raise
        return True
