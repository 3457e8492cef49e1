from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import STOPPING_LIMIT, facts
from tests.factories import NOW, a_head, a_pool, a_worker, an_order
from worker_manager.core.activity import Downtime, QueueCounts
from worker_manager.core.facts import Facts
from worker_manager.core.ids import order_id
from worker_manager.core.model import Location, State
from worker_manager.core.planning import Decision, as_plan, decide
from worker_manager.core.plans import OrderState
from worker_manager.core.surplus import decide as decide_surplus
from worker_manager.core.surplus import weigh
from worker_manager.core.tally import Counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import LaunchConfigHead, Worker
    from worker_manager.core.plans import Order

MINUTE = timedelta(minutes=1)
EAST, WEST = Location("us-east-1"), Location("us-west-2")
WAITING = "tasks are waiting for more capacity than is running or requested"
MINIMUM = "the pool has less than its minimum capacity"
HELD_BACK = "the pool's maximum holds back some of the wanted capacity"
NO_ROOM = "no launch config may take the wanted capacity now"
CLOSED = (
    "the task queue is closed until 2026-01-02T03:05:05.000Z by ops/ann (network down): "
    "nothing is ordered for what waits"
)
FULL = "some launch configs are at their maximum"


def seen(
    *workers: Worker,
    heads: Sequence[LaunchConfigHead] | None = None,
    pending: int = 0,
    claimed: int = 0,
    minimum: int = 0,
    maximum: int = 10,
    ratio: float = 1.0,
    **overrides: Any,
) -> Facts:
    config = {"minCapacity": minimum, "maxCapacity": maximum, "scalingRatio": ratio}
    values: dict[str, Any] = {
        "pool": a_pool(heads=heads, config=config),
        "workers": workers,
        "open_orders": (),
        "demand": QueueCounts(pending=pending, claimed=claimed),
        "health": {},
        "now": NOW,
        "stopping_limit": STOPPING_LIMIT,
        "stale_after": 3 * MINUTE,
    }
    return Facts(**(values | overrides))


def plan(observed: Facts, tick: str = "t-1") -> Sequence[Order]:
    decision = decide(observed, Random(tick))
    return as_plan(decision, observed, tick=tick, provider_id="aws", inputs={}).orders


def ordered(decision: Decision) -> int:
    return sum(choice.capacity for choice in decision.choices)


def machines(observed: Facts) -> int:
    return sum(choice.count for choice in decide(observed, Random(1)).choices)


def test_nothing_wanted_is_nothing_to_tell() -> None:
    decision = decide(seen(a_worker(), claimed=1), Random(1))

    assert (decision.choices, decision.reasons, decision.reasons_hash) == ((), (), "")


def test_waiting_tasks_are_the_reason_for_an_order() -> None:
    decision = decide(seen(pending=3), Random(1))

    assert ordered(decision) == 3
    assert decision.reasons == (WAITING,)


def test_the_minimum_is_the_reason_where_the_tasks_alone_ask_for_less() -> None:
    assert decide(seen(minimum=2), Random(1)).reasons == (MINIMUM,)
    observed = seen(a_worker("i-1"), a_worker("i-2"), minimum=5, pending=1)
    assert decide(observed, Random(1)).reasons == (MINIMUM,)


def test_the_maximum_is_named_where_it_holds_capacity_back() -> None:
    assert decide(seen(pending=30), Random(1)).reasons == (WAITING, HELD_BACK)


def test_a_full_pool_says_why_nothing_is_ordered() -> None:
    ten = [a_worker(f"i-{n}") for n in range(10)]

    decision = decide(seen(*ten, pending=5, claimed=10), Random(1))

    assert ordered(decision) == 0
    assert decision.reasons == (HELD_BACK,)


def test_launch_configs_without_room_are_named() -> None:
    head = a_head(manager={"maxCapacity": 0})

    decision = decide(seen(heads=[head], pending=1), Random(1))

    assert (ordered(decision), decision.reasons) == (0, (FULL, NO_ROOM))


def test_reasons_that_stay_the_same_are_recognised_whatever_the_numbers() -> None:
    few, many = decide(seen(pending=30), Random(1)), decide(seen(pending=31), Random(2))

    assert few.reasons_hash == many.reasons_hash
    assert few.reasons_hash != decide(seen(pending=3), Random(1)).reasons_hash


