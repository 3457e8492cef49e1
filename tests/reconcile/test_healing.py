"""What a refusal costs, how many learn of it, and how all comes back by itself."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.factories import NOW, POOL_ID, REGION, a_head
from tests.reconcile.invariants import assert_sound
from tests.reconcile.scenes import launches, own_breakers, refusing, shared, with_workers
from tests.reconcile.shaking import crash_at_every_step, interleave, plan_as
from tests.reconcile.world import World
from worker_manager.core.breaker import BreakerState, credentials_key
from worker_manager.core.errors import (
    BadCredentialsError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    NotStoredError,
    OutOfCapacityError,
    QuotaExceededError,
)
from worker_manager.providers.fake import Method
from worker_manager.reconcile.ticks import MOST_OFFERINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager.core.model import LaunchConfigHead

    NewWorld = Callable[..., World]

MINUTE = timedelta(minutes=1)
SPOT = "us-east-1/us-east-1a/m5.large/spot"
ON_DEMAND = "us-east-1/us-east-1a/m5.large/on-demand"
OTHER = "proj-y/pool-2"
NONE_LEFT = OutOfCapacityError("none left", code="InsufficientInstanceCapacity")
NO_QUOTA = QuotaExceededError("not that many", code="VcpuLimitExceeded")
BAD_KEYS = BadCredentialsError("who are you?", code="AuthFailure")


def spot(name: str = "lc-a") -> LaunchConfigHead:
    return a_head(name, offering=SPOT)


def on_demand(name: str = "lc-b") -> LaunchConfigHead:
    return a_head(name, offering=ON_DEMAND)


def alive(world: World, pool_id: str = POOL_ID) -> int:
    return sum(
        machine.key.pool_id == pool_id
        for cloud in world.clouds.values()
        for machine in cloud.alive()
    )


def reasons(world: World, pool_id: str = POOL_ID) -> tuple[str, ...]:
    """Those of the pool's last decision."""
    return [report for report in world.reports if report.pool_id == pool_id][-1].reasons


# Capacity


def test_two_hours_without_capacity_cost_no_more_calls_than_the_probes(world: World) -> None:
    """B41 (karpenter#3198): 600 pending, an offering at 0: asked for ever, all pools slowed."""
    world.save_pool(heads=[spot()], maximum=1000)
    world.demand(pending=600)
    world.cloud.capacity["lc-a"] = 0
    for minute in range(120):
        if minute == 60:
            world.save_pool(OTHER, heads=[on_demand()], maximum=1000)
            world.demand(pending=7, pool_id=OTHER)
        world.tick()
        if minute == 60:
            assert alive(world, OTHER) == 7
        world.clock.advance(minutes=1)

    asked = launches(world)
    asked.remove(NOW + 60 * MINUTE)
    assert 120 / 5 <= len(asked) <= 120 / 5 + 5
    waits = [later - sooner for sooner, later in pairwise(asked)]
    assert all(MINUTE <= wait <= 6 * MINUTE for wait in waits)
    assert alive(world) == 0

    del world.cloud.capacity["lc-a"]
    world.demand(pending=120)
    while alive(world) == 0:
        assert world.clock.now < NOW + 130 * MINUTE
        world.tick_for(minutes=1)
    world.tick_for(minutes=1)
    assert alive(world) == 120
    assert_sound(world)


def test_what_one_pool_was_refused_no_other_pool_asks_for(world: World) -> None:
    world.save_pool(heads=[spot()])
    world.save_pool(OTHER, heads=[spot("lc-x"), on_demand("lc-y")])
    world.demand(pending=3)
    with refusing(world.provider, NONE_LEFT, only={"lc-a", "lc-x"}) as asked:
        world.tick()
        world.demand(pending=4, pool_id=OTHER)
        world.tick_for(seconds=30)

        assert len(asked) == 1
        assert alive(world, OTHER) == 4
        assert f"{SPOT}: what it asks for is out of capacity or quota (no-capacity)" in reasons(
            world, OTHER
        )


def test_pools_of_one_tick_learn_from_the_first_that_is_refused(world: World) -> None:
    """Their messages were sent before anybody was refused."""
    world.save_pool(heads=[spot()])
    world.save_pool(OTHER, heads=[spot("lc-x")])
    world.demand(pending=3)
    world.demand(pending=4, pool_id=OTHER)
    with refusing(world.provider, NONE_LEFT) as asked:
        world.tick()

    assert len(asked) == 1
    (second,) = [r for r in world.reports if not r.ordered]
    assert second.reasons[-1] == "another pool was refused the same a moment ago"
    assert alive(world) + alive(world, OTHER) == 0


