"""Telling others without losing it: publish what was written together with its transition.

Whatever could not be published stays where it was written, and the next scan, or the scheduled
``publish``, sends it again.  Nothing that is being done ever fails because of an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.events import error_events
from worker_manager.store.outbox_items import outbox_key
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker_manager.bus import Bus
    from worker_manager.core.model import Json, PoolError, Worker
    from worker_manager.store.places import PlaceStore
    from worker_manager.store.pool_errors import PoolErrorStore
    from worker_manager.store.workers import WorkerStore


class Outbox:
    """The way from a written transition to the bus."""

    def __init__(
        self, *, bus: Bus, places: PlaceStore, workers: WorkerStore, errors: PoolErrorStore
    ) -> None:
        """Over the stores that hold what is unsent."""
        self._bus = bus
        self._places = places
        self._workers = workers
        self._errors = errors

    def send_workers(self, workers: Iterable[Worker]) -> None:
        """Publish the unsent events of these rows and clear those that were accepted."""
        waiting = [worker for worker in workers if worker.unsent]
        accepted = self._bus.publish([event for w in waiting for event in w.unsent])
        self._workers.sent(
            [w for w in waiting if all(event["id"] in accepted for event in w.unsent)]
        )

    def send(self, key: str, events: Sequence[Json]) -> bool:
        """Publish one outbox item and remove it; whether all of it was accepted."""
        accepted = self._bus.publish(events)
        if all(event["id"] in accepted for event in events):
            self._places.published(key)
            return True
        return False

    def change_and_record(
        self, before: Worker, error: PoolError, provider_id: str, **changes: Any
    ) -> Worker | None:
        """Change a row and record an error of it in one; ``None``, and no error, if it moved on.

        ``tell`` publishes the error afterwards; until then it waits with its events.
        """
        events = error_events(error, provider_id)
        for is_late in (False, True):
            also = self._errors.writes(error, events, is_late=is_late)
            after = self._workers.change_with(before, also, **changes)
            if after is not None:
                return after
        return None

    def report(self, error: PoolError, provider_id: str, *, mails: bool = True) -> None:
        """Record a pool error and tell of it; a repeat of the same error id does nothing.

        ``mails`` is false where it is known that the pool's owner wants no mail.
        """
        events = error_events(error, provider_id)
        if self._errors.record(error, events, mails=mails) is not None:
            self.tell(error, provider_id)

    def tell(self, error: PoolError, provider_id: str) -> None:
        """Log and publish an error that was recorded just now."""
        events = error_events(error, provider_id)
        logger.info(
            "pool error",
            pool=error.pool_id,
            kind=error.kind,
            title=error.title,
            error_id=error.error_id,
            launch_config=error.launch_config_id,
        )
        self.send(outbox_key(events, error.reported), events)
