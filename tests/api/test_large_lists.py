"""Lists hold no more than a page at once, and what is asked all the time costs one read."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE
from tests.factories import NOW, POOL_ID, a_worker

if TYPE_CHECKING:
    from tests.api.world import Api
    from worker_manager.core.model import Worker

MERGED = f"{BASE}/provisioners/proj-x/worker-types/pool-1/workers"
OURS = f"{BASE}/workers/proj-x%2Fpool-1"
COUNT = 10_000


@pytest.fixture
def reads(pool: Api, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ten thousand rows that are made when read, and how many each request read."""
    sizes: list[int] = []

    def page(
        _: Any, pool_id: str, *, group: str | None = None, after: str | None = None, limit: int
    ) -> list[Worker]:
        first = int(after.partition("#i-")[2]) + 1 if after else 0
        sizes.append(limit)
        return [a_worker(f"i-{n:05}") for n in range(first, min(first + limit, COUNT))]

    monkeypatch.setattr(type(pool.deps.stores.workers), "page", page)
    for number in range(COUNT):
        pool.queue.set_activity(
            POOL_ID, "us-east-1", f"i-{number:05}", first_claim=NOW, last_active=NOW
        )
    return sizes


@pytest.mark.parametrize("path", [MERGED, OURS])
def test_ten_thousand_workers_are_listed_a_page_at_a_time(
    pool: Api, reads: list[int], path: str
) -> None:
    calls, seen, token, peaks = 0, 0, "", []
    tracemalloc.start()
    while True:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        page = pool("GET", path, query=token).body
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
        calls, seen = calls + 1, seen + len(page["workers"])
        if "continuationToken" not in page:
            break
        token = f"continuationToken={page['continuationToken']}"
    tracemalloc.stop()

    assert (calls, seen) == (10, COUNT)
    assert max(reads) <= 1001
    assert len(reads) <= 2 * calls
    assert pool.queue.calls["worker_page"] <= 2 * calls
    assert max(peaks) < 16_000_000
    assert peaks[-2] < 1.5 * peaks[1]


def test_asking_whether_to_terminate_is_one_read_of_one_item(
    pool: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.deps.stores.workers.put_new(a_worker())
    asked: list[str] = []
    client: Any = pool.tables.connection.client
    original = client._make_api_call

    def call(operation: str, parameters: Any) -> Any:
        asked.append(operation)
        return original(operation, parameters)

    monkeypatch.setattr(client, "_make_api_call", call)
    answer = pool.ok("GET", f"{OURS}/us-east-1/i-1/should-terminate")
    assert answer == {"terminate": False, "reason": "none"}
    assert asked == ["GetItem"]
