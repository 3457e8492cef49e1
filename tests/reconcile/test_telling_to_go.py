"""Whether a worker should terminate is written on its row, if it may be and nobody came first."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.factories import NOW, POOL_ID, a_worker
from worker_manager.core.model import Surplus
from worker_manager.core.surplus import OVER_CAPACITY
from worker_manager.reconcile.telling_to_go import write_answers
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from worker_manager.core.model import Worker
    from worker_manager.store.tables import Tables

GO = Surplus(True, OVER_CAPACITY, NOW)


def with_rows(tables: Tables) -> tuple[WorkerStore, list[Worker]]:
    store = WorkerStore(tables, kept=timedelta(days=1))
    rows = [a_worker(name) for name in ("i-1", "i-2", "i-3")]
    for row in rows:
        store.put_new(row)
    return store, rows


def told(store: WorkerStore) -> list[str]:
    return [w.key.worker_id for w in store.live(POOL_ID) if w.surplus == GO]


def test_a_row_that_changed_meanwhile_is_left_to_the_next_time(tables: Tables) -> None:
    store, rows = with_rows(tables)
    store.change(rows[1], first_claim=NOW)

    write_answers(POOL_ID, [(row, GO) for row in rows], store, parallel=8)

    assert sorted(told(store)) == ["i-1", "i-3"]


def test_what_time_no_longer_allows_is_left_to_the_next_time(tables: Tables) -> None:
    store, rows = with_rows(tables)
    allowed = iter([True, False, False])

    write_answers(
        POOL_ID, [(r, GO) for r in rows], store, parallel=1, may_write=lambda: next(allowed)
    )

    assert told(store) == ["i-1"]
