"""Workers of all task queues at once: who is found, in which order, at what cost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.registry_world import BASE, POOL, RegistryApi
from tests.api.world import TOKEN
from tests.factories import a_worker
from worker_manager.api import everyone
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import State, WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.registry.observations import Kind, Observation
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker_manager.core.model import Worker
    from worker_manager.store.tables import Tables

HOUR = timedelta(hours=1)
SEARCH = f"{BASE}/workers"
OTHER = "proj-y/testers"
LISTS_X = ("worker-registry:search", "queue:list-workers:proj-x/*")


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    return RegistryApi(
        tables,
        clients=[
            Client("test/x", TOKEN, LISTS_X),
            Client("test/lists", TOKEN, ("queue:list-workers:*",)),
        ],
    )


def put(api: RegistryApi, worker_id: str, *, pool: str = POOL, **facts: Any) -> Worker:
    """A worker of ours, in a pool that is on the list of pools."""
    worker = a_worker(worker_id, pool_id=pool, group="rack-1", **facts)
    api.deps.stores.workers.put_new(worker)
    return worker


def a_pool(api: RegistryApi, pool: str) -> None:
    api.tables.providers("#all", pool).save()


def hold(api: RegistryApi, worker_id: str, *, pool: str = POOL, hours: int = 1) -> None:
    api.deps.quarantines.change(  # type: ignore[attr-defined]
        WorkerKey(pool, "rack-1", worker_id),
        api.clock.now + hours * HOUR,
        info="",
        client_id="test/root",
        now=api.clock.now,
    )


def end(api: RegistryApi, state: str, *, runs: int, worker_id: str = "m-1") -> None:
    key = WorkerKey(POOL, "rack-1", worker_id)
    reason = "worker-shutdown" if state == "exception" else state
    api.registry.observe(
        Observation(
            key,
            Kind.RESOLVE,
            api.clock.now,
            task_id=derived_slugid(state, run),
            run_id=0,
            state=state,
            reason=reason,
        )
        for run in range(runs)
    )


def pages(
    api: RegistryApi, between: Callable[[], None] | None = None, **query: str
) -> Iterator[list[str]]:
    while True:
        page = api.ok("GET", SEARCH, query=urlencode(query))
        yield [f"{one['taskQueueId']}/{one['workerId']}" for one in page["workers"]]
        if "continuationToken" not in page:
            return
        query["continuationToken"] = page["continuationToken"]
        if between is not None:
            between()


def found(api: RegistryApi, **query: str) -> list[str]:
    return [name for page in pages(api, None, **query) for name in page]


def test_what_a_queue_saw_and_what_is_ours_is_one_line(api: RegistryApi) -> None:
    a_pool(api, POOL)
    put(api, "m-1", capacity=2, boot_time=api.clock.now - HOUR)
    api.see()
    end(api, "completed", runs=3)
    end(api, "failed", runs=2)
    hold(api, "m-1")
    now = "2026-01-02T03:04:05.000Z"
    [worker] = api.ok("GET", SEARCH)["workers"]
    assert worker.pop("latestTask")["runId"] == 0
    assert worker == {
        "taskQueueId": POOL,
        "workerGroup": "rack-1",
        "workerId": "m-1",
        "state": "running",
        "providerId": "aws",
        "launchConfigId": "lc-a",
        "capacity": 2,
        "firstClaim": now,
        "lastDateActive": now,
        "quarantineUntil": "2026-01-02T04:04:05.000Z",
        "figures": {
            "health": "ok",
            "lastClaim": now,
            "upSince": "2026-01-02T02:04:05.000Z",
            "uptimeSeconds": 3600,
            "uptimeIsApproximate": False,
            "runs": 5,
            "failureRate": 0.4,
            "exceptionRate": 0.0,
        },
    }


def test_every_worker_is_found_whoever_knows_it(api: RegistryApi) -> None:
    api.see("seen")
    api.see("seen", pool=OTHER)
    hold(api, "held", pool="proj-z/never-seen")
    a_pool(api, "proj-w/ours-only")
    put(api, "made", pool="proj-w/ours-only", state=State.REQUESTED)
    assert found(api) == [
        "proj-w/ours-only/made",
        "proj-x/builders/seen",
        "proj-y/testers/seen",
        "proj-z/never-seen/held",
    ]


def test_what_has_been_silent_for_long_or_stopped_long_ago_is_not_found(api: RegistryApi) -> None:
    a_pool(api, POOL)
    api.see("silent")
    put(api, "stopped", state=State.STOPPED)
    hold(api, "held", hours=24 * 30)
    hold(api, "freed", hours=1)
    put(api, "ours")
    api.clock.advance(days=9)
    assert found(api) == [f"{POOL}/held", f"{POOL}/ours"]
    assert found(api, quarantined="true") == [f"{POOL}/held"]


FILTERS: list[tuple[dict[str, str], list[str]]] = [
    ({"q": "m-"}, ["m-1", "m-2"]),
    ({"q": "M-"}, ["m-1", "m-2"]),
    ({"q": "over"}, ["Over"]),
    ({"workerGroup": "rack-1"}, ["Over", "held", "m-1", "m-2"]),
    ({"workerGroup": "rack-2"}, ["away"]),
    ({"workerGroup": "rack-0"}, []),
    ({"state": "standalone"}, ["held", "m-2", "away"]),
    ({"state": "running"}, ["m-1"]),
    ({"quarantined": "true"}, ["held"]),
    ({"quarantined": "true", "state": "running"}, []),
    ({"state": "stopped"}, ["Over"]),
    ({"quarantined": "false"}, ["Over", "m-1", "m-2", "away"]),
    ({"health": "failing"}, ["m-2"]),
    ({"health": "unknown"}, ["held"]),
    ({"health": "silent"}, ["away"]),
    ({"health": "gone"}, ["Over"]),
    ({"health": "ok"}, ["m-1"]),
    ({"providerId": "aws"}, ["Over", "m-1"]),
    ({"providerId": "none", "q": "m"}, ["m-2"]),
    ({"launchConfigId": "lc-a"}, ["Over", "m-1"]),
    ({"provisionerId": "proj-x"}, ["Over", "held", "m-1", "m-2", "away"]),
    ({"provisionerId": "proj"}, []),
    ({"taskQueueId": POOL, "q": "m-2"}, ["m-2"]),
    ({"taskQueueId": OTHER}, []),
]


def test_filters_let_only_those_through_that_match(api: RegistryApi) -> None:
    a_pool(api, POOL)
    api.see("away", group="rack-2")
    api.clock.advance(hours=3)
    put(api, "m-1")
    put(api, "Over", state=State.STOPPED)
    api.see("Over")
    api.see("m-1")
    api.see("m-2")
    end(api, "exception", runs=5, worker_id="m-2")
    hold(api, "held")
    for query, expected in FILTERS:
        assert found(api, **query) == [f"{POOL}/{worker_id}" for worker_id in expected], query


def test_only_workers_of_queues_that_the_caller_may_list_are_found(api: RegistryApi) -> None:
    api.see()
    api.see(pool=OTHER)
    hold(api, "held", pool=OTHER)
    for query in ("", "quarantined=true", "provisionerId=proj-y"):
        answer = api.ok("GET", SEARCH, client="test/x", query=query)
        assert {one["taskQueueId"] for one in answer["workers"]} <= {POOL}
    asked = urlencode({"taskQueueId": OTHER})
    assert api("GET", SEARCH, client="test/x", query=asked).code == "InsufficientScopes"
    assert api("GET", SEARCH, client="test/lists").code == "InsufficientScopes"


NO_FILTERS = [
    "q=%2F",
    "q=",
    "workerGroup=a%0A",
    "health=sick",
    "quarantined=yes",
    "taskQueueId=proj-x",
    "taskQueueId=proj-x%2Fbuilders&provisionerId=proj-x",
    "sort=id",
    "continuationToken=AAAA",
    "continuationToken=cHJvai14",
]


def test_what_no_filter_is_is_refused(api: RegistryApi) -> None:
    assert {query: api("GET", SEARCH, query=query).status for query in NO_FILTERS} == dict.fromkeys(
        NO_FILTERS, 400
    )


def test_pages_lead_through_all_queues_to_the_end(api: RegistryApi) -> None:
    a_pool(api, OTHER)
    for number in range(3):
        api.see(f"m-{number}")
        put(api, f"m-{number + 1}", pool=OTHER)
    hold(api, "held", pool="proj-z/never-seen")
    everybody = found(api)
    assert len(everybody) == 7
    for size in (1, 2, 3, 7):
        listed = list(pages(api, limit=str(size)))
        assert max(map(len, listed)) == size
        assert [name for page in listed for name in page] == everybody


def test_a_page_is_cut_where_it_would_grow_too_large(api: RegistryApi) -> None:
    for number in range(9):
        api.see(f"m-{number}")
    object.__setattr__(api.deps, "page_bytes", 1500)
    listed = list(pages(api))
    assert len(listed) > 2
    assert sum(map(len, listed)) == 9


def test_one_page_costs_only_so_much_and_nobody_is_lost(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        api.see(f"m-{number:02}", pool=f"proj-x/queue-{number % 3}")
    monkeypatch.setattr(everyone, "MOST_READ", 4)
    listed = list(pages(api, q="m-29"))
    assert len(listed) > 5
    assert [name for page in listed for name in page] == ["proj-x/queue-2/m-29"]


def test_a_page_ends_when_its_time_is_over(api: RegistryApi) -> None:
    for number in range(3):
        api.see(f"m-{number}")
    clock = api.clock

    def hurrying() -> Any:
        clock.advance(seconds=4)
        return clock.now

    object.__setattr__(api.deps, "clock", hurrying)
    listed = list(pages(api))
    assert len(listed) > 1
    assert [name for page in listed for name in page] == [f"{POOL}/m-{n}" for n in range(3)]


def test_thousands_of_workers_are_read_by_the_page(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        api.see(f"m-{number:02}")
    reads: list[int] = []
    real = api.registry.workers

    def counted(queue_id: str, *, limit: int, after: str = "") -> Any:
        reads.append(limit)
        return real(queue_id, limit=limit, after=after)

    monkeypatch.setattr(api.registry, "workers", counted)
    assert len(found(api)) == 40
    assert len(reads) == 1
    assert len(found(api, limit="10")) == 40
    assert reads[1:] == [12] * 4
    reads.clear()
    assert found(api, q="m-39") == [f"{POOL}/m-39"]
    assert len(reads) == 1


QUEUES = ["proj-x/a", "proj-x/a-1", "proj-x/b", "proj-y/a"]
WORKERS = [(queue, f"m-{number}") for queue in QUEUES for number in range(3)]
CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "see", "hold", "free", "remove"]), st.sampled_from(WORKERS)),
    max_size=4,
)


def do(api: RegistryApi, what: str, queue: str, worker_id: str) -> None:
    key = WorkerKey(queue, "rack-1", worker_id)
    match what:
        case "put":
            put(api, worker_id, pool=queue)
        case "see":
            api.see(worker_id, pool=queue)
        case "hold" | "free":
            hold(api, worker_id, pool=queue, hours=1 if what == "hold" else -1)
        case _ if api.registry.worker(key):
            api.registry.delete_worker(key)


@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    before=st.lists(st.tuples(st.sampled_from(["put", "see", "hold"]), st.sampled_from(WORKERS))),
    changes=CHANGES,
    size=st.integers(1, 3),
    held=st.booleans(),
)
def test_nobody_who_was_there_all_along_is_skipped_or_repeated(
    api: RegistryApi,
    before: list[tuple[str, tuple[str, str]]],
    changes: list[tuple[str, tuple[str, str]]],
    size: int,
    held: bool,
) -> None:
    for queue in QUEUES:
        a_pool(api, queue)
    for queue, worker_id in WORKERS:
        key = WorkerKey(queue, "rack-1", worker_id)
        if api.registry.worker(key):
            api.registry.delete_worker(key)
        api.tables.workers(queue, f"rack-1#{worker_id}").delete()
    for what, (queue, worker_id) in before:
        do(api, what, queue, worker_id)
    query = {"quarantined": "true"} if held else {}
    there = set(found(api, **query))
    todo = list(changes)

    def between() -> None:
        if todo:
            what, (queue, worker_id) = todo.pop()
            do(api, what, queue, worker_id)

    seen = [name for page in pages(api, between, limit=str(size), **query) for name in page]
    assert seen == sorted(seen)
    assert len(seen) == len(set(seen))
    assert (there & set(found(api, **query))) - {
        f"{queue}/{worker_id}" for _, (queue, worker_id) in changes
    } <= set(seen)


@pytest.mark.parametrize("query", ["", "quarantined=true"])
def test_whose_task_queue_is_closed_is_found_with_its_end(api: RegistryApi, query: str) -> None:
    until = to_wire(api.clock.now + HOUR)
    for pool in (POOL, OTHER):
        hold(api, "m-1", pool=pool)
    closed = f"{BASE}/task-queues/proj-x%2Fbuilders/quarantine"
    api.ok("PUT", closed, {"quarantineUntil": until})

    found = api.ok("GET", SEARCH, query=query)["workers"]

    assert [one.get("closedUntil") for one in found] == [until, None]
