"""What a cloud accepted, until its machine is made or is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import POOL_ID, REGION, a_head
from tests.reconcile.naming import (
    NamingWorld,
    SteppingWorld,
    assert_named,
    only_row,
    slots_used,
)
from tests.reconcile.scenes import launches, own_breakers, scan_later, shared, terminated
from tests.reconcile.shaking import interleave
from worker_manager.core.breaker import BreakerState, trip
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.core.messages import Follow
from worker_manager.core.model import State
from worker_manager.providers.fake import Method
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.following import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager.core.breaker import Breaker

    NewWorld = Callable[..., NamingWorld]

OFFERING = "us-east-1/b/big/spot"
NONE_LEFT = OutOfCapacityError("no big ones left in b", code="ZonalAllocationFailed")


@pytest.fixture(params=["stepping", "naming"])
def world(request: pytest.FixtureRequest) -> SteppingWorld:
    """Both manners."""
    chosen: SteppingWorld = request.getfixturevalue(request.param)
    return chosen


def accepted(world: SteppingWorld, count: int = 1, **pool: Any) -> None:
    """So many machines are accepted, and nothing more is wanted."""
    world.save_pool(heads=[a_head(offering=OFFERING)], maximum=100, **pool)
    world.demand(pending=count)
    world.tick()
    world.demand()


def look(world: SteppingWorld, seconds: int = 30) -> None:
    """Time for the looks that are due."""
    world.clock.advance(seconds=seconds)
    world.deliver_all()


def looks(world: SteppingWorld) -> int:
    return sum(call.method is Method.FOLLOW for call in world.provider.calls)


def test_a_creation_is_looked_at_until_it_is_over_and_then_no_more(world: SteppingWorld) -> None:
    world.cloud.creation_time = timedelta(seconds=25)
    accepted(world, 5)

    for _ in range(20):
        look(world, seconds=5)

    assert looks(world) == 3, "after 10, 20 and 30 seconds, all five at once"
    assert world.mail == []
    assert {row.identity["privateIp"] != "" for row in world.rows()} == {True}


@pytest.mark.parametrize(
    ("error", "opens"),
    [
        (NONE_LEFT, True),
        (QuotaExceededError("ten cores", code="QUOTA_EXCEEDED"), True),
        (InvalidLaunchConfigError("no such image", code="ImageNotFound"), False),
        (CloudUnavailableError("internal", code="InternalServerError"), False),
    ],
)
def test_a_creation_that_fails_is_an_error_of_its_launch_config_as_a_refusal_is(
    world: SteppingWorld, error: CloudError, opens: bool
) -> None:
    """B33: operation errors never reached the pool's owner.  B20, B53: others asked on."""
    world.cloud.fail_next(error)
    accepted(world, 3)

    look(world)

    (told,) = world.pool_errors()
    assert (told.kind, told.launch_config_id) == (error.kind, "lc-a")
    assert (told.extra["code"], told.description) == (error.code, str(error))
    breaker = shared(world, OFFERING)
    assert (breaker is not None and breaker.state is BreakerState.OPEN) is opens
    scan_later(world)
    assert world.states() == {"requested": 2, "stopped": 1}


def test_others_do_not_ask_where_a_creation_failed_for_want_of_machines(
    world: SteppingWorld,
) -> None:
    world.cloud.fail_next(NONE_LEFT)
    accepted(world)
    look(world)
    world.save_pool("proj-x/other", heads=[a_head(offering=OFFERING)])
    world.demand(pending=5, pool_id="proj-x/other")

    world.tick()

    assert len(launches(world)) == 1


def test_a_place_whose_creations_all_fail_is_asked_no_more_often_than_it_is_probed(
    stepping: SteppingWorld,
) -> None:
    """B41: that a probe was accepted proves nothing while its machine may still fail."""
    stepping.save_pool(heads=[a_head(offering=OFFERING)], maximum=8)
    stepping.demand(pending=8)
    stepping.cloud.fail_next(NONE_LEFT, times=500)

    stepping.run(minutes=30)

    assert len(stepping.cloud.machines) <= 8 + 10, "one wave, then single machines"
    breaker = shared(stepping, OFFERING)
    assert breaker is not None
    assert not breaker.is_closed

    stepping.cloud.to_come.clear()
    stepping.run_until(lambda: len(stepping.cloud.alive()) == 8, minutes=20)


