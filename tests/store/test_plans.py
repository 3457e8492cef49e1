from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pynamodb.exceptions import PutError, TransactWriteError, UpdateError

from tests.factories import NOW, POOL_ID, REGION, a_plan, an_order
from tests.store.sizes import LARGEST, item_size
from tests.store.wire import cancelled, half_processed, lost, refused
from worker_manager.core.breaker import LONGEST_REASON, probe, recover, trip
from worker_manager.core.model import Location
from worker_manager.core.plans import Control, OrderState
from worker_manager.store.plans import PlanStore
from worker_manager.store.pool_items import SHORT_REASON
from worker_manager.store.pools import PoolStore

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.core.plans import Plan
    from worker_manager.store.tables import Tables

MINUTE = timedelta(minutes=1)
KEPT = timedelta(days=14)
A_MEMORY: dict[str, Any] = {
    "reasons_hash": "new",
    "breakers": {
        "lc-a": probe(trip(None, "lost", "é", NOW), NOW + MINUTE),
        "lc-b": recover(trip(None, "other", "x", NOW), NOW),
    },
    "probed": NOW,
    "probe_wait": 2 * MINUTE,
}


@pytest.fixture
def store(tables: Tables) -> PlanStore:
    return PlanStore(tables, kept=KEPT)


@pytest.fixture
def pools(tables: Tables) -> PoolStore:
    return PoolStore(tables)


def a_full_plan() -> Plan:
    full = an_order(
        "o-2",
        state=OrderState.SETTLED,
        count=5,
        first_sent=NOW,
        last_sent=NOW + MINUTE,
        not_before=NOW + 2 * MINUTE,
        launched=3,
        error={"kind": "no-capacity", "code": "X", "message": "é"},
    )
    return a_plan(
        orders=(an_order(), full),
        facts={"pending": 7, "weights": {"lc-a": 0.5}},
        reasons=("tasks are waiting", "é"),
        inputs={"owner": "o@example.com"},
    )


def note(store: PlanStore, plan: Plan, control: Control | None = None) -> Control:
    after = store.note(plan, control or Control(plan.pool_id), reasons_hash="h")
    assert after is not None
    return after


def test_a_noted_plan_comes_back_as_it_was_noted(store: PlanStore, pools: PoolStore) -> None:
    control = note(store, a_full_plan())

    assert store.get(POOL_ID, "t-1") == a_full_plan()
    assert control == Control(POOL_ID, 1, {"t-1": "aws"}, "h")
    assert pools.control(POOL_ID) == control
    assert store.open_plans(control) == [a_full_plan()]


def test_an_unknown_plan_is_none(store: PlanStore) -> None:
    assert store.get(POOL_ID, "t-1") is None
    assert store.open_plans(Control(POOL_ID)) == []


def test_of_two_planners_with_the_same_facts_one_loses(store: PlanStore, pools: PoolStore) -> None:
    seen = pools.control(POOL_ID)
    winner = note(store, a_plan("t-1"), seen)

    assert store.note(a_plan("t-2"), seen, reasons_hash="") is None
    assert store.get(POOL_ID, "t-2") is None
    assert pools.control(POOL_ID) == winner


def test_the_fence_holds_at_every_version(store: PlanStore) -> None:
    first = note(store, a_plan("t-1"))
    second = note(store, a_plan("t-2"), first)

    assert store.note(a_plan("t-3"), first, reasons_hash="") is None
    assert second.open_plans == {"t-1": "aws", "t-2": "aws"}


def test_a_tick_is_noted_once_even_by_who_sees_the_latest_fence(store: PlanStore) -> None:
    first = note(store, a_plan("t-1"))

    assert store.note(a_plan("t-1", reasons=("other",)), first, reasons_hash="") is None


