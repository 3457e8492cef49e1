from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_plan, a_pool
from worker_manager.core.events import LAUNCH_CONFIG_PAUSED, pause_event
from worker_manager.core.plans import Control, Pause
from worker_manager.store.pauses import PauseStore
from worker_manager.store.places import PlaceStore
from worker_manager.store.plans import PlanStore
from worker_manager.store.pools import PoolChange, PoolStore

if TYPE_CHECKING:
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import Tables

HOUR = timedelta(hours=1)
EVENT = pause_event(LAUNCH_CONFIG_PAUSED, POOL_ID, "aws", "lc-a", at=NOW, reason="é", until=NOW)


@pytest.fixture
def store(tables: Tables) -> PauseStore:
    return PauseStore(tables)


@pytest.fixture(autouse=True)
def pools(tables: Tables) -> PoolStore:
    """With the pool that is paused in part."""
    pools = PoolStore(tables)
    pools.save(PoolChange(a_pool(heads=()), None, {}, events=()))
    return pools


def a_pause(**overrides: Any) -> Pause:
    values: dict[str, Any] = {"until": NOW + HOUR, "reason": "é", "by": "me", "since": NOW}
    return Pause(**(values | overrides))


def test_a_pause_comes_back_as_it_was_written_with_its_event(
    store: PauseStore, pools: PoolStore, tables: Tables
) -> None:
    assert store.write(POOL_ID, {}, {"lc-a": a_pause()}, event=EVENT, now=NOW)

    assert pools.control(POOL_ID) == Control(POOL_ID, pauses={"lc-a": a_pause()})
    (waiting,) = PlaceStore(tables).unpublished()
    assert waiting.events == [EVENT]


def test_who_read_other_pauses_changes_nothing(
    store: PauseStore, pools: PoolStore, tables: Tables
) -> None:
    first = {"lc-a": a_pause()}
    assert store.write(POOL_ID, {}, first, event=EVENT, now=NOW)

    assert not store.write(POOL_ID, {}, {"lc-b": a_pause()}, event={"id": "x"}, now=NOW)
    assert not store.write(POOL_ID, {"lc-a": a_pause(reason="y")}, {}, event={"id": "x"}, now=NOW)

    assert pools.control(POOL_ID).pauses == first
    assert len(list(PlaceStore(tables).unpublished())) == 1


def test_pauses_end_one_by_one_and_begin_again(store: PauseStore, pools: PoolStore) -> None:
    both = {"lc-b": a_pause(), "lc-a": a_pause()}
    steps: list[dict[str, Pause]] = [{}, both, {"lc-b": a_pause()}, {}, both]
    for number in range(1, len(steps)):
        event = {"id": f"e-{number}"}
        assert store.write(POOL_ID, steps[number - 1], steps[number], event=event, now=NOW)

    assert pools.control(POOL_ID).pauses == both


def test_planners_and_whoever_pauses_do_not_write_over_each_other(
    store: PauseStore, pools: PoolStore, tables: Tables
) -> None:
    plans = PlanStore(tables, kept=HOUR)
    seen = pools.control(POOL_ID)
    assert store.write(POOL_ID, {}, {"lc-a": a_pause()}, event=EVENT, now=NOW)

    assert plans.note(a_plan(), seen, reasons_hash="x") is not None
    plans.remember(pools.control(POOL_ID), reasons_hash="y")

    control = pools.control(POOL_ID)
    assert (control.version, control.reasons_hash) == (1, "y")
    assert control.pauses == {"lc-a": a_pause()}


def test_what_is_written_with_a_pause_is_written_or_not_as_it_is(
    store: PauseStore, pools: PoolStore, tables: Tables
) -> None:
    def also(transaction: TransactWrite) -> None:
        transaction.save(tables.pools(POOL_ID, "audit#x"))

    assert not store.write(POOL_ID, {"lc-a": a_pause()}, {}, event=EVENT, now=NOW, also=also)
    assert "audit#x" not in [item.sk for item in tables.pools.query(POOL_ID)]
    assert store.write(POOL_ID, {}, {"lc-a": a_pause()}, event=EVENT, now=NOW, also=also)
    assert "audit#x" in [item.sk for item in tables.pools.query(POOL_ID)]


def test_an_end_that_nobody_is_told_of_writes_no_event(store: PauseStore, tables: Tables) -> None:
    assert store.write(POOL_ID, {}, {"lc-a": a_pause()}, event=None, now=NOW)

    assert list(PlaceStore(tables).unpublished()) == []


def test_a_pause_brings_nothing_of_a_pool_back_that_is_gone(
    store: PauseStore, pools: PoolStore, tables: Tables
) -> None:
    pools.remove(a_pool())

    assert not store.write(POOL_ID, {}, {"lc-a": a_pause()}, event=EVENT, now=NOW)

    assert [item.sk for item in tables.pools.query(POOL_ID)] == []