def test_the_facts_answer_why_so_many_were_ordered() -> None:
    facts = decide(seen(a_worker(), pending=7, claimed=1), Random(1)).facts

    expected = {"pending": 7, "claimed": 1, "running": 1, "requested": 0, "toSpawn": 7}
    assert expected.items() <= dict(facts).items()
    assert facts["launchConfigs"]["lc-a"]["weight"] == 1


def test_a_queue_that_does_not_answer_orders_nothing_and_lets_nobody_go() -> None:
    decision = decide(seen(minimum=5, demand=None), Random(1))

    assert decision.choices == ()
    assert decision.estimate is None
    assert "queue did not answer" in decision.reasons[0]
    assert "pending" not in decision.facts


def test_a_location_that_asked_to_wait_gets_no_orders_until_then() -> None:
    heads = [a_head("lc-a", location=EAST), a_head("lc-b", location=WEST)]
    observed = seen(heads=heads, pending=4, not_before={EAST: NOW + MINUTE})

    decision = decide(observed, Random(1))

    assert {choice.head.location for choice in decision.choices} == {WEST}
    assert decision.reasons == (WAITING, "us-east-1 asked to wait")
    over = decide(replace(observed, not_before={EAST: NOW}), Random(1))
    assert {choice.head.location for choice in over.choices} == {EAST, WEST}


def test_a_location_that_cannot_be_seen_for_too_long_gets_no_orders() -> None:
    observed = seen(pending=1, stale={EAST: NOW - 4 * MINUTE})

    decision = decide(observed, Random(1))

    assert not decision.choices
    assert decision.reasons == ("us-east-1 could not be listed for too long", NO_ROOM)
    assert machines(replace(observed, stale={EAST: NOW - 3 * MINUTE})) == 1


def test_one_machine_larger_than_the_maximum_starts_an_empty_pool_and_no_second() -> None:
    """Report B04 (#7091): machines of eight in a pool of four went on and on."""
    heads = [a_head(capacity_per_instance=8)]
    running = [a_worker(capacity=8)]

    assert machines(seen(heads=heads, pending=1, maximum=4)) == 1
    assert machines(seen(*running, heads=heads, pending=50, claimed=8, maximum=4)) == 0
    assert machines(seen(a_worker(state=State.REQUESTED), heads=heads, pending=9, maximum=4)) == 0


def test_capacity_is_not_instances() -> None:
    """Report B05 (#2246): machines of thirty in a pool of two raised a false alarm."""
    heads = [a_head(capacity_per_instance=30)]

    first = decide(seen(heads=heads, pending=1, maximum=2), Random(1))
    then = decide(seen(a_worker(capacity=30), heads=heads, claimed=1, maximum=2), Random(1))

    assert [choice.count for choice in first.choices] == [1]
    assert first.reasons == (WAITING,)
    assert (then.choices, then.reasons) == ((), ())


def test_a_smaller_machine_that_must_wait_is_no_leave_to_exceed_the_maximum() -> None:
    heads = [
        a_head("lc-a", location=EAST, capacity_per_instance=1),
        a_head("lc-b", location=WEST, capacity_per_instance=8),
    ]

    assert machines(seen(heads=heads, pending=1, maximum=4, not_before={EAST: NOW + MINUTE})) == 0


@pytest.mark.parametrize("own", [0, 4, 7])
def test_a_first_machine_does_not_exceed_its_launch_configs_own_limit(own: int) -> None:
    heads = [a_head(capacity_per_instance=8, manager={"maxCapacity": own})]

    assert machines(seen(heads=heads, pending=1, maximum=4)) == 0


def closed(pending: int, claimed: int = 0) -> QueueCounts:
    return QueueCounts(pending, claimed, Downtime(NOW + MINUTE, NOW, "ops/ann", "network\ndown"))


def test_nobody_is_started_for_tasks_of_a_closed_queue_and_the_plan_says_why() -> None:
    observed = seen(a_worker(), demand=closed(9))

    decision = decide(observed, Random(1))

    assert (decision.choices, decision.reasons) == ((), (CLOSED,))
    assert decision.facts["pending"] == 9
    assert decision.facts["closedUntil"] == "2026-01-02T03:05:05.000Z"
    assert decision.estimate is not None
    assert decision.estimate.target == 0


