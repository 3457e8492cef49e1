"""Orders that the cloud refuses, throttles or never answers, and what settles them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import POOL_ID, REGION, a_head
from worker_manager.core.errors import CloudUnavailableError, NotReachedError, ThrottledError
from worker_manager.core.health import Health
from worker_manager.core.model import Location
from worker_manager.core.plans import OrderState
from worker_manager.providers.fake import Method
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from tests.reconcile.world import World

LOST = CloudUnavailableError("the connection was reset")
WEST = Location("us-west-2")


def launches(world: World) -> int:
    return sum(call.method is Method.LAUNCH for call in world.provider.calls)


def health(world: World) -> Health:
    return world.stores.health.window(POOL_ID, world.clock.now).get("lc-a", Health())


def test_a_throttled_order_stays_open_until_its_time_and_blames_nobody(world: World) -> None:
    world.save_pool()
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, ThrottledError("slow", retry_after=timedelta(seconds=90)))
    world.tick()
    (plan,) = world.open_plans()
    (order,) = plan.orders
    assert order.state is OrderState.SENT
    assert order.not_before == world.clock.now + timedelta(seconds=90)
    (delivery,) = world.mail
    assert (delivery.queue, delivery.body["kind"]) == ("advance", "resume")
    assert delivery.due >= order.not_before

    for _ in range(2):
        world.clock.advance(seconds=30)
        world.tick()
    assert launches(world) == 1

    world.clock.now = delivery.due
    world.deliver_all()

    assert world.states() == {"requested": 3}
    assert world.open_plans() == []
    assert world.pool_errors() == []
    assert (health(world).failures, health(world).launched) == (0, 3)


def test_many_throttled_orders_sent_together_bring_one_message_back(world: World) -> None:
    world.all_deps["aws"] = replace(world.deps, parallel=3)
    world.save_pool(heads=[a_head("lc-a"), a_head("lc-b"), a_head("lc-c")])
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, ThrottledError("slow"), times=3)
    world.tick()

    assert len(world.mail) == 1
    world.clock.advance(seconds=7)
    world.deliver_all()

    assert world.states() == {"requested": 3}


def test_a_location_that_asked_to_wait_gets_no_new_orders_by_any_message(world: World) -> None:
    other = "proj-x/pool-2"
    world.save_pool()
    world.save_pool(other)
    world.demand(pending=1)
    long = ThrottledError("slow", retry_after=timedelta(minutes=2))
    world.provider.fail(Method.LAUNCH, long)
    world.tick()

    world.demand(pending=1, pool_id=other)
    world.change_pool(other, maximum=5)
    world.deliver_all()
    world.clock.advance(seconds=30)
    world.tick()

    assert launches(world) == 1
    world.run_until(lambda: len(world.cloud.alive()) == 2, minutes=4)


def test_a_wait_that_launches_were_asked_for_delays_no_list(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    long = ThrottledError("slow", retry_after=timedelta(minutes=2))
    world.provider.fail(Method.LAUNCH, long)
    world.tick()

    world.scan()

    assert world.provider.calls[-1].method is Method.INSTANCES


def test_an_order_without_answer_is_settled_by_a_list_after_ten_minutes(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.provider.fail(Method.LAUNCH, LOST, times=1000)
    world.run_slowly(minutes=10)
    (plan,) = world.open_plans()
    sent = [call.subject for call in world.provider.calls if call.method is Method.LAUNCH]
    assert len(sent) == 10
    assert set(sent) == {plan.orders[0].order_id}

    world.clock.advance(minutes=1)
    world.provider._faults.clear()
    world.scan()
    world.tick()

    assert world.open_plans() == []
    assert health(world).failed == {"lost": 2}
    assert world.states() == {}, "a minute is left before a probe"
    world.tick_for(minutes=2)
    assert world.states() == {"requested": 2}


def test_an_order_that_never_left_is_over_and_holds_no_place_in_the_pool(world: World) -> None:
    """A mistyped region: no list would ever settle it, and the pool could never be deleted."""
    nowhere = a_head("lc-nowhere", location=Location("us-wset-2"), manager={"initialWeight": 1})
    world.save_pool(heads=[nowhere], maximum=3)
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, NotReachedError("no such host"))
    world.tick()

    assert world.open_plans() == []
    assert [error.launch_config_id for error in world.pool_errors()] == ["lc-nowhere"]

    world.save_pool(maximum=3)
    world.clock.advance(seconds=30)
    world.tick()
    assert world.states() == {"requested": 3}


def test_an_order_that_left_once_stays_open_though_it_cannot_be_sent_again(world: World) -> None:
    world.save_pool()
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, LOST, after_acting=True)
    world.provider.fail(Method.LAUNCH, NotReachedError("no route"))
    for _ in range(3):
        world.clock.advance(seconds=30)
        world.tick()

    assert len(world.cloud.machines) == 3
    assert world.states() == {"requested": 3}
    assert world.open_plans() == []


def test_what_an_unanswered_order_brought_is_adopted_and_counted(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.provider.fail(Method.LAUNCH, LOST, after_acting=True)
    world.provider.fail(Method.LAUNCH, LOST, times=1000)

    world.run_slowly(minutes=12)

    assert world.states() == {"requested": 2}
    assert len(world.cloud.machines) == 2
    assert world.open_plans() == []
    assert (health(world).launched, health(world).failures) == (2, 0)


def test_an_order_that_was_throttled_for_ten_minutes_blames_nobody(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.provider.fail(Method.LAUNCH, ThrottledError("slow"), times=1000)
    world.run_slowly(minutes=11)
    world.provider._faults.clear()

    world.run_until(lambda: len(world.cloud.alive()) == 1 and not world.open_plans(), minutes=5)

    assert health(world).failures == 0
    assert world.pool_errors() == []


def test_a_stale_location_keeps_its_orders_open_and_alarms(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.provider.fail(Method.LAUNCH, LOST, times=1000)
    world.provider.fail(Method.INSTANCES, LOST, times=1000)

    world.run_slowly(minutes=16)

    assert len(world.open_plans()) == 1
    assert "an order waits for a complete list" in caplog.messages
    place = world.stores.places.place("aws", REGION)
    assert place.stale_since is not None
    assert place.complete is None


def test_a_location_that_cannot_be_listed_gets_no_new_orders(world: World) -> None:
    world.save_pool(heads=[a_head("lc-a"), a_head("lc-b", location=WEST)])
    world.provider.fail(Method.INSTANCES, LOST, times=1000, subject=REGION)
    world.run_slowly(minutes=6)

    world.demand(pending=4)
    world.tick()

    assert {m.location for m in world.cloud.machines.values()} == {WEST}


@pytest.mark.parametrize("before", [1, 2])
def test_a_row_that_is_written_while_others_are_counted_is_not_missed(
    world: World, before: int
) -> None:
    """The scan adopts a machine before the planner's look at workers, or right after it."""
    world.save_pool()
    world.demand(pending=1)
    world.provider.fail(Method.LAUNCH, LOST, after_acting=True)
    world.provider.fail(Method.LAUNCH, LOST, times=1)
    world.tick()
    world.clock.advance(minutes=1)
    world.send_scans()
    scans, world.mail[:] = list(world.mail), []
    world.send_ticks()
    queries = 0

    def adopt(request: str) -> None:
        nonlocal queries
        queries += request == "Query"
        if queries == before:
            world.fuse.on_request = None
            for delivery in scans:
                world.deliver(delivery)

    world.fuse.on_request = adopt
    world.deliver_all()

    assert world.states() == {"requested": 1}
    assert len(world.cloud.machines) == 1


