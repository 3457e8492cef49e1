"""Downtimes of whole worker types: who closed one, its events, and its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.registry_tables import a_registry, downtimes_of
from worker_manager.core.activity import Downtime
from worker_manager.core.errors import NotFoundError, QueueUnavailableError
from worker_manager.core.model import WorkerKey
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.observations import Kind, Observation
from worker_manager.store.registry_table import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import Json
    from worker_manager.store.tables import Tables

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POOL = "proj-x/builders"


class World:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.registry = a_registry(tables)
        self.told: list[Json] = []
        self.downtimes = downtimes_of(self.registry, self._told)

    def _told(self, key: str, events: Sequence[Json]) -> None:
        self.told += events
        self.tables.providers("#outbox", key).delete()

    def change(self, until: datetime, *, now: datetime = NOON, **more: Any) -> Any:
        said: dict[str, Any] = {"queue_id": POOL, "info": "power", "client_id": "ops/ann", **more}
        return self.downtimes.change(until=until, now=now, **said)

    def names(self) -> list[str]:
        return [event["name"] for event in self.told]

    def downtime(self, now: datetime = NOON) -> Downtime | None:
        found = self.registry.worker_type(POOL)
        assert found is not None
        return found.downtime_at(now)


@pytest.fixture
def world(tables: Tables) -> World:
    return World(tables)


def test_who_closed_a_type_when_and_why_is_known_also_of_one_never_seen(world: World) -> None:
    world.change(NOON + HOUR)

    assert world.downtime() == Downtime(NOON + HOUR, NOON, "ops/ann", "power")
    assert world.downtime(NOON + HOUR) is None
    assert world.registry.provisioner("proj-x") is not None
    assert world.downtimes.in_force(now=NOON) == {POOL: NOON + HOUR}
    assert world.told[0]["detail"] == {
        "workerPoolId": POOL,
        "timestamp": "2026-11-30T12:00:00.000Z",
        "closedUntil": "2026-11-30T13:00:00.000Z",
        "reason": "power",
        "clientId": "ops/ann",
    }


def test_a_declaration_leaves_a_downtime_as_it_is_and_so_does_a_sighting(world: World) -> None:
    world.change(NOON + HOUR)
    said = {"description": "x"}
    Declarations(world.registry).worker_type(POOL, said, by="ops/bob", now=NOON)
    world.registry.observe([Observation(WorkerKey(POOL, "g", "w"), Kind.IDLE, NOON)])

    assert world.downtime() == Downtime(NOON + HOUR, NOON, "ops/ann", "power")


def test_each_change_is_told_and_what_is_so_already_is_no_news(world: World) -> None:
    for until, info, client_id in (
        (NOON + HOUR, "power", "ops/ann"),
        (NOON + HOUR, "power", "ops/ann"),
        (NOON + HOUR, "still no power", "ops/ann"),
        (NOON + 2 * HOUR, "still no power", "ops/ann"),
        (NOON, "back", "ops/bob"),
        (NOON, "back", "ops/bob"),
    ):
        world.change(until, info=info, client_id=client_id)

    assert world.names() == ["task-queue-closed"] * 3 + ["task-queue-opened"]
    assert world.told[-1]["detail"]["clientId"] == "ops/bob"
    assert "closedUntil" not in world.told[-1]["detail"]
    assert world.downtime() is None
    assert world.downtimes.in_force(now=NOON) == {}


def test_opening_a_type_nobody_knows_makes_none(world: World) -> None:
    with pytest.raises(NotFoundError):
        world.change(NOON)

    assert world.registry.worker_type(POOL) is None


def test_an_end_that_comes_by_itself_is_told_once_and_on_time(world: World) -> None:
    world.change(NOON + HOUR)
    assert world.downtimes.open_due(now=NOON + HOUR - timedelta(milliseconds=1)) == 0
    assert [world.downtimes.open_due(now=NOON + HOUR) for _ in range(2)] == [1, 0]

    assert world.names() == ["task-queue-closed", "task-queue-opened"]
    detail = world.told[-1]["detail"]
    assert detail["reason"] == "its time is over"
    assert "clientId" not in detail


def test_a_type_closed_anew_before_its_end_was_told_is_not_opened(world: World) -> None:
    world.change(NOON + HOUR)
    world.change(NOON + 3 * HOUR, now=NOON + 2 * HOUR)

    assert world.downtimes.open_due(now=NOON + 2 * HOUR) == 0
    assert world.names() == ["task-queue-closed"] * 2


def test_a_line_that_its_type_does_not_know_of_is_dropped(world: World) -> None:
    world.change(NOON + HOUR)
    world.registry.deletions.remove_type(POOL)

    assert world.downtimes.open_due(now=NOON + HOUR) == 0
    assert world.downtimes.in_force(now=NOON) == {}
    assert world.names() == ["task-queue-closed"]


@pytest.mark.parametrize("races", [1, 99])
def test_who_loses_a_race_reads_again(
    world: World, monkeypatch: pytest.MonkeyPatch, races: int
) -> None:
    name = world.registry.table.name
    lost: list[str] = []

    def raced(partition: str, of: str) -> Any:
        found = name(partition, of)
        if partition == TYPES and len(lost) < races:
            lost.append(of)
            said = {"description": f"{len(lost)}"}
            with monkeypatch.context() as patch:
                patch.setattr(world.registry.table, "name", name)
                Declarations(world.registry).worker_type(POOL, said, by="x", now=NOON)
        return found

    monkeypatch.setattr(world.registry.table, "name", raced)
    if races == 99:
        with pytest.raises(QueueUnavailableError):
            world.change(NOON + HOUR)
        return
    world.change(NOON + HOUR)

    found = world.registry.worker_type(POOL)
    assert found is not None
    assert (found.declaration.description, found.downtime is None) == ("1", False)


def test_an_event_that_could_not_be_sent_waits_in_the_outbox(tables: Tables) -> None:
    downtimes = downtimes_of(a_registry(tables))
    downtimes.change(POOL, NOON + HOUR, info="", client_id="ops/ann", now=NOON)

    assert len(list(tables.providers.query("#outbox"))) == 1