def test_a_note_sent_again_after_its_answer_was_lost_is_no_loss(
    store: PlanStore, wire: Wire, pools: PoolStore
) -> None:
    wire.inject("TransactWriteItems", lost)

    control = note(store, a_plan())

    assert pools.control(POOL_ID) == control
    (call,) = wire.of("TransactWriteItems")
    assert 1 <= len(call["ClientRequestToken"]) <= 36


@pytest.mark.usefixtures("wire")
def test_a_note_of_the_same_content_at_the_same_fence_is_the_same_note(store: PlanStore) -> None:
    """As by a process that died before it heard of its success and starts over."""
    seen = Control(POOL_ID)
    first = note(store, a_plan(), seen)

    assert store.note(a_plan(), seen, reasons_hash="h") == first
    assert store.note(a_plan(reasons=("other",)), seen, reasons_hash="h") is None


def test_a_collision_of_transactions_is_no_loss(
    store: PlanStore, wire: Wire, pauses: list[float]
) -> None:
    wire.inject("TransactWriteItems", *[cancelled("None", "TransactionConflict")] * 2)

    note(store, a_plan())

    assert len(pauses) == 2


def test_a_refusal_for_another_reason_is_no_loss_either(store: PlanStore, wire: Wire) -> None:
    wire.inject("TransactWriteItems", cancelled("ValidationError", "None"))

    with pytest.raises(TransactWriteError):
        store.note(a_plan(), Control(POOL_ID), reasons_hash="")


def test_of_many_planners_with_the_same_facts_one_notes_its_plan(
    store: PlanStore, pools: PoolStore
) -> None:
    seen = pools.control(POOL_ID)

    noted = [store.note(a_plan(f"t-{number}"), seen, reasons_hash="") for number in range(6)]

    assert sum(after is not None for after in noted) == 1
    assert [plan.tick for plan in store.open_plans(pools.control(POOL_ID))] == ["t-0"]


def test_marks_are_written_by_version(store: PlanStore) -> None:
    note(store, a_plan())
    sent = (an_order(state=OrderState.SENT, first_sent=NOW, last_sent=NOW),)

    marked = store.mark(a_plan(), orders=sent)

    assert marked == a_plan(orders=sent, version=1)
    assert store.get(POOL_ID, "t-1") == marked
    assert store.mark(a_plan(), orders=()) is None
    assert store.get(POOL_ID, "t-1") == marked


def test_a_plan_that_was_never_noted_cannot_be_marked(store: PlanStore) -> None:
    assert store.mark(a_plan(), orders=()) is None
    assert store.get(POOL_ID, "t-1") is None


def test_other_failures_of_a_mark_are_no_lost_race(store: PlanStore, wire: Wire) -> None:
    note(store, a_plan())
    wire.inject("UpdateItem", refused("InternalServerError"))

    with pytest.raises(UpdateError):
        store.mark(a_plan(), orders=())


def test_closing_takes_a_plan_from_the_open_ones_and_moves_the_fence(
    store: PlanStore, pools: PoolStore
) -> None:
    one = note(store, a_plan("t-1"))
    two = note(store, a_plan("t-2"), one)

    after = store.close(a_plan("t-1"), two)

    assert after == Control(POOL_ID, 3, {"t-2": "aws"}, "h")
    assert pools.control(POOL_ID) == after
    assert store.get(POOL_ID, "t-1") == a_plan("t-1", closed=True, version=1)
    assert store.open_plans(after) == [a_plan("t-2")]


def test_a_closed_plan_is_never_marked_or_closed_again(store: PlanStore) -> None:
    control = store.close(a_plan(), note(store, a_plan()))
    assert control is not None
    closed = store.get(POOL_ID, "t-1")
    assert closed is not None

    assert store.mark(closed, orders=()) is None
    assert store.mark(a_plan(), orders=()) is None
    assert store.get(POOL_ID, "t-1") == closed


