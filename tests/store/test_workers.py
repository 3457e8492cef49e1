from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pynamodb.exceptions import PutError, UpdateError

from tests.factories import NOW, POOL_ID, REGION, a_worker
from tests.store.sizes import item_size
from tests.store.wire import refused
from worker_manager.core.events import error_events
from worker_manager.core.ids import derived_slugid, event_id
from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.model import Location, PoolError, State, Surplus, Worker
from worker_manager.store.places import PlaceStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.tables import LIVE_ATTRIBUTES
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.store.tables import Tables

HOUR = timedelta(hours=1)
KEPT = timedelta(days=8)
UNPROJECTED: dict[str, Any] = {
    "boot_time": None,
    "rebooted": None,
    "identity": {},
    "secret_hash": None,
    "previous_secret_hash": None,
    "secret_rotated": None,
    "reregistration": Worker.__dataclass_fields__["reregistration"].default,
}
"""What the index ``live`` lacks, with the values that stand for it."""


@pytest.fixture
def store(tables: Tables) -> WorkerStore:
    return WorkerStore(tables, kept=KEPT)


def an_event(number: int = 0) -> dict[str, Any]:
    return {"id": event_id("x", number), "name": "worker-running", "detail": {"capacity": 1.5}}


def a_full_worker(**overrides: Any) -> Worker:
    values: dict[str, Any] = {
        "order_id": "o-1",
        "capacity": 8,
        "expires": NOW + 5 * HOUR,
        "deadline": NOW + HOUR,
        "reregistration": timedelta(hours=7),
        "queue_inactivity": timedelta(hours=3),
        "registered": NOW - 50 * timedelta(minutes=1),
        "registrations": (NOW - 50 * timedelta(minutes=1),),
        "boot_time": NOW - HOUR,
        "rebooted": NOW,
        "first_claim": NOW - timedelta(minutes=40),
        "quarantine_until": NOW + timedelta(days=1),
        "stopping_since": NOW - timedelta(milliseconds=1),
        "stop_reason": "over capacity",
        "surplus": Surplus(True, "over capacity", NOW),
        "identity": {"privateIp": "10.0.0.1", "nested": {"n": 1}},
        "secret_hash": "a" * 64,
        "previous_secret_hash": "b" * 64,
        "secret_rotated": NOW,
        "unsent": (an_event(1), an_event(2)),
    }
    return a_worker(**(values | overrides))


def put(store: WorkerStore, *workers: Worker) -> None:
    assert all(store.put_new(worker) for worker in workers)


def live(store: WorkerStore, location: Location | None = None) -> list[str]:
    return [worker.key.worker_id for worker in store.live(POOL_ID, location)]


def stored(tables: Tables, worker: Worker) -> dict[str, Any]:
    sk = f"{worker.key.group}#{worker.key.worker_id}"
    return tables.workers.get(worker.key.pool_id, sk).serialize()


def test_a_worker_comes_back_as_it_was_written(store: WorkerStore) -> None:
    put(store, a_full_worker())

    assert store.get(a_full_worker().key) == a_full_worker()


@pytest.mark.parametrize("year", [1, 1969, 2242, 2243, 3000, 9999])
def test_times_far_from_now_come_back_to_the_millisecond(store: WorkerStore, year: int) -> None:
    worker = a_worker(expires=datetime(year, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC))
    put(store, worker)

    assert store.get(worker.key) == worker


def test_a_worker_with_little_to_say_comes_back_alike(store: WorkerStore) -> None:
    put(store, a_worker(launch_config_id=None))

    assert store.get(a_worker().key) == a_worker(launch_config_id=None)


def test_an_unknown_worker_is_none(store: WorkerStore) -> None:
    assert store.get(a_worker().key) is None


def test_a_worker_that_has_a_row_is_not_written_again(store: WorkerStore) -> None:
    put(store, a_worker())

    assert not store.put_new(a_worker(state=State.REQUESTED))
    assert store.get(a_worker().key) == a_worker()


def test_the_same_id_in_another_group_or_pool_is_another_worker(store: WorkerStore) -> None:
    put(store, a_worker(), a_worker(group="us-west-2"), a_worker(pool_id="other/pool"))

    assert len(live(store)) == 2


def test_a_change_is_written_over_the_version_that_was_read(store: WorkerStore) -> None:
    put(store, a_worker())

    after = store.change(a_worker(), first_claim=NOW)

    assert after == a_worker(first_claim=NOW, version=2)
    assert store.get(a_worker().key) == after


