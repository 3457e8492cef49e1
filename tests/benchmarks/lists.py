"""What it costs to list and to search 10,000 workers of 400 pools, each known to both sides.

The registry's API over tables in memory, asked as operators ask it, page by page to the end.
Seconds are processor time without that of the tables, which are in the same process.
Read next: ``polling_fleet``, whose workers these are.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlencode

import botocore.session
from moto.core.botocore_stubber import BotocoreStubber

from tests.api.registry_world import BASE, RegistryApi
from tests.benchmarks.polling_fleet import in_memory, keys_of, remember, sizes
from tests.benchmarks.results import Measure
from tests.benchmarks.units import Meter
from tests.benchmarks.world import make_tables
from tests.factories import a_worker
from worker_manager.store.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker_manager.core.model import WorkerKey


@dataclass(frozen=True, slots=True)
class Walked:
    """All pages of a list."""

    workers: int
    pages: int
    requests: int
    read_units: float
    seconds: float


def measure_lists(*, scale: float = 1.0) -> list[Measure]:
    """A page of ``listWorkers`` of the largest pool, and ``searchWorkers`` to its end."""
    with in_memory():
        pools = keys_of(*sizes(scale))
        api, meter = _api(pools)
        provisioner_id, _, worker_type = pools[0][0].pool_id.partition("/")
        one_type = f"{BASE}/provisioners/{provisioner_id}/worker-types/{worker_type}/workers"
        listed = walk(api, meter, one_type, most=1)
        searched = walk(api, meter, f"{BASE}/workers")
        name = pools[-1][-1].worker_id
        found = walk(api, meter, f"{BASE}/workers", q=name)
    everybody = sum(map(len, pools))
    return [
        Measure("list_page_requests", listed.requests, "requests", 6),
        Measure("list_page_read_units", round(listed.read_units), "read units", 1_000),
        Measure("list_page_seconds", round(listed.seconds, 2), "s", 2),
        Measure("search_missed", everybody - searched.workers, "workers", 0),
        Measure("search_pages", searched.pages, "pages of 1,000", 12),
        Measure("search_requests", searched.requests, "requests", 1_500),
        Measure("search_read_units", round(searched.read_units), "read units", 12_000),
        Measure("search_seconds", round(searched.seconds, 2), "s", 20),
        Measure("search_by_name_missed", 1 - found.workers, "workers", 0),
        Measure("search_by_name_pages", found.pages, "pages", 4),
    ]


def walk(api: RegistryApi, meter: Meter, path: str, *, most: int = 1_000, **query: str) -> Walked:
    """At most so many pages of a list of workers; raises ``RuntimeError`` if one is refused."""
    before, workers, pages, seconds = len(meter.calls), 0, 0, 0.0
    query["limit"] = "1000"
    while pages < most:
        with _timed() as spent:
            answer = api("GET", path, query=urlencode(query))
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.body}")
        workers, pages = workers + len(answer.body["workers"]), pages + 1
        seconds += spent[0]
        if "continuationToken" not in answer.body:
            break
        query["continuationToken"] = answer.body["continuationToken"]
    calls = meter.calls[before:]
    return Walked(workers, pages, len(calls), sum(call.units.read for call in calls), seconds)


def _api(pools: Sequence[Sequence[WorkerKey]]) -> tuple[RegistryApi, Meter]:
    """Every worker has a row of ours, and was seen."""
    tables = Tables.bind(make_tables(), botocore.session.get_session(), "us-east-1")
    api = RegistryApi(tables)
    for pool in pools:
        remember(api.registry, pool, until=api.clock.now)
        for key in pool:
            api.deps.stores.workers.put_new(
                a_worker(key.worker_id, pool_id=key.pool_id, group=key.group)
            )
            api.registry.note_names(key, api.clock.now)
    meter = Meter()
    meter.attach(tables.connection.client)
    return api, meter


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Processor seconds of this thread, without what the tables took."""
    answer, theirs, spent = BotocoreStubber.__call__, [0.0], [0.0]

    def timed(stub: BotocoreStubber, *args: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return answer(stub, *args, **named)
        finally:
            theirs[0] += time.thread_time() - began

    began = time.thread_time()
    with patch.object(BotocoreStubber, "__call__", timed):
        yield spent
    spent[0] = time.thread_time() - began - theirs[0]