def test_nobody_closes_from_an_older_copy_of_plan_or_control(store: PlanStore) -> None:
    control = note(store, a_plan())
    marked = store.mark(a_plan(), reasons=("newer",))
    assert marked is not None

    assert store.close(a_plan(), control) is None
    moved = note(store, a_plan("t-2"), control)
    assert store.close(marked, control) is None
    assert store.close(marked, moved) is not None


def test_a_planner_that_saw_a_plan_open_loses_once_it_is_closed(store: PlanStore) -> None:
    seen = note(store, a_plan("t-1"))
    store.close(a_plan("t-1"), seen)

    assert store.note(a_plan("t-2"), seen, reasons_hash="") is None


def test_a_close_sent_again_after_its_answer_was_lost_is_no_loss(
    store: PlanStore, wire: Wire
) -> None:
    control = note(store, a_plan())
    wire.inject("TransactWriteItems", lost)

    assert store.close(a_plan(), control) is not None


def test_open_plans_come_oldest_first_and_those_of_one_provider_alone(store: PlanStore) -> None:
    control = note(store, a_plan("b", now=NOW + MINUTE))
    control = note(store, a_plan("c", provider_id="google", now=NOW + 2 * MINUTE), control)
    control = note(store, a_plan("a", now=NOW + MINUTE), control)
    control = note(store, a_plan("d"), control)

    assert [plan.tick for plan in store.open_plans(control)] == ["d", "a", "b", "c"]
    assert [plan.tick for plan in store.open_plans(control, "google")] == ["c"]


def test_open_plans_that_a_batch_did_not_answer_are_asked_again(
    store: PlanStore, wire: Wire
) -> None:
    control = Control(POOL_ID)
    for number in range(5):
        control = note(store, a_plan(f"t-{number}"), control)
    wire.inject("BatchGetItem", half_processed, half_processed)

    assert len(store.open_plans(control)) == 5


def test_a_decision_is_stored_as_a_closed_plan_without_moving_the_fence(
    store: PlanStore, pools: PoolStore
) -> None:
    decision = a_plan(orders=(), reasons=("no room",))
    store.record_decision(decision)

    assert store.get(POOL_ID, "t-1") == replace(decision, closed=True)
    assert pools.control(POOL_ID) == Control(POOL_ID)
    note(store, a_plan("t-2"), pools.control(POOL_ID))


def test_what_a_tick_learned_is_remembered_without_moving_the_fence(
    store: PlanStore, pools: PoolStore
) -> None:
    store.remember(Control(POOL_ID), **A_MEMORY)

    assert pools.control(POOL_ID) == Control(POOL_ID, **A_MEMORY)
    note(store, a_plan("t-2"), pools.control(POOL_ID))


def test_a_noted_plan_brings_along_what_is_to_be_remembered(
    store: PlanStore, pools: PoolStore
) -> None:
    after = store.note(a_plan(), Control(POOL_ID), **A_MEMORY)

    assert after is not None
    assert after == Control(POOL_ID, 1, {"t-1": "aws"}, **A_MEMORY)
    assert pools.control(POOL_ID) == after
    closed = store.close(a_plan(), after)
    assert closed == replace(after, version=2, open_plans={})
    assert pools.control(POOL_ID) == closed


def test_what_is_forgotten_is_gone(store: PlanStore, pools: PoolStore) -> None:
    store.remember(Control(POOL_ID), **A_MEMORY)

    store.remember(
        pools.control(POOL_ID), reasons_hash="", breakers={}, probed=None, probe_wait=0 * MINUTE
    )

    assert pools.control(POOL_ID) == Control(POOL_ID)


def test_who_saw_an_older_fence_has_nothing_remembered(store: PlanStore, pools: PoolStore) -> None:
    seen = Control(POOL_ID)
    after = note(store, a_plan("t-1"), seen)

    store.remember(seen, reasons_hash="stale")

    assert pools.control(POOL_ID) == after


