"""Machines whose names are ours: their rows are written before anything is asked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import POOL_ID
from tests.reconcile.naming import NamingWorld, assert_named, only_row, slots_used
from tests.reconcile.scenes import launches, scan_later
from worker_manager.core.errors import (
    CloudUnavailableError,
    InvalidLaunchConfigError,
    ThrottledError,
)
from worker_manager.core.health import Health
from worker_manager.providers.fake import Call, Method, Moment
from worker_manager.providers.fake_steps import Part
from worker_manager.reconcile.announcing import NEVER_MADE

if TYPE_CHECKING:
    from worker_manager.core.model import WorkerKey

LOST = CloudUnavailableError("the connection was reset")
SLOW = ThrottledError("slow", retry_after=timedelta(minutes=3))


def ordering(world: NamingWorld, count: int) -> NamingWorld:
    """So many machines are asked for, at one tick."""
    world.save_pool()
    world.demand(pending=count)
    world.tick()
    return world


def health(world: NamingWorld) -> Health:
    with world.aside():
        return world.stores.health.window(POOL_ID, world.clock.now).get("lc-a", Health())


def not_there(world: NamingWorld) -> list[WorkerKey]:
    return [row.key for row in world.rows() if row.key not in world.cloud.machines]


def test_a_row_is_written_before_its_machine_is_asked_for(naming: NamingWorld) -> None:
    seen: list[dict[str, int]] = []

    def look(moment: Moment, call: Call) -> None:
        if (moment, call.method) == (Moment.BEFORE, Method.LAUNCH):
            seen.append(naming.states())

    naming.provider.on_call = look
    ordering(naming, 3)

    assert seen == [{"requested": 3}]
    assert naming.states() == {"requested": 3}
    assert {row.key for row in naming.rows()} == naming.cloud.machines.keys()


@pytest.mark.parametrize("acted", [False, True])
def test_an_order_is_sent_again_until_all_of_its_machines_are_answered_for(
    naming: NamingWorld, acted: bool
) -> None:
    naming.provider.partly.append(Part(accepted=2, throttled=1, unknown=1, acted=acted))
    ordering(naming, 5)
    assert len(naming.open_plans()) == 1
    assert len(naming.cloud.machines) == 3 + acted

    naming.settle()

    assert len(naming.cloud.machines) == 5
    assert len(launches(naming)) == 2
    assert naming.states() == {"requested": 5}
    assert health(naming).launched == 5
    assert_named(naming)


def test_who_was_removed_before_the_order_is_sent_again_does_not_come_back(
    naming: NamingWorld,
) -> None:
    """One machine was made and deleted since, the other was never asked for."""
    naming.provider.partly.append(Part(accepted=1, throttled=1))
    ordering(naming, 2)
    naming.demand()
    for row in naming.rows():
        naming.remove(row.key)

    naming.settle()
    naming.settle()

    assert len(naming.cloud.machines) == 1
    assert naming.cloud.alive() == []
    assert naming.states() == {"stopped": 2}
    assert_named(naming)


def test_a_scan_between_announcement_and_call_judges_nobody(naming: NamingWorld) -> None:
    naming.provider.fail(Method.LAUNCH, SLOW)
    ordering(naming, 2)

    scan_later(naming, times=2)
    assert naming.states() == {"requested": 2}
    assert not any(call.method is Method.LOOKUP for call in naming.provider.calls)

    naming.run(minutes=2)
    assert len(naming.cloud.machines) == 2
    assert naming.pool_errors() == []


def test_refused_machines_end_and_their_order_says_why(naming: NamingWorld) -> None:
    """B40, B53: nobody thinks that they are still to come."""
    naming.cloud.capacity["lc-a"] = 2
    ordering(naming, 5)

    assert naming.states() == {"requested": 2, "stopped": 3}
    (error,) = naming.pool_errors()
    assert (error.kind, error.launch_config_id) == ("no-capacity", "lc-a")
    assert (health(naming).launched, health(naming).failed) == (2, {"no-capacity": 3})
    assert slots_used(naming) == 2
    assert naming.open_plans() == []


def test_an_order_that_is_refused_whole_leaves_nothing_open(naming: NamingWorld) -> None:
    naming.cloud.capacity["lc-a"] = 0
    ordering(naming, 3)

    assert naming.states() == {"stopped": 3}
    assert health(naming).failed == {"no-capacity": 3}
    assert slots_used(naming) == 0


def test_what_the_first_answer_refused_is_not_counted_as_launched_by_the_second(
    naming: NamingWorld,
) -> None:
    naming.cloud.capacity["lc-a"] = 1
    naming.provider.partly.append(Part(accepted=2, throttled=1))
    ordering(naming, 3)
    assert health(naming).failed == {"no-capacity": 1}
    (order,) = (order for plan in naming.open_plans() for order in plan.orders)
    assert (order.launched, order.refused) == (1, 1)
    naming.demand()
    naming.cloud.capacity["lc-a"] = 2

    naming.settle()

    assert (health(naming).launched, health(naming).failed) == (2, {"no-capacity": 1})
    assert len(naming.cloud.machines) == 2
    assert naming.states() == {"requested": 2, "stopped": 1}


def test_a_later_refusal_ends_only_what_it_is_about(naming: NamingWorld) -> None:
    naming.provider.partly.append(Part(accepted=2, throttled=2))
    ordering(naming, 4)
    naming.demand()
    naming.provider.fail(Method.LAUNCH, InvalidLaunchConfigError("the template is gone"))

    naming.settle()

    assert naming.states() == {"requested": 2, "stopped": 2}
    assert (len(naming.cloud.machines), slots_used(naming)) == (2, 0)
    assert health(naming).launched == 2
    assert health(naming).failed == {"invalid-launch-config": 2}
    assert_named(naming)


def test_a_launch_config_that_could_make_nothing_writes_no_row(naming: NamingWorld) -> None:
    naming.provider.unusable.add("lc-a")
    ordering(naming, 3)

    assert naming.rows() == []
    assert launches(naming) == []
    (error,) = naming.pool_errors()
    assert (error.kind, error.extra["code"]) == ("invalid-launch-config", "InvalidTemplate")


@pytest.mark.parametrize("made", [0, 1])
def test_an_order_that_was_never_answered_is_settled_by_a_look_at_its_machines(
    naming: NamingWorld, made: int
) -> None:
    """Its rows prove no machine: they were there before the first call."""
    if made:
        naming.provider.partly.append(Part(throttled=2, unknown=1, acted=True))
    naming.provider.partly.extend([Part(unknown=9)] * 99)
    ordering(naming, 3)
    naming.run_slowly(minutes=9)
    assert len(naming.open_plans()) == 1
    assert naming.states() == {"requested": 3}
    naming.demand()

    naming.run_slowly(minutes=3)

    assert naming.open_plans() == []
    ended = [row for row in naming.rows() if row.key in not_there(naming)]
    assert {row.stop_reason for row in ended} == {NEVER_MADE}
    assert len(naming.cloud.machines) == made
    assert (health(naming).launched, health(naming).failed) == (made, {"lost": 3 - made})
    assert {error.kind for error in naming.pool_errors()} == {"cloud-unavailable"}
    assert slots_used(naming) == 0
    assert_named(naming)


def test_a_look_that_fails_keeps_the_order_open(naming: NamingWorld) -> None:
    naming.provider.fail(Method.LAUNCH, LOST, times=99)
    ordering(naming, 2)
    naming.provider.fail(Method.LOOKUP, LOST, times=99)
    naming.run_slowly(minutes=14)
    assert len(naming.open_plans()) == 1

    naming.demand()
    naming.provider._faults.clear()
    naming.run_slowly(minutes=2)
    assert {row.stop_reason for row in naming.rows()} == {NEVER_MADE}
    assert health(naming).failed == {"lost": 2}


def test_an_order_that_had_to_wait_for_ten_minutes_blames_nobody(naming: NamingWorld) -> None:
    naming.provider.fail(Method.LAUNCH, ThrottledError("slow"), times=99)
    ordering(naming, 1)
    naming.run_slowly(minutes=12)

    naming.provider._faults.clear()
    naming.run_until(lambda: len(naming.cloud.alive()) == 1 and not naming.open_plans())

    assert health(naming).failures == 0
    assert naming.pool_errors() == []


def test_who_a_machine_is_stands_in_its_row_though_nobody_followed_it(naming: NamingWorld) -> None:
    ordering(naming, 1)
    naming.lose("advance")
    assert "privateIp" not in only_row(naming).identity

    scan_later(naming, times=2)

    assert "privateIp" in only_row(naming).identity


@pytest.mark.parametrize("vanishes", [False, True])
def test_what_is_known_to_be_made_is_not_asked_for_again(
    naming: NamingWorld, vanishes: bool
) -> None:
    """It would come back to life, or get another record for which nobody has made room."""
    wait = timedelta(minutes=3)
    naming.provider.partly.append(Part(accepted=1, throttled=1, retry_after=wait))
    ordering(naming, 2)
    naming.demand()
    naming.clock.advance(seconds=30)
    naming.deliver_all()
    (key,) = naming.cloud.machines
    known = naming.row(key).identity
    if vanishes:
        naming.cloud.vanish(key)

    naming.clock.advance(minutes=3)
    naming.tick()

    assert len(launches(naming)) == 2
    assert len(naming.cloud.machines) == 2
    assert naming.row(key).identity == known
    assert_named(naming)