def test_of_two_changes_of_one_version_only_the_first_is_written(store: WorkerStore) -> None:
    """Report B09 (#8470): two scans at once undid each other's changes."""
    put(store, a_worker())
    first = store.change(a_worker(), state=State.STOPPING, stopping_since=NOW)

    assert store.change(a_worker(), first_claim=NOW) is None
    assert store.get(a_worker().key) == first


def test_a_worker_without_row_cannot_be_changed(store: WorkerStore) -> None:
    assert store.change(a_worker(), first_claim=NOW) is None
    assert store.get(a_worker().key) is None


def test_only_what_differs_is_written(store: WorkerStore, wire: Wire) -> None:
    put(store, a_full_worker())

    store.change(a_full_worker(), first_claim=NOW, stop_reason="over capacity")

    (update,) = wire.of("UpdateItem")
    assert set(update["ExpressionAttributeNames"].values()) == {"version", "first_claim"}


def test_what_becomes_none_is_removed(store: WorkerStore, tables: Tables) -> None:
    put(store, a_full_worker())

    store.change(a_full_worker(), quarantine_until=None, surplus=None, identity={})

    assert not {"quarantine_until", "surplus", "identity"} & stored(tables, a_worker()).keys()


def test_other_failures_are_not_taken_for_lost_races(store: WorkerStore, wire: Wire) -> None:
    wire.inject("PutItem", refused("ProvisionedThroughputExceededException"))
    with pytest.raises(PutError):
        store.put_new(a_worker())
    put(store, a_worker())
    wire.inject("UpdateItem", refused("InternalServerError"))
    with pytest.raises(UpdateError):
        store.change(a_worker(), first_claim=NOW)


def test_events_that_were_sent_are_forgotten(store: WorkerStore) -> None:
    one, two = a_full_worker(), a_full_worker(worker_id="i-2")
    put(store, one, two)

    store.sent([one, two, a_worker("silent")])

    for worker in (one, two):
        assert store.get(worker.key) == replace(worker, unsent=())


def test_a_row_that_moved_on_keeps_its_events_and_the_others_do_not(store: WorkerStore) -> None:
    """A transition between publishing and forgetting must not lose the event of its own."""
    moving, still = a_full_worker(), a_full_worker(worker_id="i-2")
    put(store, moving, still)
    events = (*moving.unsent, an_event(3))
    store.change(moving, unsent=events)

    store.sent([moving, still])

    kept, cleared = store.get(moving.key), store.get(still.key)
    assert kept is not None
    assert cleared is not None
    assert (kept.unsent, cleared.unsent) == (events, ())


@pytest.mark.parametrize("state", [State.REQUESTED, State.RUNNING, State.STOPPING])
def test_a_worker_is_live_until_it_is_stopped(store: WorkerStore, state: State) -> None:
    put(store, a_worker(state=state))

    assert live(store) == ["i-1"]


def test_a_stopped_worker_is_live_until_its_events_are_sent(
    store: WorkerStore, tables: Tables
) -> None:
    put(store, a_worker())
    stopped = store.change(a_worker(), state=State.STOPPED, modified=NOW, unsent=(an_event(),))
    assert stopped is not None
    assert live(store) == ["i-1"]

    store.sent([stopped])

    assert live(store) == []
    assert "live" not in stored(tables, stopped)
    assert store.get(stopped.key) == replace(stopped, unsent=())


def test_a_worker_stopped_with_nothing_to_tell_is_live_no_more(store: WorkerStore) -> None:
    put(store, a_worker())
    store.change(a_worker(), state=State.STOPPED)

    assert live(store) == []


def test_a_stopped_workers_row_expires_and_no_other_does(
    store: WorkerStore, tables: Tables
) -> None:
    put(store, a_worker())
    assert "ttl" not in stored(tables, a_worker())

    store.change(a_worker(), state=State.STOPPED, modified=NOW)

    assert stored(tables, a_worker())["ttl"] == {"N": str(int((NOW + KEPT).timestamp()))}


def test_live_workers_of_a_location_are_read_without_the_others(store: WorkerStore) -> None:
    put(
        store,
        a_worker("east"),
        a_worker("west", location=Location("us-west-2"), group="us-west-2"),
        a_worker("longer", location=Location("us-east-10")),
    )

    assert live(store, REGION) == ["east"]
    assert sorted(live(store)) == ["east", "longer", "west"]


def test_live_workers_are_read_consistently_from_the_index_alone(
    store: WorkerStore, wire: Wire
) -> None:
    put(store, a_worker())

    live(store)

    (query,) = wire.of("Query")
    assert (query["IndexName"], query["ConsistentRead"]) == ("live", True)


