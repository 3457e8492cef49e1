"""Static workers hear that their launch config is archived, and only they, and only then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_head, a_worker
from tests.reconcile.test_expire import HOUR, NOWHERE, House, a_static_worker, an_event
from worker_manager.core.model import NULL_PROVIDER, State, Surplus
from worker_manager.core.surplus import ARCHIVED, NEEDED, OVER_CAPACITY
from worker_manager.reconcile.publish import publish

if TYPE_CHECKING:
    from worker_manager.core.model import Pool, Worker
    from worker_manager.store.tables import Tables

LATER = timedelta(minutes=1)


@pytest.fixture
def house(tables: Tables) -> House:
    return House(tables)


def define(house: House, *names: str, pool_id: str = POOL_ID, **overrides: Any) -> Pool:
    heads = [a_head(name, location=NOWHERE) for name in names]
    return house.save(pool_id, heads=heads, **{"provider_id": "static"} | overrides)


def tick(house: House) -> None:
    house.now += LATER
    publish(house.keeper)


def answer(house: House, worker: Worker) -> tuple[bool, str] | None:
    row = house.workers.get(worker.key)
    assert row is not None
    return None if row.surplus is None else (row.surplus.terminate, row.surplus.reason)


def test_a_worker_of_an_archived_launch_config_is_told_within_a_minute(house: House) -> None:
    define(house, "lc-a")
    worker = house.put(a_static_worker(launch_config_id="lc-a"))
    tick(house)
    assert answer(house, worker) is None

    define(house, "lc-b")
    tick(house)

    assert answer(house, worker) == (True, ARCHIVED)


def test_nothing_is_written_while_nothing_changes(house: House) -> None:
    define(house, "lc-a")
    current = house.put(a_static_worker(launch_config_id="lc-a"))
    define(house, "lc-b")
    told = house.put(
        a_static_worker(
            "rack-2", launch_config_id="lc-a", surplus=Surplus(True, ARCHIVED, house.now)
        )
    )
    house.put(a_static_worker("rack-3", launch_config_id="lc-b"))
    tick(house)
    versions = [house.workers.get(w.key) for w in (current, told)]
    tick(house)
    assert [house.workers.get(w.key) for w in (current, told)] == versions


def test_the_answer_is_taken_back_when_the_launch_config_comes_back(house: House) -> None:
    define(house, "lc-a")
    worker = house.put(a_static_worker(launch_config_id="lc-a"))
    define(house, "lc-b")
    tick(house)

    define(house, "lc-a")
    tick(house)

    assert answer(house, worker) == (False, NEEDED)


def test_a_worker_that_registers_meanwhile_is_not_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(house, "lc-b")
    worker = house.put(a_static_worker(launch_config_id="lc-a"))
    read = house.pools.get

    def registers(pool_id: str) -> Any:
        house.workers.change(worker, launch_config_id="lc-b")
        return read(pool_id)

    monkeypatch.setattr(house.pools, "get", registers)
    tick(house)

    assert answer(house, worker) is None


def test_a_worker_whose_machine_went_silent_stays_for_whoever_looks_into_it(house: House) -> None:
    """B22 (taskcluster#4928): a cloud's machine is gone for good, hardware is repaired.

    Its quarantine is the queue's, which nobody here touches.
    """
    define(house, "lc-a")
    worker = house.put(a_static_worker(launch_config_id="lc-a", expires=NOW + 50 * HOUR))
    for _ in range(48):
        tick(house)
        house.pass_by(HOUR)

    assert house.state(worker) is State.RUNNING
    assert answer(house, worker) is None


def test_workers_of_a_deleted_pool_are_told(house: House) -> None:
    define(house, "lc-a")
    worker = house.put(a_static_worker(launch_config_id="lc-a"))

    define(house, provider_id=NULL_PROVIDER, previous_provider_ids=("static",))
    tick(house)

    assert answer(house, worker) == (True, ARCHIVED)


def test_a_pool_that_moved_to_a_cloud_is_left_to_its_provisioning(house: House) -> None:
    define(house, "lc-a")
    worker = house.put(
        a_static_worker(launch_config_id="lc-a", surplus=Surplus(True, OVER_CAPACITY, NOW))
    )

    define(house, "lc-b", provider_id="aws", previous_provider_ids=("static",))
    tick(house)

    assert answer(house, worker) == (True, OVER_CAPACITY)


def test_workers_of_a_cloud_are_left_to_it(house: House) -> None:
    define(house, "lc-b", previous_provider_ids=("aws",))
    worker = house.put(a_worker(launch_config_id="lc-a"))

    tick(house)

    assert answer(house, worker) is None


def test_an_answer_does_not_lose_an_event_that_waits(house: House) -> None:
    define(house, "lc-b")
    worker = a_static_worker(launch_config_id="lc-a")
    house.put(replace(worker, unsent=(an_event(worker),)))
    house.bus.refusing = True
    tick(house)
    assert answer(house, worker) == (True, ARCHIVED)

    house.bus.refusing = False
    tick(house)

    assert house.bus.names == ["worker-running"]


def test_a_launch_config_is_kept_while_a_static_worker_has_it(house: House) -> None:
    define(house, "lc-a")
    worker = house.put(a_static_worker(launch_config_id="lc-a"))
    define(house, "lc-b")
    house.pass_by(HOUR)
    assert house.ends("lc-a") is None

    row = house.workers.get(worker.key)
    assert row is not None
    house.workers.change(row, launch_config_id="lc-b")
    house.pass_by(HOUR / 2)

    end = house.now + house.keeper.timing.launch_config_kept
    assert house.ends("lc-a") == int(end.timestamp())
