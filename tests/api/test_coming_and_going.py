"""Lists while rows come and go between their pages: who was there all along is listed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.world import BASE, POOL_PATH, a_definition
from tests.factories import POOL_ID, a_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.api.world import Api, Clock

WORKERS = f"{BASE}/workers/proj-x%2Fpool-1"
ERRORS = f"{BASE}/worker-pool-errors/proj-x%2Fpool-1"
NUMBERS = range(8)
PRESENT = st.sets(st.sampled_from(NUMBERS))
TOGGLES = st.lists(st.lists(st.sampled_from(NUMBERS), max_size=3), min_size=9, max_size=9)
FEW = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def walk(api: Api, path: str, query: str, between: Callable[[], None]) -> list[Any]:
    """All items of a list, with something happening between its pages."""
    found: list[Any] = []
    token = ""
    while True:
        page = api.ok("GET", path, query="&".join(filter(None, (query, token))))
        [items] = [value for value in page.values() if isinstance(value, list)]
        found += items
        if "continuationToken" not in page:
            return found
        token = f"continuationToken={page['continuationToken']}"
        between()


@FEW
@given(PRESENT, TOGGLES, st.integers(1, 3), st.sampled_from(["", "&launchConfigId=lc-0"]))
def test_workers_who_stay_are_listed_once_whatever_comes_and_goes(
    pool: Api, present: set[int], toggles: Sequence[Sequence[int]], limit: int, filtered: str
) -> None:
    def toggle(number: int) -> None:
        row = pool.tables.workers(POOL_ID, f"us-east-1#i-{number}")
        worker = a_worker(f"i-{number}", launch_config_id=f"lc-{number % 2 if filtered else 0}")
        if not pool.deps.stores.workers.put_new(worker):
            row.delete(add_version_condition=False)

    def standing() -> set[str]:
        rows = pool.deps.stores.workers.page(POOL_ID, limit=100)
        return {row.key.worker_id for row in rows if row.launch_config_id == "lc-0"}

    for worker in pool.deps.stores.workers.page(POOL_ID, limit=100):
        toggle(int(worker.key.worker_id[2:]))
    for number in present:
        toggle(number)
    history, coming = [standing()], iter(toggles)

    def between() -> None:
        for number in next(coming, ()):
            toggle(number)
            history.append(standing())

    found = [w["workerId"] for w in walk(pool, WORKERS, f"limit={limit}{filtered}", between)]
    assert found == sorted(set(found))
    assert set.intersection(*history) <= set(found) <= set.union(*history)


@FEW
@given(PRESENT, TOGGLES, st.integers(1, 3))
def test_pools_that_stay_are_listed_once_whatever_is_created(
    api: Api, present: set[int], toggles: Sequence[Sequence[int]], limit: int
) -> None:
    """New pools only: one that is deleted is listed until nothing of it is left."""

    def create(number: int) -> None:
        path = POOL_PATH.replace("pool-1", f"p{number}")
        assert api("PUT", path, a_definition()).status == 200

    for item in list(api.deps.stores.pools.ids(after=None, limit=100)):
        api.tables.providers("#all", item).delete(add_version_condition=False)
        api.tables.pools(item, "pool").delete(add_version_condition=False)
    for number in present:
        create(number)
    before, coming = set(api.deps.stores.pools.ids(after=None, limit=100)), iter(toggles)

    def between() -> None:
        for number in next(coming, ()):
            create(number)

    found = [p["workerPoolId"] for p in walk(api, "worker-pools/stats", f"limit={limit}", between)]
    assert found == sorted(set(found))
    assert before <= set(found) <= set(api.deps.stores.pools.ids(after=None, limit=100))


@FEW
@given(st.integers(0, 8), st.lists(st.integers(0, 2), min_size=9, max_size=9), st.integers(1, 3))
def test_errors_are_listed_once_whatever_is_reported(
    pool: Api, clock: Clock, count: int, coming_in: Sequence[int], limit: int
) -> None:
    """They come newest first; those reported meanwhile are no longer to be met."""

    def report(number: int) -> str:
        clock.advance(seconds=1)
        body = {
            "workerGroup": "us-east-1",
            "workerId": "i-1",
            "kind": "worker-error",
            "title": f"{clock.now} {number}",
            "description": "",
            "extra": {},
        }
        return str(pool.ok("POST", ERRORS, body)["errorId"])

    for item in list(pool.tables.pool_errors.query(POOL_ID)):
        item.delete(add_version_condition=False)
    reported = [report(number) for number in range(count)]
    coming = iter(coming_in)

    def between() -> None:
        for number in range(next(coming, 0)):
            report(number)

    found = [e["errorId"] for e in walk(pool, ERRORS, f"limit={limit}", between)]
    assert found == list(reversed(reported))