def test_a_live_worker_has_all_that_planning_needs(store: WorkerStore) -> None:
    put(store, a_full_worker())

    (seen,) = store.live(POOL_ID)

    assert seen == a_full_worker(**UNPROJECTED)


def test_every_attribute_that_the_index_names_is_one_of_the_table(tables: Tables) -> None:
    assert set(LIVE_ATTRIBUTES) <= tables.workers.get_attributes().keys()


def test_a_change_from_what_the_index_told_keeps_what_it_did_not(store: WorkerStore) -> None:
    put(store, a_full_worker())
    (seen,) = store.live(POOL_ID)

    store.change(seen, state=State.STOPPED, quarantine_until=None, unsent=())

    assert store.get(seen.key) == a_full_worker(
        state=State.STOPPED, quarantine_until=None, unsent=(), version=2
    )


def test_rows_of_orders_are_counted_in_any_state(store: WorkerStore) -> None:
    put(
        store,
        a_worker("i-1", order_id="o-1"),
        a_worker("i-2", order_id="o-1", state=State.STOPPED),
        a_worker("i-3", order_id="o-2"),
        a_worker("i-4", order_id="o-3"),
        a_worker("i-5"),
        a_worker("i-6", order_id="o-1", pool_id="other/pool"),
    )

    assert store.rows_of_orders(POOL_ID, {"o-1", "o-2", "o-9"}) == {"o-1": 2, "o-2": 1, "o-9": 0}
    assert store.rows_of_orders(POOL_ID, []) == {}


def test_rows_written_before_a_machine_that_never_was_can_be_left_out(store: WorkerStore) -> None:
    put(
        store,
        a_worker("vm-1", order_id="o-1", state=State.REQUESTED),
        a_worker("vm-2", order_id="o-1", state=State.STOPPED, stopped_by=OURSELVES),
        a_worker("vm-6", order_id="o-1", state=State.STOPPED, stopped_by="an/operator"),
        a_worker("vm-3", order_id="o-1", state=State.STOPPED, launched=NOW),
        a_worker("vm-4", order_id="o-1", state=State.STOPPED, registered=NOW),
        a_worker("vm-5", order_id="o-1", state=State.STOPPING),
    )

    assert store.rows_of_orders(POOL_ID, ["o-1"], less_never_made=True) == {"o-1": 5}


def test_rows_of_more_orders_than_one_filter_takes_are_counted(store: WorkerStore) -> None:
    orders = [f"o-{number:03d}" for number in range(120)]
    store.put_all_new([a_worker(f"i-{name}", order_id=name) for name in orders])

    assert store.rows_of_orders(POOL_ID, orders) == dict.fromkeys(orders, 1)


def test_many_new_workers_are_written_in_few_requests(store: WorkerStore, wire: Wire) -> None:
    workers = [a_worker(f"i-{number}") for number in range(230)]

    assert store.put_all_new(workers) == workers
    assert len(wire.calls) == 3
    assert len(live(store)) == 230


def test_of_many_new_workers_those_that_have_a_row_are_left_as_they_are(
    store: WorkerStore,
) -> None:
    there = a_worker("i-3", state=State.STOPPING)
    put(store, there)

    written = store.put_all_new([a_worker(f"i-{number}") for number in range(6)])

    assert [worker.key.worker_id for worker in written] == ["i-0", "i-1", "i-2", "i-4", "i-5"]
    assert store.get(there.key) == there
    assert len(live(store)) == 6


def test_writing_no_workers_asks_nothing(store: WorkerStore, wire: Wire) -> None:
    assert store.put_all_new([]) == []
    store.sent([a_worker()])

    assert wire.calls == []


def every_page(store: WorkerStore, limit: int, group: str | None = None) -> list[str]:
    found: list[str] = []
    after = None
    while rows := store.page(POOL_ID, group=group, after=after, limit=limit):
        assert len(rows) <= limit
        found += [f"{row.key.group}#{row.key.worker_id}" for row in rows]
        after = found[-1]
    return found


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
def test_pages_of_any_size_cover_every_worker_once(store: WorkerStore, limit: int) -> None:
    groups = ["us-east-1", "us-east-1-a", "us-east-10", "us-west-2"]
    store.put_all_new(
        [
            a_worker(f"i-{number}", group=group, state=State(state))
            for number, state in enumerate(State)
            for group in groups
        ]
    )

    everybody = every_page(store, limit)
    assert len(everybody) == len(set(everybody)) == 20
    for group in groups:
        assert every_page(store, limit, group) == [f"{group}#i-{number}" for number in range(5)]