def half_open(world: SteppingWorld) -> Breaker | None:
    """The launch config's own breaker after its probe was accepted."""
    world.save_pool(heads=[a_head(offering=OFFERING)], maximum=10)
    with world.aside():
        broken = {"lc-a": trip(None, "invalid-launch-config", "no image", world.clock.now)}
        world.stores.plans.remember(world.stores.pools.control(POOL_ID), breakers=broken)
    world.clock.advance(minutes=31)
    world.scan()
    world.demand(pending=10)
    world.tick()
    assert len(world.cloud.machines) == 1
    return own_breakers(world)["lc-a"]


def test_a_launch_config_is_well_again_when_its_probe_is_made_and_not_before(
    world: SteppingWorld,
) -> None:
    half_open(world)
    world.clock.advance(seconds=9)
    world.tick()
    assert len(world.cloud.machines) == 1

    look(world, seconds=21)
    world.tick()

    assert len(world.cloud.machines) == 10


def test_a_probe_that_fails_after_it_was_accepted_is_a_failed_probe(world: SteppingWorld) -> None:
    world.cloud.fail_next(InvalidLaunchConfigError("no such image"))
    before = half_open(world)
    assert before is not None

    look(world)
    world.tick()

    after = own_breakers(world)["lc-a"]
    assert (after.state, after.step) == (BreakerState.OPEN, before.step + 1)
    assert len(world.cloud.machines) == 1


@pytest.mark.parametrize("stays", [False, True])
def test_a_worker_that_registered_outlives_what_is_said_of_its_creation(
    naming: NamingWorld, stays: bool
) -> None:
    """B32: "provisioning failed" of a machine that works, or its record vanished."""
    naming.cloud.fail_next(CloudUnavailableError("OS provisioning"), stays=True)
    accepted(naming)
    row = only_row(naming)
    naming.register(row.key)
    if not stays:
        naming.cloud.creations.clear()
        naming.cloud.records.clear()

    look(naming)
    scan_later(naming, times=5)

    assert naming.states() == {"running": 1}
    assert terminated(naming) == []
    assert naming.pool_errors() == []
    assert slots_used(naming) == 0


def test_a_machine_that_is_left_of_a_failed_creation_is_taken_away(naming: NamingWorld) -> None:
    naming.cloud.fail_next(NONE_LEFT, stays=True)
    accepted(naming)

    look(naming)

    assert naming.states() == {"stopping": 1}
    assert naming.cloud.alive() == []
    scan_later(naming)
    assert naming.states() == {"stopped": 1}
    assert [error.kind for error in naming.pool_errors()] == ["no-capacity"]


def test_a_creation_that_never_ends_is_given_up_when_launches_are(naming: NamingWorld) -> None:
    """B31: stuck for hours, and nothing said."""
    naming.cloud.stall_next()
    accepted(naming, lifecycle={"registrationTimeout": 600})
    naming.clock.advance(minutes=29)
    naming.deliver_all()
    naming.scan()
    assert naming.states() == {"requested": 1}

    scan_later(naming, times=3)

    assert naming.states() == {"stopped": 1}
    (error,) = naming.pool_errors()
    assert (error.kind, error.description) == ("lost", "did not run in its cloud in time")
    assert slots_used(naming) == 1, "its record is still there"
    naming.clock.advance(hours=4)
    naming.sweep()
    assert slots_used(naming) == 0


def test_nobody_follows_for_ever(naming: NamingWorld, caplog: pytest.LogCaptureFixture) -> None:
    naming.cloud.stall_next()
    accepted(naming)
    for _ in range(8):
        naming.clock.advance(minutes=30)
        naming.deliver_all()

    assert naming.mail == []
    assert "creations are no longer followed" in caplog.messages
    assert looks(naming) <= LONGEST / timedelta(minutes=30) + 1