def test_a_machine_that_stopped_under_an_open_order_counts_as_one_to_come(world: World) -> None:
    """One look at the rows suffices: what it lacks means fewer orders, never more."""
    world.save_pool(maximum=2)
    world.demand(pending=2)
    world.provider.fail(Method.LAUNCH, LOST, after_acting=True)
    world.provider.fail(Method.LAUNCH, LOST, times=1000)
    world.tick()
    world.clock.advance(minutes=2)
    world.scan()
    assert world.states() == {"requested": 2}
    world.cloud.vanish(world.cloud.alive()[0].key)
    world.clock.advance(minutes=1)
    world.scan()
    assert world.states() == {"requested": 1, "stopped": 1}

    world.tick()
    assert len(world.cloud.machines) == 2

    world.provider._faults.clear()
    world.run(minutes=2)
    assert len(world.cloud.machines) == 3
    assert world.open_plans() == []


def test_planning_reads_rows_once_however_many_orders_are_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.provider.fail(Method.LAUNCH, ThrottledError("slow", retry_after=timedelta(minutes=5)))
    world.tick()
    monkeypatch.delattr(WorkerStore, "rows_of_orders")
    world.clock.advance(seconds=30)
    world.tick()

    assert len(world.open_plans()) == 1
    assert world.reports[-1].facts is not None
    assert world.reports[-1].facts["requested"] == 1
