"""How many machines a pool gets, tick after tick, against what other systems got wrong."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from tests.factories import POOL_ID, a_head
from tests.reconcile.invariants import assert_sound
from tests.reconcile.world import World, heads
from worker_manager.core.errors import CloudUnavailableError, InvalidLaunchConfigError
from worker_manager.core.model import Location
from worker_manager.core.surplus import NEEDED, OVER_CAPACITY
from worker_manager.providers.fake import Method


def test_demand_that_is_held_while_workers_boot_is_ordered_once(world: World) -> None:
    """B02: 167 pending tasks brought 167 machines in each of 8 loops."""
    world.cloud.boot_time = timedelta(minutes=3)
    world.save_pool(heads=heads("lc-a", "lc-b"), maximum=1000)
    world.demand(pending=167)

    for _ in range(8):
        world.clock.advance(seconds=20)
        world.tick()

    assert len(world.cloud.machines) == 167
    assert [report.ordered for report in world.reports] == [167, 0, 0, 0, 0, 0, 0, 0]


def test_slow_booters_are_counted_once_for_as_long_as_it_takes(world: World) -> None:
    """B03: bare metal that boots for 20 minutes was ordered up to the maximum."""
    world.cloud.boot_time = timedelta(minutes=20)
    world.save_pool(maximum=100)
    world.demand(pending=5)

    world.run_slowly(minutes=20)

    assert len(world.cloud.machines) == 5


def test_a_machine_larger_than_the_maximum_comes_once_and_is_no_error(world: World) -> None:
    """B05: 30 tasks a machine against a maximum of 2 was called over-provisioned (also B04)."""
    world.save_pool(heads=[a_head(capacity_per_instance=30)], maximum=2)
    world.demand(pending=50)

    world.run(minutes=2)
    world.register_all()
    world.run(minutes=2)

    assert len(world.cloud.machines) == 1
    assert world.pool_errors() == []


def test_a_lower_minimum_shows_in_the_decisions_of_the_next_tick(world: World) -> None:
    """B10: "should terminate" lagged by an hour.  B12: minimum 10 → 0 let ten idle ones stay."""
    world.save_pool(minimum=10, maximum=20)
    world.tick()
    world.register_all()
    world.clock.advance(seconds=30)
    world.tick()
    assert world.told_to_terminate() == {}

    world.change_pool(minimum=0, maximum=20)
    world.deliver_all()

    assert Counter(world.told_to_terminate().values()) == {OVER_CAPACITY: 10}


def test_a_decision_to_let_go_is_taken_back_when_demand_returns(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand()
    world.tick()
    assert len(world.told_to_terminate()) == 2

    world.demand(pending=1)
    world.clock.advance(seconds=30)
    world.tick()

    assert len(world.told_to_terminate()) == 1
    answers = [row.surplus.reason for row in world.rows() if row.surplus]
    assert sorted(answers) == [NEEDED, OVER_CAPACITY]
    assert len(world.cloud.machines) == 2


def test_a_lower_maximum_lets_the_idle_ones_go(world: World) -> None:
    """B46: what exceeds a lowered maximum stayed.  Idle ones go first."""
    world.save_pool(maximum=4)
    world.demand(pending=4)
    world.tick()
    world.register_all()
    busy = world.cloud.alive()[:2]
    world.queue.set_busy(POOL_ID, *((m.key.group, m.key.worker_id) for m in busy))
    world.demand(claimed=2)

    world.change_pool(maximum=2)
    world.deliver_all()

    gone = world.told_to_terminate()
    assert len(gone) == 2
    assert not gone.keys() & {machine.key.worker_id for machine in busy}


def test_a_quarantined_worker_is_no_capacity_but_costs(world: World) -> None:
    """B21: a task waited while a quarantined worker counted as capacity for it."""
    world.save_pool(maximum=2)
    world.demand(pending=1)
    world.tick()
    world.register_all()
    (machine,) = world.cloud.alive()
    world.queue.set_activity(
        POOL_ID,
        machine.key.group,
        machine.key.worker_id,
        first_claim=world.clock.now,
        last_active=world.clock.now,
        quarantine_until=world.clock.now + timedelta(days=1),
    )
    world.clock.advance(minutes=1)
    world.scan()

    world.demand(pending=5)
    world.run(minutes=1)

    assert len(world.cloud.alive()) == 2


def test_twenty_minutes_without_capacity_and_a_lost_message_lose_no_task(world: World) -> None:
    """B36: a job whose one event met no capacity hung for ever."""
    world.cloud.capacity["lc-a"] = 0
    world.save_pool()
    world.demand(pending=3)
    for _ in range(20):
        world.clock.advance(minutes=1)
        world.tick()
    assert world.cloud.machines == {}

    world.cloud.capacity.clear()
    world.clock.advance(seconds=30)
    world.send_ticks()
    assert world.lose("provision") == 1
    world.tick_for(minutes=6)

    assert len(world.cloud.alive()) == 3


def test_minimum_and_demand_share_one_maximum(world: World) -> None:
    """B39: the pool's top-up ignored the maximum."""
    world.save_pool(minimum=8, maximum=10)
    world.demand(pending=9, claimed=0)

    world.run(minutes=2)

    assert len(world.cloud.machines) == 9
    assert_sound(world)


