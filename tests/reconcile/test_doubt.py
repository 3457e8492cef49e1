"""Orders of whose machines some may yet come, whatever was answered of the others."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import a_head
from tests.reconcile.naming import NamingWorld, SteppingWorld
from worker_manager.core.errors import NotAuthorizedError
from worker_manager.providers.fake import Method
from worker_manager.providers.fake_steps import Part
from worker_manager.providers.protocol import Launched

if TYPE_CHECKING:
    from worker_manager.core.model import LaunchOrder

DENIED = NotAuthorizedError("no longer", code="AuthorizationFailed")


@pytest.fixture(params=["stepping", "naming"])
def world(request: pytest.FixtureRequest) -> SteppingWorld:
    """Both manners."""
    chosen: SteppingWorld = request.getfixturevalue(request.param)
    return chosen


def ordered(world: SteppingWorld, part: Part) -> None:
    """Two machines, of which a call was lost; nothing more is wanted."""
    world.provider.partly.append(part)
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.demand()
    world.clock.advance(minutes=1)


def assert_all_have_their_rows(world: SteppingWorld) -> None:
    """The order is sent until it is answered, and no machine is forgotten or ended."""
    world.settle()
    live = {row.key for row in world.rows() if row.state != "stopped"}
    assert live == world.cloud.machines.keys()
    assert len(live) == 2


def test_a_refusal_after_a_wait_does_not_end_what_may_have_been_made_beside_it(
    world: SteppingWorld,
) -> None:
    wait = timedelta(seconds=5)
    ordered(world, Part(throttled=1, unknown=1, acted=True, retry_after=wait))
    world.provider.fail(Method.LAUNCH, DENIED)

    world.tick()

    assert_all_have_their_rows(world)
    assert {error.kind for error in world.pool_errors()} == {DENIED.kind}


def test_a_refusal_of_some_does_not_end_what_an_earlier_call_may_have_made(
    world: SteppingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered(world, Part(accepted=1, unknown=1, acted=True))
    launch = world.provider.launch

    def deny_the_second(order: LaunchOrder) -> Launched:
        *known, other = launch(order).machines
        names = isinstance(world, NamingWorld)
        not_made = frozenset({other.key} if names else ())
        return Launched(tuple(known), 1, DENIED, not_made=not_made)

    monkeypatch.setattr(world.provider, "launch", deny_the_second)
    world.tick()
    monkeypatch.undo()

    assert_all_have_their_rows(world)


def test_who_was_refused_and_is_asked_for_again_still_holds_a_place_in_the_pool(
    world: SteppingWorld,
) -> None:
    """Only where names are ours is an order sent again without those that were refused."""
    wait = timedelta(seconds=100)
    world.cloud.capacity["lc-a"] = 2
    world.provider.partly.append(Part(accepted=4, throttled=1, retry_after=wait))
    world.save_pool(maximum=5)
    world.demand(pending=5)
    world.send_ticks()
    world.clock.advance(seconds=30)
    world.send_ticks()
    first, second = (delivery for delivery in world.mail if delivery.queue == "provision")
    world.mail.clear()
    world.deliver(first)
    world.save_pool(heads=[a_head("lc-b")], maximum=5)
    world.cloud.capacity.clear()

    world.deliver(second)
    world.settle()

    assert len(world.cloud.alive()) == 5