def test_the_minimum_and_the_tasks_at_work_are_kept_though_a_queue_is_closed() -> None:
    decision = decide(seen(demand=closed(9, 2), minimum=3), Random(1))

    assert ordered(decision) == 3
    assert decision.reasons == (MINIMUM, CLOSED)
    assert decide(seen(demand=closed(9, 2)), Random(1)).estimate.target == 2  # type: ignore[union-attr]


def test_a_pool_with_maximum_zero_orders_nothing() -> None:
    assert machines(seen(heads=[a_head(capacity_per_instance=8)], pending=9, maximum=0)) == 0


def test_the_slots_of_a_draining_worker_are_not_free() -> None:
    """Report B45 (buildkite-agent-scaler#40, #44, #46): three jobs, four draining slots: one."""
    draining = a_worker(state=State.STOPPING, capacity=4)

    assert machines(
        seen(draining, heads=[a_head(capacity_per_instance=4)], pending=3, claimed=1, maximum=20)
    ) == (1)


def test_an_instance_that_boots_is_not_ordered_again() -> None:
    """Report B45 (buildkite-agent-scaler#39): seen before its agents registered."""
    booting = a_worker(state=State.REQUESTED, capacity=4)

    assert machines(seen(booting, heads=[a_head(capacity_per_instance=4)], pending=4)) == 0


def test_a_quarantined_worker_is_replaced_below_the_maximum() -> None:
    """Report B21 (#3794)."""
    quarantined = a_worker(quarantine_until=NOW + MINUTE)

    assert machines(seen(quarantined, pending=1, maximum=2)) == 1
    assert machines(seen(quarantined, pending=1, maximum=1)) == 0


@pytest.mark.parametrize(("limit", "expected"), [(3, 1), (2, 0), (9, 7)])
def test_a_changed_limit_of_a_launch_config_is_obeyed_at_the_next_tick(
    limit: int, expected: int
) -> None:
    """Report B29 (#7918): a new maxCapacity under the same id did nothing."""
    running = [a_worker("i-1"), a_worker("i-2")]
    heads = [a_head(manager={"maxCapacity": limit})]

    assert machines(seen(*running, heads=heads, pending=7, claimed=2, maximum=20)) == expected


def test_a_forgiven_ghost_leaves_room_in_its_launch_config_too() -> None:
    """Reports S4 and B06 (#8161): the pool had room again, its only launch config had none."""
    since = NOW - STOPPING_LIMIT - MINUTE
    ghosts = [a_worker(f"i-{n}", state=State.STOPPING, stopping_since=since) for n in range(20)]

    assert machines(seen(*ghosts, pending=9, maximum=20)) == 2
    limited = [a_head(manager={"maxCapacity": 20})]
    assert machines(seen(*ghosts, heads=limited, pending=9, maximum=20)) == 0


def test_one_launch_never_exceeds_what_is_left_of_the_pool() -> None:
    """Report S5: fifty wanted, nine of ten there, fifty launched."""
    nine = [a_worker(f"i-{n}") for n in range(9)]

    assert machines(seen(*nine, pending=50, claimed=9, maximum=10)) == 1


def test_open_orders_are_not_ordered_again() -> None:
    """Report B39 (terraform-aws-github-runner#5187): two ledgers, one maximum."""
    sent = an_order(count=4, state=OrderState.SENT)

    assert machines(seen(pending=6, open_orders=[(sent, 0)])) == 2
    assert machines(seen(pending=60, open_orders=[(sent, 0)])) == 6
    rows = [a_worker(f"i-{n}", state=State.REQUESTED, created=NOW) for n in range(3)]
    assert machines(seen(*rows, pending=6, open_orders=[(sent, 3)])) == 2


def test_orders_that_crossed_their_rows_are_counted_once() -> None:
    """Report B03 (PR#2407): a machine is requested once, by its order or by its row."""
    rows = [a_worker(f"i-{n}", state=State.REQUESTED) for n in range(4)]
    sent = an_order(count=4, state=OrderState.SENT)

    assert seen(*rows, open_orders=[(sent, 4)]).tally.pool == Counts(requested=4)


