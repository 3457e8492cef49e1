"""Audit trails: written with the change or not at all, read newest first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, a_pool, a_worker
from worker_manager.core.audit import Difference, Entry
from worker_manager.core.errors import ConflictError
from worker_manager.store.audit import TRAIL, AuditStore, position
from worker_manager.store.pools import PoolChange, PoolStore
from worker_manager.store.transactions import commit
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

POOL = "proj-x/pool-1"
KEPT = timedelta(days=400)
SECOND = timedelta(seconds=1)
CHANGES = ({"path": "/a", "before": 1.0, "after": None}, {"path": "/b", "after": "ä"})


def an_entry(audit_id: str = "a1", **overrides: Any) -> Entry:
    fields: dict[str, Any] = {
        "audit_id": audit_id,
        "pool_id": POOL,
        "entity": "worker-pool",
        "entity_id": POOL,
        "action": "updated",
        "client_id": "test/root",
        "time": NOW,
        "difference": Difference(CHANGES, left_out=3),
        "request_id": "r-1",
    }
    return Entry(**(fields | overrides))


@pytest.fixture
def store(tables: Tables) -> AuditStore:
    return AuditStore(tables, kept=KEPT)


@pytest.fixture
def workers(tables: Tables) -> WorkerStore:
    return WorkerStore(tables, kept=timedelta(days=8))


def write(tables: Tables, store: AuditStore, *entries: Entry) -> None:
    for entry in entries:
        commit(tables.connection, store.writes(entry))


@pytest.mark.parametrize("optional", [{}, {"client_id": None, "request_id": None}])
def test_an_entry_reads_back_as_it_was(
    tables: Tables, store: AuditStore, optional: dict[str, Any]
) -> None:
    entry = an_entry(**optional)
    write(tables, store, entry)
    assert list(store.newest_first(POOL)) == [entry]


def test_an_entry_ends_after_its_time(tables: Tables, store: AuditStore) -> None:
    write(tables, store, an_entry())
    item = tables.pools.get(POOL + TRAIL, position(an_entry()))
    assert item.ttl == int((NOW + KEPT).timestamp())


def test_the_newest_comes_first_and_a_position_leads_on(tables: Tables, store: AuditStore) -> None:
    entries = [an_entry(f"a{n}", time=NOW + n * SECOND) for n in range(5)]
    write(tables, store, *entries, an_entry("b", time=NOW), an_entry(pool_id="proj-x/other"))
    newest = [entry.audit_id for entry in store.newest_first(POOL, at_once=2)]
    assert newest == ["a4", "a3", "a2", "a1", "b", "a0"]
    rest = store.newest_first(POOL, before=position(entries[2]), at_once=1)
    assert [entry.audit_id for entry in rest] == ["a1", "b", "a0"]


def test_nothing_else_of_the_pool_is_in_its_trail(tables: Tables, store: AuditStore) -> None:
    PoolStore(tables).save(PoolChange(after=a_pool(), before=None, bodies=BODIES, events=[]))
    assert list(store.newest_first(POOL)) == []


BODIES = {"lc-a": {"region": "us-east-1"}}


def test_a_pools_change_and_its_entry_are_written_together(
    tables: Tables, store: AuditStore
) -> None:
    pools = PoolStore(tables)
    change = PoolChange(
        after=a_pool(), before=None, bodies=BODIES, events=[], also=store.writes(an_entry())
    )
    pools.save(change)
    late = replace(change, before=a_pool(version=5), also=store.writes(an_entry("a2")))
    with pytest.raises(ConflictError):
        pools.save(late)
    assert [entry.audit_id for entry in store.newest_first(POOL)] == ["a1"]


def test_a_trail_outlives_its_pool(tables: Tables, store: AuditStore) -> None:
    pools = PoolStore(tables)
    pool = a_pool()
    pools.save(
        PoolChange(after=pool, before=None, bodies=BODIES, events=[], also=store.writes(an_entry()))
    )
    pools.remove(pool)
    assert pools.get(POOL) is None
    assert list(store.newest_first(POOL)) == [an_entry()]


def test_a_new_worker_and_its_entry_are_written_together(
    store: AuditStore, workers: WorkerStore
) -> None:
    assert workers.put_new_with(a_worker(), store.writes(an_entry()))
    assert workers.get(a_worker().key) == a_worker()
    assert not workers.put_new_with(a_worker(), store.writes(an_entry("a2")))
    assert [entry.audit_id for entry in store.newest_first(POOL)] == ["a1"]


def test_where_there_is_no_entry_only_the_change_is_written(
    store: AuditStore, workers: WorkerStore
) -> None:
    assert workers.put_new_with(a_worker(), store.writes(None))
    assert list(store.newest_first(POOL)) == []
