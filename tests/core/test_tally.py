from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given

from tests.core.strategies import STOPPING_LIMIT, orders, workers
from tests.factories import NOW, a_worker, an_order
from worker_manager.core.model import Location, State, Surplus, Worker
from worker_manager.core.plans import Order, OrderState
from worker_manager.core.surplus import SPOT_INTERRUPTION
from worker_manager.core.tally import Counts, Tally, outstanding, tally

HOUR = timedelta(hours=1)


def count(*seen: Worker, orders: tuple[tuple[Order, int], ...] = ()) -> Tally:
    return tally(seen, orders, now=NOW, stopping_limit=STOPPING_LIMIT)


@pytest.mark.parametrize(
    ("state", "quarantined", "expected"),
    [
        (State.REQUESTED, False, Counts(requested=4)),
        (State.RUNNING, False, Counts(running=4)),
        (State.STOPPING, False, Counts(stopping=4)),
        (State.STOPPED, False, Counts()),
        (State.REQUESTED, True, Counts(quarantined=4)),
        (State.RUNNING, True, Counts(quarantined=4)),
        (State.STOPPING, True, Counts(stopping=4)),
        (State.STOPPED, True, Counts()),
    ],
)
def test_a_worker_counts_its_capacity_under_one_heading_only(
    state: State, quarantined: bool, expected: Counts
) -> None:
    until = NOW + HOUR if quarantined else None

    assert count(a_worker(state=state, capacity=4, quarantine_until=until)).pool == expected


def test_a_quarantine_that_is_over_counts_no_more() -> None:
    assert count(a_worker(quarantine_until=NOW)).pool == Counts(running=1)


@pytest.mark.parametrize(
    ("state", "rows", "expected"),
    [
        (OrderState.NOTED, 0, 5),
        (OrderState.SENT, 0, 5),
        (OrderState.SENT, 2, 3),
        (OrderState.SENT, 5, 0),
        (OrderState.SENT, 7, 0),
        (OrderState.SETTLED, 2, 0),
        (OrderState.CANCELLED, 0, 0),
    ],
)
def test_an_order_counts_for_what_it_may_still_bring(
    state: OrderState, rows: int, expected: int
) -> None:
    assert outstanding(an_order(count=5, state=state), rows) == expected


def test_an_open_order_is_requested_capacity_of_its_launch_config_and_location() -> None:
    order = an_order(
        count=3, capacity_per_instance=4, launch_config_id="lc-z", location=Location("eu-west-1")
    )

    counted = count(a_worker(), orders=((order, 1),))

    assert counted.pool == Counts(running=1, requested=8)
    assert counted.by_launch_config["lc-z"] == Counts(requested=8)
    assert counted.by_group["eu-west-1"] == Counts(requested=8)


def test_only_what_is_long_stopping_is_stuck() -> None:
    fresh = a_worker("i-1", state=State.STOPPING, stopping_since=NOW - STOPPING_LIMIT)
    old = a_worker(
        "i-2",
        state=State.STOPPING,
        capacity=3,
        stopping_since=NOW - STOPPING_LIMIT - timedelta(seconds=1),
    )
    unknown = a_worker("i-3", state=State.STOPPING)

    assert count(fresh, old, unknown).stuck == 3


@pytest.mark.parametrize("state", [State.REQUESTED, State.RUNNING])
def test_a_machine_that_its_cloud_takes_back_is_stopping_whatever_it_does(state: State) -> None:
    surplus = Surplus(True, SPOT_INTERRUPTION, NOW - timedelta(minutes=1))
    warned = a_worker(state=state, capacity=3, surplus=surplus)

    counted = count(warned)

    assert counted.pool == Counts(stopping=3)
    assert counted.stuck == 0


def test_counts_come_from_rows_alone_whether_or_not_the_queue_knows_them() -> None:
    """Report B04 (taskcluster/taskcluster#7091): a join to the queue's rows lost workers."""
    assert count(a_worker(capacity=8, first_claim=None)).pool.total == 8


def test_a_worker_without_launch_config_counts_for_the_pool() -> None:
    counted = count(a_worker(launch_config_id=None))

    assert counted.pool.running == 1
    assert counted.by_launch_config == {}


@given(seen=workers(), ordered=orders())
def test_disjoint_counts_sum_to_the_total(
    seen: list[Worker], ordered: list[tuple[Order, int]]
) -> None:
    counted = count(*seen, orders=tuple(ordered))

    costing = sum(worker.capacity for worker in seen if worker.state is not State.STOPPED)
    coming = sum(outstanding(o, rows) * o.capacity_per_instance for o, rows in ordered)
    assert counted.pool.total == costing + coming
    assert sum(counted.by_launch_config.values(), Counts()) == counted.pool
    assert sum(counted.by_group.values(), Counts()) == counted.pool
    assert 0 <= counted.stuck <= counted.pool.stopping