def test_two_pools_at_one_closed_door_knock_once_and_both_go_in(world: World) -> None:
    world.save_pool(heads=[spot()])
    world.save_pool(OTHER, heads=[spot("lc-x")])
    world.demand(pending=3)
    with refusing(world.provider, NONE_LEFT) as asked:
        world.tick()
        world.demand(pending=4, pool_id=OTHER)
        world.tick_for(minutes=30)

        times = asked[1:]
        assert len(times) == len(set(times))
        assert all(b - a >= MINUTE for a, b in pairwise(times))
    world.run_until(lambda: alive(world) + alive(world, OTHER) > 0, minutes=6)
    world.tick_for(minutes=1)

    assert (alive(world), alive(world, OTHER)) == (3, 4)


def test_spot_that_is_out_leaves_on_demand_alone(world: World) -> None:
    """B51 (skypilot PR#6248): the same type in the same zone on demand was blocked as well."""
    world.save_pool(heads=[spot(), on_demand()], maximum=100)
    world.demand(pending=20)
    world.cloud.capacity["lc-a"] = 0

    world.tick()
    world.tick_for(seconds=30)

    assert {m.order.launch_config_id for m in world.cloud.alive()} == {"lc-b"}
    assert alive(world) == 20
    opened = shared(world, SPOT)
    assert opened is not None
    assert opened.kind == "no-capacity"
    assert shared(world, ON_DEMAND) is None


def test_part_of_an_order_that_is_refused_closes_the_door_too(world: World) -> None:
    world.save_pool(heads=[spot()], maximum=100)
    world.demand(pending=40)
    world.cloud.capacity["lc-a"] = 10

    world.tick()
    world.tick_for(seconds=30)

    assert (alive(world), len(launches(world))) == (10, 1)


def test_a_probe_whose_answer_was_lost_is_asked_for_again_and_is_one_machine(
    world: World,
) -> None:
    """B52 (skypilot#656): a client that timed out left duplicates."""
    world.save_pool(heads=[spot()])
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, NONE_LEFT)
    world.provider.fail(Method.LAUNCH, CloudUnavailableError("reset"), after_acting=True)
    world.tick()
    world.tick_for(minutes=1)
    assert len(world.cloud.machines) == 1

    world.tick_for(minutes=1)

    assert alive(world) == 3
    closed = shared(world, SPOT)
    assert closed is not None
    assert closed.is_closed
    assert_sound(world)


# Quota


def test_a_quota_is_noticed_at_once_and_nothing_is_expected_of_it(world: World) -> None:
    """B53 (autoscaler#1996): nodes that could never come were waited for a quarter of an hour."""
    world.save_pool(heads=[spot(), on_demand()], maximum=100)
    world.demand(pending=40)
    with refusing(world.provider, NO_QUOTA, only={"lc-a"}):
        world.tick()
        assert alive(world) < 40
        world.tick_for(seconds=30)

    assert alive(world) == 40
    assert world.open_plans() == []
    (_, second) = world.reports
    assert second.facts is not None
    assert second.facts["requested"] == alive(world) - second.ordered
    (error,) = world.pool_errors()
    assert (error.kind, error.launch_config_id) == ("quota-exceeded", "lc-a")


def test_a_quota_is_tried_again_at_once_when_there_are_fewer_machines(world: World) -> None:
    machines = with_workers(world, 5, heads=[a_head(offering=SPOT)])
    world.demand(pending=9)
    with refusing(world.provider, NO_QUOTA) as asked:
        world.tick()
        world.clock.advance(seconds=30)
        world.scan()
        world.tick()
        counted = shared(world, SPOT)
        assert counted is not None
        assert counted.machines == 5
        assert len(asked) == 1
        world.cloud.vanish(machines[0].key)
        world.clock.advance(seconds=20)
        world.scan()

        world.tick()

        assert len(asked) == 2


