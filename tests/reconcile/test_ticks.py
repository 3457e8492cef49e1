"""When messages are read, what is stored of a decision, and what a quiet pool costs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.factories import POOL_ID
from tests.reconcile.deployment import PLENTY
from tests.reconcile.steps import READS
from worker_manager.core.messages import ProvisionPool
from worker_manager.core.moments import to_wire
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.ticks import from_message, from_schedule, provision_tick

if TYPE_CHECKING:
    from tests.reconcile.world import World
    from worker_manager.core.model import Json


def test_a_minute_is_split_into_slots_that_keep_their_names(world: World) -> None:
    event: Json = {"time": to_wire(world.clock.now)}
    interval = timedelta(seconds=15)

    first = from_schedule(event, interval, world.deps.senders["ticks"])
    later = [from_message(delivery.body, interval) for delivery in world.mail]

    assert [delivery.due - world.clock.now for delivery in world.mail] == [
        interval,
        2 * interval,
        3 * interval,
    ]
    assert len({tick.name for tick in (first, *later)}) == 4
    assert [tick.due for tick in later] == [delivery.due for delivery in world.mail]


def test_a_decision_without_orders_is_stored_once_while_its_reasons_stay(world: World) -> None:
    world.save_pool(maximum=0)
    world.demand(pending=3)
    for pending in (3, 4, 5, 6):
        world.demand(pending=pending)
        world.clock.advance(seconds=30)
        world.tick()
    assert len(world.plans()) == 1

    world.queue.fail()
    world.run(minutes=1)
    assert len(world.plans()) == 2

    world.queue.recover()
    world.demand()
    world.run(minutes=1)
    assert len(world.plans()) == 3
    assert world.open_plans() == []


def test_an_ordered_plan_tells_facts_and_reasons(world: World) -> None:
    world.save_pool()
    world.demand(pending=5, claimed=0)
    world.tick()

    (tick,) = world.plans()
    plan = world.stores.plans.get(POOL_ID, tick)

    assert plan is not None
    assert plan.closed
    assert plan.reasons == ("tasks are waiting for more capacity than is running or requested",)
    assert (plan.facts["pending"], plan.facts["toSpawn"]) == (5, 5)


def test_a_tick_older_than_two_intervals_is_acknowledged_unread(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.send_ticks()
    world.clock.advance(seconds=61)
    world.fuse.requests.clear()

    world.deliver_all()

    assert [report.outcome for report in world.reports] == ["stale"]
    assert not world.fuse.requests


def test_a_stale_list_is_acknowledged_unread(world: World) -> None:
    world.save_pool()
    world.send_scans()
    world.clock.advance(minutes=2, seconds=1)
    world.fuse.requests.clear()

    world.deliver_all()

    assert not world.fuse.requests


def test_a_stale_schedule_sends_nothing(world: World) -> None:
    world.save_pool()
    tick = from_message({"time": to_wire(world.clock.now), "slot": 0}, timedelta(seconds=30))
    world.clock.advance(seconds=61)

    assert provision_tick(tick, world.deps)["stale"]
    assert world.mail == []


def test_a_change_is_read_however_late_it_comes(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.change_pool(maximum=3)
    world.clock.advance(hours=5)

    world.deliver_all()

    assert len(world.cloud.machines) == 1


def test_the_same_tick_again_orders_nothing_new(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    message = ProvisionPool(POOL_ID, "t-1", world.clock.now)
    provision(message, world.deps, PLENTY)
    world.demand(pending=9)

    again = provision(message, world.deps, PLENTY)

    assert again.outcome == "lost to another planner"
    assert len(world.cloud.machines) == 1


def test_orders_that_time_does_not_allow_are_cancelled_and_planned_anew(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    provision(ProvisionPool(POOL_ID, "t-1"), world.deps, Deadline.after(timedelta(seconds=3)))
    assert world.cloud.machines == {}
    assert len(world.open_plans()) == 1

    world.demand(pending=1)
    world.tick()

    assert world.open_plans() == []
    assert len(world.cloud.machines) == 1


def test_a_quiet_pool_costs_three_requests_and_no_cloud_call(world: World) -> None:
    world.save_pool()
    world.tick()
    world.clock.advance(seconds=30)
    world.send_ticks()
    world.fuse.reset()

    world.deliver_all()

    assert world.fuse.requests.total() <= 3
    assert set(world.fuse.requests) <= READS
    assert world.provider.calls == []


def test_the_scan_of_a_pool_that_did_not_change_writes_nothing(world: World) -> None:
    world.save_pool()
    world.demand(pending=3)
    world.tick()
    world.register_all()
    for machine in world.cloud.alive():
        world.works(machine.key)
    world.clock.advance(minutes=2)
    world.scan()
    world.clock.advance(minutes=1)
    world.send_scans()
    world.fuse.reset()

    world.deliver_all()

    assert set(world.fuse.requests) <= READS
    assert world.fuse.requests.total() <= 2
    assert world.fuse.steps == []