def test_seven_of_ten_are_kept_and_three_ordered_again(world: World) -> None:
    """B40: a partial creation counted as failed while its machines ran."""
    world.cloud.capacity["lc-a"] = 7
    world.save_pool()
    world.demand(pending=10)
    world.tick()
    assert world.states() == {"requested": 7}
    (error,) = world.pool_errors()
    assert (error.kind, error.extra["requested"], error.extra["launched"]) == ("no-capacity", 10, 7)

    world.cloud.capacity.clear()
    world.tick_for(minutes=3)

    assert world.states() == {"requested": 10}
    assert [report.ordered for report in world.reports if report.ordered] == [10, 1, 2]


def test_eight_launch_configs_share_one_demand(world: World) -> None:
    """B47: 96 wanted over 8 clouds brought 142."""
    world.save_pool(heads=heads(*"abcdefgh"), maximum=500)
    world.demand(pending=96)

    for _ in range(3):
        world.clock.advance(seconds=30)
        world.tick()

    assert len(world.cloud.machines) == 96
    shares = Counter(m.order.launch_config_id for m in world.cloud.machines.values())
    assert set(shares.values()) == {12}


def test_a_launch_that_worked_after_its_timeout_is_not_repeated(world: World) -> None:
    """B52, S8: the answer was lost, and failover launched the same again under another token."""
    world.save_pool()
    world.demand(pending=4)
    world.provider.fail(Method.LAUNCH, CloudUnavailableError("timeout"), after_acting=True)

    world.run(minutes=1)

    assert len(world.cloud.machines) == 4
    sent = [call.subject for call in world.provider.calls if call.method is Method.LAUNCH]
    assert len(sent) == 2
    assert len(set(sent)) == 1
    assert world.open_plans() == []


@pytest.mark.parametrize(
    ("minimum", "first", "then", "ordered"),
    [(0, 5, 10, [5, 5]), (5, 0, 0, [5, 0])],
)
def test_what_is_requested_already_is_subtracted_once(
    world: World, minimum: int, first: int, then: int, ordered: list[int]
) -> None:
    """S1: pending 10 with 5 requested spawned 0."""
    world.save_pool(minimum=minimum, maximum=100)
    world.demand(pending=first)
    world.tick()
    world.demand(pending=then)
    world.clock.advance(seconds=30)
    world.tick()

    assert [report.ordered for report in world.reports] == ordered


def test_ghosts_that_do_not_go_away_starve_no_pool(world: World) -> None:
    """S4: 1,185 stopping of a maximum of 2,000 kept 1,680 tasks waiting."""
    world.save_pool(maximum=10)
    world.demand(pending=10)
    world.tick()
    world.demand()
    for machine in world.cloud.alive():
        world.cloud.protect(machine.key)
        world.remove(machine.key)
    world.lose("advance")

    world.clock.advance(minutes=19)
    world.demand(pending=8)
    world.tick()
    assert len(world.cloud.machines) == 10

    world.clock.advance(minutes=2)
    world.tick()
    assert len(world.cloud.machines) == 11


def test_one_failing_launch_config_stops_no_other_and_its_error_names_it(world: World) -> None:
    """S6: the first RunInstances error ended the pass, and was stored without launch config."""
    world.save_pool(
        heads=[
            a_head("lc-a"),
            a_head("lc-b", location=Location("us-west-2")),
            a_head("lc-c", location=Location("eu-central-1")),
        ]
    )
    world.demand(pending=6)
    world.provider.fail(Method.LAUNCH, InvalidLaunchConfigError("no such image"))

    world.tick()

    assert len(world.cloud.machines) == 4
    (error,) = world.pool_errors()
    launched = {m.order.launch_config_id for m in world.cloud.machines.values()}
    assert error.launch_config_id in {"lc-a", "lc-b", "lc-c"} - launched
    world.clock.advance(seconds=30)
    world.run_until(lambda: len(world.cloud.machines) == 6, minutes=3)