@pytest.mark.parametrize("failing", [False, True])
def test_where_the_look_was_lost_lists_tell_the_same(world: SteppingWorld, failing: bool) -> None:
    if failing:
        world.cloud.fail_next(NONE_LEFT)
    accepted(world)
    world.lose("advance")

    scan_later(world, times=3)

    assert world.states() == {"stopped" if failing else "requested": 1}
    assert (only_row(world).launched is None) is failing
    assert [error.kind for error in world.pool_errors()] == ["no-capacity"] * failing
    assert (shared(world, OFFERING) is not None) is failing


def test_one_of_which_nothing_is_told_keeps_no_other_waiting(naming: NamingWorld) -> None:
    accepted(naming, 3)
    silent = naming.rows()[0].key.worker_id
    naming.provider.silent.add(silent)

    look(naming)
    assert slots_used(naming) == 1
    (again,) = naming.mail
    assert [name for _, name in again.body["workers"]] == [silent]

    naming.provider.silent.clear()
    look(naming)
    assert slots_used(naming) == 0
    assert_named(naming)


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (ThrottledError("slow", retry_after=timedelta(seconds=90)), 90),
        (CloudUnavailableError("down"), 30),
    ],
)
def test_a_cloud_that_does_not_tell_is_asked_again_when_it_says(
    world: SteppingWorld, error: CloudError, wait: int
) -> None:
    accepted(world)
    world.provider.fail(Method.FOLLOW, error)
    look(world)

    (again,) = world.mail

    assert again.due == world.clock.now + timedelta(seconds=wait)
    look(world, seconds=wait)
    assert world.mail == []


def followed(world: SteppingWorld) -> Follow:
    (delivery,) = world.mail
    return Follow.from_json(delivery.body)


def test_a_look_that_could_not_be_written_down_comes_again(
    naming: NamingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted(naming)
    message = followed(naming)
    naming.clock.advance(seconds=30)

    def broken(*_: object) -> None:
        raise OSError("the table does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(naming.stores.slots, "give_back", broken)
        assert advance([message], naming.deps) == {message}
    assert advance([message], naming.deps) == frozenset()
    assert_named(naming)


def test_who_registers_during_the_look_is_looked_at_again(naming: NamingWorld) -> None:
    accepted(naming)
    message = followed(naming)
    naming.mail.clear()
    naming.clock.advance(seconds=30)

    def register(request: str) -> None:
        if request == "UpdateItem":
            naming.fuse.on_request = None
            naming.register(message.keys[0])

    naming.fuse.on_request = register
    assert advance([message], naming.deps) == frozenset()
    assert "record" in only_row(naming).identity

    look(naming)
    assert only_row(naming).identity.keys() == {"region", "privateIp"}
    assert naming.states() == {"running": 1}
    assert slots_used(naming) == 0


def test_a_look_needs_no_cloud_where_all_is_over(world: SteppingWorld) -> None:
    accepted(world)
    message = followed(world)
    with world.aside():
        row = replace(only_row(world))
        world.stores.workers.change(row, state=State.STOPPED, identity={})

    assert advance([message], world.deps) == frozenset()
    assert looks(world) == 0


def test_two_looks_at_once_are_one(new_naming: NewWorld) -> None:
    """One creation failed, two went well; each slot is free once."""
    message: list[Follow] = []

    def prepare() -> NamingWorld:
        world = new_naming()
        with world.aside():
            world.stores.slots.take(
                "aws", "records", "o-other", ["vm-x"], most=750, now=world.clock.now
            )
        world.cloud.fail_next(NONE_LEFT)
        accepted(world, 3)
        message[:] = [followed(world)]
        world.mail.clear()
        world.clock.advance(seconds=30)
        return world

    def act(world: NamingWorld) -> None:
        advance(message, world.deps)

    def check(world: NamingWorld) -> None:
        assert slots_used(world) == 1
        assert len(world.pool_errors()) == 1
        assert_named(world)

    assert interleave(prepare, act, act, check) > 8


def test_a_machine_that_was_launched_at_once_is_not_followed(stepping: SteppingWorld) -> None:
    stepping.cloud.creation_time = timedelta()
    accepted(stepping)

    assert stepping.mail == []
    assert stepping.row(only_row(stepping).key).location == REGION
