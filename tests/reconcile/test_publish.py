"""Events that nobody else gets to: sent late, but sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_pool, a_worker
from tests.reconcile.test_expire import House, a_static_worker, an_event
from worker_manager.core.events import POOL_CREATED, pool_event
from worker_manager.reconcile.publish import publish
from worker_manager.store.pools import PoolChange

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

LAG = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


@pytest.fixture
def house(tables: Tables) -> House:
    return House(tables)


def create(house: House, pool_id: str = POOL_ID, *, provider_id: str = "static") -> None:
    """A pool whose writer did not get to publish."""
    event = pool_event(POOL_CREATED, pool_id, provider_id, created=NOW, version=1)
    pool = a_pool(pool_id, (), provider_id=provider_id)
    house.pools.save(PoolChange(pool, None, {}, events=[event]))


def test_events_are_left_to_their_writer_while_young_and_sent_when_late(house: House) -> None:
    create(house)

    house.now = NOW + LAG
    assert publish(house.keeper) == {"waiting": 0, "sent": 0}
    house.now += SECOND
    assert publish(house.keeper) == {"waiting": 1, "sent": 1}
    assert publish(house.keeper) == {"waiting": 0, "sent": 0}

    assert house.bus.names == ["worker-pool-created"]


def test_refused_events_wait_for_the_next_time(house: House) -> None:
    create(house)
    house.now = NOW + timedelta(hours=1)
    house.bus.refusing = True
    assert publish(house.keeper) == {"waiting": 1, "sent": 0}

    house.bus.refusing = False
    assert publish(house.keeper) == {"waiting": 1, "sent": 1}


def test_static_workers_events_are_sent_when_late(house: House) -> None:
    create(house)
    young, late = a_static_worker("rack-1", modified=NOW), a_static_worker("rack-2")
    for worker in (young, late):
        house.put(replace(worker, unsent=(an_event(worker),)))
    house.put(a_static_worker("rack-3"))

    house.now = NOW + SECOND
    publish(house.keeper)

    left = {w.key.worker_id for w in house.workers.live(POOL_ID) if w.unsent}
    assert left == {"rack-1"}
    assert house.bus.names == ["worker-running"]


def test_workers_of_a_cloud_are_left_to_their_scan(house: House) -> None:
    create(house)
    worker = a_worker()
    house.put(replace(worker, unsent=(an_event(worker),)))

    house.now = NOW + SECOND
    publish(house.keeper)

    assert house.bus.names == []


def test_what_fails_stops_no_other(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        create(house, f"proj-x/{name}")
        worker = a_static_worker(pool_id=f"proj-x/{name}")
        house.put(replace(worker, unsent=(an_event(worker),)))
    send, live = house.keeper.outbox.send, house.workers.live

    def failing_send(key: str, events: Any) -> bool:
        if events[0]["detail"]["workerPoolId"] == "proj-x/a":
            raise RuntimeError("DynamoDB has a bad day")
        return send(key, events)

    def failing_live(pool_id: str) -> Any:
        if pool_id == "proj-x/a":
            raise RuntimeError("DynamoDB has a bad day")
        return live(pool_id)

    monkeypatch.setattr(house.keeper.outbox, "send", failing_send)
    monkeypatch.setattr(house.workers, "live", failing_live)
    house.now = NOW + timedelta(hours=1)

    assert publish(house.keeper) == {"waiting": 2, "sent": 1}
    assert house.bus.names == ["worker-pool-created", "worker-running"]
