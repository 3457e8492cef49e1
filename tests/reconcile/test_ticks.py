"""When messages are read, what is stored of a decision, and what a quiet pool costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.factories import NOW, POOL_ID, REGION
from tests.reconcile.deployment import PLENTY
from tests.reconcile.scenes import with_workers
from tests.reconcile.steps import READS
from worker_manager.core.breaker import trip
from worker_manager.core.messages import ProvisionPool
from worker_manager.core.moments import to_wire
from worker_manager.core.sightings import Baseline
from worker_manager.observing import freed
from worker_manager.providers.fake import Call, Method, Moment
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.ticks import from_message, from_schedule, provision_tick
from worker_manager.store.places import Place, Survey

if TYPE_CHECKING:
    import pytest

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


def test_a_list_that_takes_longer_than_two_intervals_is_not_stale(world: World) -> None:
    """A slow cloud's list ages while it is read; its message is as young as its end."""
    (gone,) = with_workers(world, 1)
    world.cloud.vanish(gone.key)
    world.clock.advance(minutes=2)
    before = world.provider.on_call

    def slowly(moment: Moment, call: Call) -> None:
        if before is not None:
            before(moment, call)
        if (moment, call.method) == (Moment.AFTER, Method.INSTANCES):
            world.clock.advance(minutes=5)

    world.provider.on_call = slowly
    world.scan()

    assert world.states() == {"stopped": 1}


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


def test_a_location_whose_scans_die_takes_no_orders_and_is_alarmed_once_a_tick(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.save_pool()
    world.scan()
    world.demand(pending=1)
    world.clock.advance(minutes=9)
    world.send_ticks()
    assert not caplog.records
    world.lose("provision")
    world.clock.advance(minutes=2)

    world.tick()

    assert world.cloud.machines == {}
    assert world.reports[-1].reasons[0] == "us-east-1 could not be listed for too long"
    alarms = [record.getMessage() for record in caplog.records]
    assert alarms == ["locations could not be listed for too long"]

    world.change_pool()
    world.deliver_all()
    assert world.cloud.machines == {}

    world.scan()
    world.clock.advance(seconds=30)
    world.tick()
    assert len(world.cloud.machines) == 1


def test_pools_take_turns_in_coming_first(world: World) -> None:
    names = [f"proj-x/pool-{number}" for number in range(5)]
    for name in names:
        world.save_pool(name)

    def order(queue: str) -> tuple[str, ...]:
        found = tuple(delivery.body["pool"] for delivery in world.mail)
        assert sorted(found) == names
        world.lose(queue)
        return found

    seen: dict[str, set[tuple[str, ...]]] = {"provision": set(), "scan": set()}
    for _ in range(10):
        world.clock.advance(seconds=30)
        world.send_ticks()
        first = order("provision")
        world.send_ticks()
        assert order("provision") == first
        seen["provision"].add(first)
        world.send_scans()
        seen["scan"].add(order("scan"))
    assert all(len({names[0] for names in orders}) > 2 for orders in seen.values())


def test_letting_go_ends_with_the_time_and_the_next_tick_goes_on(world: World) -> None:
    with_workers(world, 3)
    message = ProvisionPool(POOL_ID, "t-1")

    provision(message, world.deps, Deadline.after(timedelta(seconds=1)))
    assert world.told_to_terminate() == {}

    world.tick()
    assert len(world.told_to_terminate()) == 3


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


def test_the_room_of_a_quota_is_shared_by_the_offerings_of_its_location() -> None:
    """Two machine types under one quota: what one list shows free is not taken twice."""
    full = replace(trip(None, "quota-exceeded", "no more", NOW), machines=10)
    older, younger = full, replace(full, since=NOW + timedelta(seconds=1))
    listed = Place(REGION, complete=NOW + timedelta(minutes=1), baseline=Baseline(machines=9))
    survey = Survey([], {REGION: listed}, {f"{REGION}/a": younger, f"{REGION}/b": older})

    found = freed(survey, NOW + timedelta(minutes=30))

    assert found[f"{REGION}/b"].is_freed
    assert not found[f"{REGION}/a"].is_due(NOW + timedelta(minutes=30))

    unlisted_since = replace(listed, complete=NOW)
    survey = Survey([], {REGION: unlisted_since}, {f"{REGION}/a": younger})
    assert not freed(survey, NOW)[f"{REGION}/a"].is_freed
