"""How long machines are waited for, when nobody is ordered, and who is let go."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import POOL_ID, a_head
from tests.reconcile.scenes import launches, own_breakers, with_workers
from tests.reconcile.world import heads
from worker_manager.core.breaker import trip
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.events import LAUNCH_CONFIG_PAUSED, LAUNCH_CONFIG_RESUMED, pause_event
from worker_manager.core.model import MachineStatus
from worker_manager.core.plans import Pause
from worker_manager.core.surplus import OVER_CAPACITY
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.reconcile.world import World

MINUTE = timedelta(minutes=1)


# Launch, boot and registration each have their time


def scan_for(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.clock.advance(minutes=1)
        world.scan()


def test_a_machine_that_runs_late_still_has_its_time_to_register(world: World) -> None:
    """B24 (#6492): running after 25 minutes, killed at 30; it registers at 31."""
    world.cloud.boot_time = 25 * MINUTE
    world.save_pool(lifecycle={"registrationTimeout": 600})
    world.demand(pending=1)
    world.tick()
    scan_for(world, 31)
    (machine,) = world.cloud.alive()

    assert world.register(machine.key)

    scan_for(world, 3)
    assert world.states() == {"running": 1}
    row = world.row(machine.key)
    assert row.launched is not None
    assert 25 * MINUTE <= row.launched - row.created <= 26 * MINUTE


def test_a_machine_that_runs_and_does_not_register_in_its_time_is_stopped(world: World) -> None:
    world.cloud.boot_time = 25 * MINUTE
    world.save_pool(lifecycle={"registrationTimeout": 600})
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()

    scan_for(world, 35)
    assert world.states() == {"requested": 1}
    scan_for(world, 2)

    row = world.row(machine.key)
    assert (row.stop_reason, row.stopped_by) == ("did not register in time", "worker-manager")


def test_a_machine_that_never_runs_is_stopped_after_the_time_for_launches(world: World) -> None:
    """B24 (#6492): with a reason that names the cloud and not the image."""
    world.cloud.boot_time = timedelta(days=1)
    world.save_pool(lifecycle={"registrationTimeout": 600})
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()

    scan_for(world, 30)
    assert world.states() == {"requested": 1}
    scan_for(world, 1)

    assert world.row(machine.key).stop_reason == "did not run in its cloud in time"
    (error,) = world.pool_errors()
    assert (error.kind, error.launch_config_id) == ("lost", "lc-a")


def test_a_worker_that_registered_is_not_judged_by_what_the_cloud_says_of_its_start(
    world: World,
) -> None:
    """B32 (#6898, PR#8412): the cloud called its provisioning failed; it ran and worked."""
    world.cloud.boot_time = timedelta(days=1)
    world.save_pool(lifecycle={"registrationTimeout": 600})
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()
    assert world.register(machine.key)
    world.works(machine.key)

    scan_for(world, 60)

    assert world.cloud.status(machine) is MachineStatus.PENDING
    assert world.states() == {"running": 1}


# Demand that goes


def test_demand_that_is_gone_orders_nothing_at_the_next_tick(world: World) -> None:
    """B26 (#7089): cancelled tasks counted as pending for a while."""
    world.save_pool(maximum=50)
    world.demand(pending=100)
    world.tick()
    for machine in world.cloud.alive()[:20]:
        world.cloud.vanish(machine.key)
    world.demand()

    world.run(minutes=5)

    assert len(launches(world)) == 1


@pytest.mark.parametrize("capacity", [1, 5])
def test_a_pool_without_work_goes_to_nothing_and_stays_there(world: World, capacity: int) -> None:
    """B42 (gitlab-runner#37643): never to 0 above one task a machine.  B43 (#37526): relaunched."""
    machines = with_workers(world, 10, heads=[a_head(capacity_per_instance=capacity)])
    assert len(machines) == 10 // capacity
    world.tick()

    for _ in range(60):
        told = world.told_to_terminate()
        for machine in world.cloud.alive():
            if machine.key.worker_id in told:
                world.cloud.vanish(machine.key)
        world.run_slowly(minutes=1)

    assert world.cloud.alive() == []
    assert len(launches(world)) == 1


def busy(world: World, workers: Collection[str]) -> None:
    world.queue.set_busy(
        POOL_ID,
        *(
            (m.key.group, m.key.worker_id)
            for m in world.cloud.alive()
            if m.key.worker_id in workers
        ),
    )


@pytest.mark.parametrize("maximum", [100, 4])
def test_who_works_is_not_told_to_go_before_all_who_do_not(world: World, maximum: int) -> None:
    """B44 (gitlab#552226): a job was killed in its midst when the period of a schedule ended."""
    machines = with_workers(world, 10)
    working = {machine.key.worker_id for machine in machines[:6]}
    busy(world, working)
    world.demand(claimed=6)

    world.change_pool(maximum=maximum)
    world.deliver_all()

    told = set(world.told_to_terminate())
    idle = {machine.key.worker_id for machine in machines} - working
    assert idle <= told
    assert len(told & working) == max(0, 6 - maximum)
    world.clock.advance(minutes=1)
    world.scan()
    assert all(machine.terminated is None for machine in machines)


def test_a_launch_that_hangs_keeps_nobody_idle(world: World) -> None:
    """B54 (autoscaler#8258): no scale-down while a scale-up was in progress."""
    with_workers(world, 10)
    world.provider.fail(Method.LAUNCH, CloudUnavailableError("no answer"), times=99)
    world.demand(pending=11)
    world.clock.advance(seconds=30)
    world.tick()
    assert len(world.open_plans()) == 1
    world.demand()

    world.clock.advance(seconds=30)
    world.tick()

    assert len(world.open_plans()) == 1
    assert list(world.told_to_terminate().values()) == [OVER_CAPACITY] * 10


# Pauses


def pause(world: World, *names: str, minutes: int) -> None:
    """As the API does."""
    now = world.clock.now
    with world.aside():
        before = world.stores.pools.control(POOL_ID).pauses
        after = {
            name: Pause(until=now + minutes * MINUTE, reason="maintenance", by="me", since=now)
            for name in names
        }
        event = pause_event(
            LAUNCH_CONFIG_PAUSED, POOL_ID, "aws", names[0], at=now, reason="maintenance"
        )
        assert world.stores.pauses.write(POOL_ID, before, after, event=event, now=now)


def test_a_paused_launch_config_gets_nothing_until_its_pause_ends_by_itself(
    world: World,
) -> None:
    """Report S9: the reference has no pauses."""
    world.save_pool(heads=heads("lc-a", "lc-b"), maximum=100)
    pause(world, "lc-a", "lc-b", minutes=10)
    world.demand(pending=6)

    world.tick_for(minutes=9, seconds=30)
    assert launches(world) == []
    assert world.reports[-1].reasons[:2] == ("lc-a: paused", "lc-b: paused")
    world.tick_for(seconds=30)

    assert len(world.cloud.alive()) == 6
    resumed = [e for e in world.bus.published if e["name"] == LAUNCH_CONFIG_RESUMED]
    assert [event["detail"]["launchConfigId"] for event in resumed] == ["lc-a", "lc-b"]
    assert {event["detail"]["reason"] for event in resumed} == {"the pause is over"}
    assert {event["detail"]["timestamp"] for event in resumed} == {"2026-01-02T03:14:05.000Z"}
    with world.aside():
        assert world.stores.pools.control(POOL_ID).pauses == {}
    world.tick_for(minutes=5)
    assert len([e for e in world.bus.published if e["name"] == LAUNCH_CONFIG_RESUMED]) == 2


def test_a_pause_goes_with_its_launch_config_and_nobody_is_told_of_an_end(world: World) -> None:
    world.save_pool(heads=heads("lc-a", "lc-b"))
    pause(world, "lc-a", minutes=60)
    world.save_pool(heads=heads("lc-b"))

    world.tick_for(minutes=61)

    assert [e for e in world.bus.published if e["name"] == LAUNCH_CONFIG_RESUMED] == []
    with world.aside():
        assert world.stores.pools.control(POOL_ID).pauses == {}


def test_a_pause_holds_though_all_others_are_closed_off(world: World) -> None:
    world.save_pool(heads=heads("lc-a", "lc-b"), maximum=100)
    pause(world, "lc-a", minutes=60)
    world.demand(pending=6)
    with world.aside():
        broken = {"lc-b": trip(None, "invalid-launch-config", "no image", world.clock.now)}
        world.stores.plans.remember(world.stores.pools.control(POOL_ID), breakers=broken)

    world.tick_for(minutes=10)

    launched = {machine.order.launch_config_id for machine in world.cloud.alive()}
    assert launched == {"lc-b"}
    assert own_breakers(world)["lc-b"].is_closed


def test_a_pause_that_was_taken_back_meanwhile_is_not_told_to_have_ended(world: World) -> None:
    world.save_pool()
    pause(world, "lc-a", minutes=1)
    world.clock.advance(minutes=2)

    def prolong(request: str) -> None:
        if request == "TransactWriteItems":
            world.fuse.on_request = None
            pause(world, "lc-a", minutes=9)

    world.fuse.on_request = prolong
    world.tick()

    with world.aside():
        assert world.stores.pools.control(POOL_ID).pauses.keys() == {"lc-a"}
    assert LAUNCH_CONFIG_RESUMED not in world.bus.names()