def test_the_room_that_a_list_shows_is_for_one_machine_of_one_pool(world: World) -> None:
    machines = with_workers(world, 5, heads=[a_head(offering=SPOT)])
    world.demand(pending=9)
    world.save_pool(OTHER, heads=[a_head(offering=SPOT)])
    world.demand(pending=9, pool_id=OTHER)
    with refusing(world.provider, NO_QUOTA):
        world.tick()
        world.clock.advance(seconds=30)
        world.scan()
        world.send_ticks()
        world.lose("provision")
    world.cloud.vanish(machines[0].key)
    world.clock.advance(seconds=20)
    world.scan()
    with refusing(world.provider, CloudUnavailableError("no answer")):
        world.tick()
        probed = shared(world, SPOT)
        assert probed is not None
        assert probed.since == world.clock.now

        world.tick_for(seconds=50)

        assert shared(world, SPOT) == probed
        assert len(world.open_plans()) + len(world.open_plans(OTHER)) == 1


def test_a_table_too_busy_to_count_a_quota_holds_back_no_pool(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_workers(world, 1, heads=[a_head(offering=SPOT)])
    world.save_pool(OTHER, heads=[a_head("lc-b")])
    world.demand(pending=9)
    with refusing(world.provider, NO_QUOTA):
        world.tick()
    world.clock.advance(seconds=30)
    world.scan()

    def refuse(*_: object) -> None:
        raise NotStoredError("too busy")

    monkeypatch.setattr(world.stores.offerings, "counted", refuse)
    with pytest.raises(NotStoredError):
        world.send_ticks()

    told = {found.body["pool"] for found in world.mail if found.queue == "provision"}
    assert told == {POOL_ID, OTHER}


# What the launch config itself is refused


@pytest.mark.parametrize(
    "error", [InvalidLaunchConfigError("no such image"), NotAuthorizedError("no")]
)
def test_what_the_cloud_will_not_accept_is_asked_for_once_and_costs_the_others_nothing(
    world: World, error: Exception
) -> None:
    world.save_pool(heads=[spot(), a_head("lc-c", offering=SPOT)], maximum=100)
    world.demand(pending=20)
    with refusing(world.provider, error, only={"lc-a"}) as asked:
        world.tick()
        world.tick_for(minutes=1, seconds=30)

        assert len(asked) == 1
    assert {m.order.launch_config_id for m in world.cloud.alive()} == {"lc-c"}
    assert alive(world) == 20
    assert own_breakers(world)["lc-a"].state is BreakerState.OPEN
    assert shared(world, SPOT) is None


def test_a_place_that_opens_again_is_not_kept_closed_by_a_broken_launch_config(
    world: World,
) -> None:
    """Both ask for the same there; only one can tell whether there is any."""
    world.save_pool(heads=[spot(), a_head("lc-c", offering=SPOT)], maximum=100)
    world.demand(pending=20)
    with refusing(world.provider, InvalidLaunchConfigError("no such image"), only={"lc-a"}):
        with refusing(world.provider, NONE_LEFT, only={"lc-c"}):
            world.tick()
            world.tick_for(minutes=3)
        world.tick_for(minutes=12)

        assert alive(world) == 20


# Credentials


def test_bad_credentials_stop_a_provider_after_one_call_and_no_other(new_world: NewWorld) -> None:
    """B50: authorisation is not worth a retry.  B18 (#7104): it recovers alone."""
    world = new_world(provider_ids=("aws", "google"))
    world.save_pool(heads=[spot(), on_demand(), a_head("lc-c")], maximum=100)
    world.save_pool(OTHER, heads=[a_head("lc-y")])
    world.save_pool("proj-z/pool-3", heads=[a_head("lc-z")], provider_id="google")
    world.demand(pending=30)
    with refusing(world.provider, BAD_KEYS) as asked:
        world.tick()
        assert len(asked) == 1
        world.demand(pending=4, pool_id=OTHER)
        world.demand(pending=5, pool_id="proj-z/pool-3")
        world.tick_for(seconds=30)

        assert len(asked) == 1
        assert alive(world, "proj-z/pool-3") == 5
        assert "the provider's credentials do not hold there (not-authorized)" in reasons(
            world, OTHER
        )
        world.tick_for(minutes=30)
        assert len(asked) <= 20
        assert own_breakers(world) == {}

    world.run_until(lambda: alive(world) + alive(world, OTHER) > 0, minutes=6)
    world.tick_for(minutes=1)
    assert (alive(world), alive(world, OTHER)) == (30, 4)
    assert_sound(world)


def test_credentials_that_hold_again_are_no_hostage_of_a_place_that_has_nothing(
    world: World,
) -> None:
    world.save_pool(heads=[spot(), on_demand()], maximum=100)
    world.demand(pending=30)
    with refusing(world.provider, BAD_KEYS):
        world.tick()
    with refusing(world.provider, NONE_LEFT, only={"lc-a"}):
        world.tick_for(minutes=4)

    closed = shared(world, credentials_key(REGION))
    assert closed is not None
    assert closed.is_closed
    assert alive(world) == 30


# Machines that never come up


def test_a_broken_image_costs_one_wave_and_the_others_take_its_work(world: World) -> None:
    """B01 (#6332): a broken image filled a quota overnight."""
    world.save_pool(
        heads=[spot(), on_demand()], maximum=100, lifecycle={"registrationTimeout": 600}
    )
    world.demand(pending=8)
    for _ in range(30):
        world.clock.advance(minutes=1)
        world.tick()
        for machine in world.cloud.alive():
            if machine.order.launch_config_id == "lc-b" and world.register(machine.key):
                world.works(machine.key)
        running = world.states().get("running", 0)
        world.demand(pending=8 - running, claimed=running)
        world.scan()

    broken = [m for m in world.cloud.machines.values() if m.order.launch_config_id == "lc-a"]
    assert 4 <= len(broken) <= 6
    assert world.states()["running"] == 8
    assert own_breakers(world)["lc-a"].kind == "never-registered"


def test_an_image_that_was_mended_comes_back_by_itself(world: World) -> None:
    world.save_pool(heads=[spot()], maximum=100, lifecycle={"registrationTimeout": 600})
    world.demand(pending=5)
    world.run_slowly(minutes=20)
    assert own_breakers(world)["lc-a"].state is not BreakerState.CLOSED

    for _ in range(10):
        world.run_slowly(minutes=1)
        world.register_all()

    assert own_breakers(world)["lc-a"].state is BreakerState.CLOSED
    assert alive(world) == 5


# Crashes and others at the same time


def test_where_all_are_closed_off_each_has_its_turn_however_long_its_own_wait(
    world: World,
) -> None:
    world.save_pool(heads=[spot("lc-a"), on_demand("lc-b")])
    world.demand(pending=5)
    with refusing(world.provider, NONE_LEFT, only={"lc-a"}):
        with refusing(world.provider, InvalidLaunchConfigError("no grant yet"), only={"lc-b"}):
            world.tick_for(minutes=60)

        world.tick_for(minutes=15)

    assert alive(world) == 5


def with_a_probe_due(new_world: NewWorld) -> World:
    world = new_world()
    world.save_pool(heads=[spot(), on_demand()])
    world.demand(pending=3)
    with refusing(world.provider, NONE_LEFT):
        world.tick()
    world.clock.advance(minutes=3)
    return world


def test_a_crash_between_claim_and_note_delays_a_probe_and_loses_none(
    new_world: NewWorld,
) -> None:
    def check(world: World) -> None:
        world.run_slowly(minutes=8)
        assert alive(world) == 3
        known = [shared(world, offering) for offering in (SPOT, ON_DEMAND)]
        assert any(breaker is not None and breaker.is_closed for breaker in known)

    crash_at_every_step(lambda: with_a_probe_due(new_world), World.tick, check)


def test_two_planners_make_one_probe_of_each_place(new_world: NewWorld) -> None:
    def check(world: World) -> None:
        probes = Counter(
            order.offering
            for tick in world.plans()
            if (plan := world.stores.plans.get(POOL_ID, tick))
            for order in plan.orders
            if order.is_probe and order.first_sent
        )
        assert all(count == 1 for count in probes.values())
        assert alive(world) <= 3
        for _ in range(4):
            world.clock.advance(minutes=2)
            world.tick()
        assert alive(world) == 3

    interleave(lambda: with_a_probe_due(new_world), plan_as("2026-x-1"), plan_as("2026-x-2"), check)


# What a message carries


def test_more_closed_doors_than_a_message_takes_are_asked_for(world: World) -> None:
    world.save_pool(heads=[spot()])
    with world.aside():
        names = [f"{REGION}/{number}" for number in range(MOST_OFFERINGS)]
        for name in [SPOT, *names]:
            world.stores.offerings.failed(
                "aws", name, kind="no-capacity", reason="é" * 999, at=world.clock.now
            )
    world.demand(pending=3)
    world.send_ticks()
    (message,) = world.mail
    assert message.body["offerings"] is None

    world.deliver_all()

    assert alive(world) == 0
    assert reasons(world)[0].startswith(SPOT)