@pytest.mark.parametrize("after", ["a#i-1", "b#i-1", "c#i-1", "\uffff"])
def test_a_page_of_a_group_never_leaves_it_wherever_it_is_told_to_go_on(
    store: WorkerStore, after: str
) -> None:
    put(store, *(a_worker(f"i-{n}", group=group) for n in (1, 2) for group in "abc"))

    page = store.page(POOL_ID, group="b", after=after, limit=10)

    assert {row.key.group for row in page} <= {"b"}


def test_states_and_capacities_leave_out_those_long_stopped(store: WorkerStore) -> None:
    put(
        store,
        a_worker("i-1", capacity=4),
        a_worker("i-2", state=State.STOPPED, modified=NOW - HOUR),
        a_worker("i-3", state=State.STOPPED, modified=NOW - KEPT - HOUR),
    )

    assert sorted(store.states(POOL_ID, NOW)) == [(State.RUNNING, 4), (State.STOPPED, 1)]


def test_more_workers_than_fit_into_an_answer_are_read_to_the_end(
    store: WorkerStore, wire: Wire
) -> None:
    """One answer of DynamoDB ends at 1 MB."""
    long = {"id": "x", "name": "n", "detail": {"reason": "r" * 3200}}
    workers = [a_worker(f"i-{number:04d}", unsent=(long,)) for number in range(360)]
    store.put_all_new(workers)
    wire.calls.clear()

    assert len(live(store)) == 360
    assert len(wire.of("Query")) > 1
    assert len(store.page(POOL_ID, limit=1000)) == 360
    assert sum(1 for _ in store.states(POOL_ID, NOW)) == 360


def test_a_worker_with_everything_stays_below_4_kb(store: WorkerStore, tables: Tables) -> None:
    worker = a_full_worker(
        pool_id="p" * 38 + "/" + "w" * 38,
        worker_id="i-0123456789abcdef0",
        group="ap-southeast-2",
        launch_config_id="l" * 38,
        identity={
            "privateIp": "255.255.255.255",
            "accountId": "123456789012",
            "instanceType": "u-24tb1.112xlarge",
            "imageId": "ami-0123456789abcdef0",
            "availabilityZone": "ap-southeast-2a",
        },
        surplus=Surplus(True, "launch config archived", NOW),
        unsent=tuple(
            {
                "id": event_id("x", number),
                "name": "worker-requested",
                "detail": {
                    "workerPoolId": "p" * 38 + "/" + "w" * 38,
                    "providerId": "p" * 38,
                    "workerGroup": "ap-southeast-2",
                    "workerId": "i-0123456789abcdef0",
                    "capacity": 100,
                    "launchConfigId": "l" * 38,
                    "timestamp": "2026-01-02T03:04:05.000Z",
                    "reason": derived_slugid("reason") * 3,
                },
            }
            for number in range(4)
        ),
    )
    put(store, worker)

    assert item_size(stored(tables, worker)) < 4096


def test_many_workers_are_read_whole_and_with_few_requests(store: WorkerStore, wire: Wire) -> None:
    workers = [a_full_worker(worker_id=f"i-{number:03d}") for number in range(120)]
    store.put_all_new(workers)
    absent = a_worker("i-none").key
    wire.calls.clear()

    found = store.get_many([*(worker.key for worker in workers), workers[0].key, absent])

    assert found == {worker.key: worker for worker in workers}
    assert [operation for operation, _ in wire.calls] == ["BatchGetItem"] * 2
    assert store.get_many([]) == {}


def test_what_is_written_with_a_change_is_written_only_if_the_change_is(
    store: WorkerStore, tables: Tables
) -> None:
    errors = PoolErrorStore(tables, kept=KEPT)
    before = a_full_worker()
    put(store, before)

    def bury(name: str) -> Worker | None:
        error = PoolError(name, POOL_ID, NOW, "never-registered", "a title", "a text")
        also = errors.writes(error, error_events(error, "aws"), is_late=False)
        return store.change_with(before, also, state=State.STOPPED, modified=NOW)

    written = bury("first")

    assert written == replace(before, state=State.STOPPED, modified=NOW, version=2)
    assert store.get(before.key) == written
    assert bury("second") is None
    assert [error.error_id for error in errors.newest_first(POOL_ID)] == ["first"]
    assert len(list(PlaceStore(tables).unpublished())) == 1
