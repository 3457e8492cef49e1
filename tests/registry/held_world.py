"""A registry over tables in memory, with people who put workers aside, and who listen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.registry_tables import a_registry, downtimes_of, quarantines_of
from worker_manager.core.model import WorkerKey
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.deletions import Deletion
from worker_manager.registry.observations import Kind, Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker_manager.core.model import Json
    from worker_manager.store.tables import Tables

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
POOL = "proj-x/builders"
KEY = WorkerKey(POOL, "rack-1", "m-1")


@dataclass
class ListeningBackend(BuiltinBackend):
    """A queue that must be told of quarantines."""

    heard: list[tuple[WorkerKey, datetime, str]] = field(default_factory=list)

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        self.heard.append((key, until, info))


class World:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.registry = a_registry(tables)
        self.told: list[Json] = []
        self.quarantines = quarantines_of(self.registry, self._told)
        self.declarations = Declarations(self.registry)
        self.backend = ListeningBackend()

    def _told(self, key: str, events: Sequence[Json]) -> None:
        self.told += events
        self.tables.providers("#outbox", key).delete()

    def change(self, until: datetime, *, now: datetime = NOON, **more: Any) -> Any:
        said: dict[str, Any] = {"key": KEY, "info": "noisy", "client_id": "test/root", **more}
        return self.quarantines.change(until=until, now=now, **said)

    def see(self, *, now: datetime = NOON, key: WorkerKey = KEY) -> None:
        self.registry.observe([Observation(key, Kind.IDLE, now)])

    def names(self) -> list[str]:
        return [event["name"] for event in self.told]

    def deletion(
        self, *, now: datetime = NOON, is_late: Callable[[], bool] = lambda: False
    ) -> Deletion:
        """Of somebody in charge."""
        return Deletion(
            registry=self.registry,
            quarantines=self.quarantines,
            downtimes=downtimes_of(self.registry, self._told),
            backend=self.backend,
            by="ops/ann",
            now=now,
            is_late=is_late,
        )