@given(
    pending=st.integers(1, 300),
    twentieths=st.integers(1, 20),
    ticks=st.integers(1, 12),
    configs=st.integers(1, 4),
)
def test_demand_held_for_many_ticks_is_ordered_once_in_all(
    pending: int, twentieths: int, ticks: int, configs: int
) -> None:
    """Reports B02 (#5441) and B03 (PR#2407), also with a ratio, through whole plans."""
    heads = [a_head(f"lc-{n}") for n in range(configs)]
    open_orders: list[tuple[Order, int]] = []
    for tick in range(ticks):
        observed = seen(
            heads=heads,
            pending=pending,
            maximum=10_000,
            ratio=twentieths / 20,
            open_orders=open_orders,
        )
        open_orders += [(order, 0) for order in plan(observed, f"t-{tick}")]

    assert sum(order.count for order, _ in open_orders) == -(-pending * twentieths // 20)


def test_eight_ticks_of_the_same_demand_order_it_once() -> None:
    """Report B02 (#5441): 167 held for eight ticks, 167 requested and not 1,336."""
    open_orders: list[tuple[Order, int]] = []
    for tick in range(8):
        observed = seen(pending=167, maximum=2000, open_orders=open_orders)
        open_orders += [(order, 0) for order in plan(observed, f"t-{tick}")]

    assert sum(order.count for order, _ in open_orders) == 167


@given(observed=facts(), seed=st.integers(0, 500))
def test_a_plan_never_exceeds_a_maximum_but_for_a_first_machine(observed: Facts, seed: int) -> None:
    decision = decide(observed, Random(seed))

    counted = observed.tally
    maximum = observed.pool.max_capacity
    forgiven = min(counted.stuck, max(1, maximum // 10))
    total = counted.pool.total - forgiven + ordered(decision)
    is_first = (
        counted.pool.total == 0
        and sum(choice.count for choice in decision.choices) == 1
        and all(
            h.capacity_per_instance > maximum
            for h in observed.pool.heads
            if h.initial_weight > 0
            and (h.max_capacity is None or h.max_capacity >= h.capacity_per_instance)
        )
    )
    assert ordered(decision) == 0 or total <= maximum or is_first
    for head in observed.pool.heads:
        name = head.launch_config_id
        new = sum(c.capacity for c in decision.choices if c.head.launch_config_id == name)
        there = counted.by_launch_config.get(name, Counts()).total
        assert new >= 0
        if new and head.max_capacity is not None:
            assert there + new <= head.max_capacity
        if head.initial_weight == 0:
            assert new == 0


@given(observed=facts(), seed=st.integers(0, 500))
def test_a_tick_never_orders_and_lets_go_at_once(observed: Facts, seed: int) -> None:
    """Report B12 (#8328): one need, read in two ways."""
    decision = decide(observed, Random(seed))
    assert decision.estimate is not None
    active = {head.launch_config_id for head in observed.pool.heads}

    standing = weigh(observed.workers, active, target=decision.estimate.target, now=NOW)
    changes = decide_surplus(standing, busy=set(), now=NOW)

    if decision.choices:
        assert not any(
            answer.terminate and worker.launch_config_id in active for worker, answer in changes
        )


@given(observed=facts(), seed=st.integers(0, 500))
def test_the_same_tick_decides_the_same(observed: Facts, seed: int) -> None:
    first, second = decide(observed, Random(seed)), decide(observed, Random(seed))

    assert first == second
    backwards = replace(observed, workers=list(reversed(observed.workers)))
    assert decide(backwards, Random(seed)).choices == first.choices


@given(observed=facts(), seed=st.integers(0, 500))
def test_every_decision_that_orders_or_holds_back_has_a_reason(observed: Facts, seed: int) -> None:
    decision = decide(observed, Random(seed))

    assert decision.estimate is not None
    assert bool(decision.reasons) == (decision.estimate.wanted > 0)


def test_orders_are_named_after_what_is_done_and_split_without_colliding() -> None:
    orders = plan(seen(pending=250, maximum=1000))

    assert [order.count for order in orders] == [100, 100, 50]
    assert [order.order_id for order in orders] == [
        order_id(a_pool().pool_id, "t-1", "lc-a", part) for part in range(3)
    ]
    assert all(order.state is OrderState.NOTED for order in orders)


def test_a_plan_keeps_what_it_was_decided_from() -> None:
    observed = seen(pending=2)
    decision = decide(observed, Random(1))

    noted = as_plan(decision, observed, tick="t-9", provider_id="aws", inputs={"owner": "o"})

    assert (noted.now, noted.facts, noted.reasons) == (NOW, decision.facts, decision.reasons)
    assert (noted.tick, noted.provider_id, noted.inputs) == ("t-9", "aws", {"owner": "o"})
    assert not noted.closed