@pytest.mark.parametrize(("number", "kept"), [(3, LONGEST_REASON // 2), (600, SHORT_REASON)])
def test_breakers_of_as_many_launch_configs_as_a_pool_may_have_fit_into_its_control_item(
    store: PlanStore, pools: PoolStore, tables: Tables, number: int, kept: int
) -> None:
    long = replace(trip(None, "no-capacity", "é" * 5000, NOW), machines=10**6)
    breakers = {f"{one:038d}": long for one in range(number)}

    store.remember(Control(POOL_ID), breakers=breakers)

    short = replace(long, reason="é" * kept)
    assert pools.control(POOL_ID).breakers == dict.fromkeys(breakers, short)
    assert item_size(tables.pools.get(POOL_ID, "ctl").serialize()) < LARGEST


def test_a_decision_told_twice_is_stored_once(store: PlanStore) -> None:
    for reasons in (("first",), ("second",)):
        store.record_decision(a_plan(orders=(), reasons=reasons))

    stored = store.get(POOL_ID, "t-1")
    assert stored is not None
    assert stored.reasons == ("first",)


def test_other_failures_to_store_a_decision_are_told(store: PlanStore, wire: Wire) -> None:
    wire.inject("PutItem", refused("InternalServerError"))
    wire.inject("UpdateItem", refused("InternalServerError"))

    with pytest.raises(PutError):
        store.record_decision(a_plan(orders=()))
    with pytest.raises(UpdateError):
        store.remember(Control(POOL_ID), reasons_hash="x")


def test_recent_plans_and_decisions_come_oldest_first(store: PlanStore) -> None:
    control = note(store, a_plan("z", now=NOW))
    note(store, a_plan("a", now=NOW + 2 * MINUTE), control)
    store.record_decision(a_plan("m", now=NOW + MINUTE, orders=()))

    assert [plan.tick for plan in store.recent(POOL_ID, after=NOW - MINUTE)] == ["z", "m", "a"]
    assert [plan.tick for plan in store.recent(POOL_ID, after=NOW)] == ["m", "a"]


def test_a_plan_expires_only_once_it_is_closed(store: PlanStore, tables: Tables) -> None:
    control = note(store, a_plan())
    marked = store.mark(a_plan(), reasons=("x",))
    assert marked is not None
    assert tables.pools.get(POOL_ID, "plan#t-1").ttl is None

    store.close(marked, control)

    assert tables.pools.get(POOL_ID, "plan#t-1").ttl == (NOW + KEPT).timestamp()
    assert tables.pools.get(POOL_ID, "ctl").ttl is None


def test_the_last_list_that_was_scanned_is_told_by_location(store: PlanStore, wire: Wire) -> None:
    west = Location("us-west-2")
    store.scanned(POOL_ID, "aws", REGION, listed_at=NOW)
    store.scanned(POOL_ID, "aws", REGION, listed_at=NOW + MINUTE)
    store.scanned(POOL_ID, "google", west, listed_at=NOW)
    wire.inject("BatchGetItem", half_processed)

    assert store.scans(POOL_ID, "aws", {REGION, west}) == {REGION: NOW + MINUTE}
    assert store.scans(POOL_ID, "aws", set()) == {}


def test_the_largest_plan_fits_into_an_item(store: PlanStore, tables: Tables) -> None:
    error: dict[str, Any] = {"kind": "invalid-launch-config", "code": "c" * 60}
    orders = tuple(
        an_order(
            f"o-{number:030x}",
            launch_config_id="l" * 38,
            location=Location("ap-southeast-2"),
            count=100,
            capacity_per_instance=100,
            state=OrderState.SETTLED,
            first_sent=NOW,
            last_sent=NOW,
            not_before=NOW,
            launched=99,
            error=error | {"message": "é" * 500},
        )
        for number in range(100)
    )
    facts = {"weights": {f"{number:038d}": 0.1234 for number in range(300)}}
    note(store, a_plan(orders=orders, facts=facts, inputs={"owner": "o" * 300}))

    assert item_size(tables.pools.get(POOL_ID, "plan#t-1").serialize()) < LARGEST
