"""Orders that are refused when they are sent once more."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NotAuthorizedError,
    NotReachedError,
    OutOfCapacityError,
    ThrottledError,
)
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    from tests.reconcile.world import World

LOST = CloudUnavailableError("the connection was reset")
REFUSALS = (NotReachedError("no route"), NotAuthorizedError("expired"), OutOfCapacityError("none"))


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_of_the_second_call_says_nothing_about_the_first(
    world: World, refusal: CloudError
) -> None:
    world.save_pool()
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, LOST, after_acting=True)
    world.tick()
    world.provider.fail(Method.LAUNCH, refusal, times=99)
    world.run(minutes=12)

    assert len(world.cloud.machines) == 3
    assert world.states() == {"requested": 3}
    assert world.open_plans() == []


def test_a_wait_between_a_lost_answer_and_a_refusal_hides_nothing(world: World) -> None:
    world.save_pool()
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, LOST, after_acting=True)
    world.tick()
    slow = ThrottledError("slow", retry_after=timedelta(seconds=5))
    world.provider.fail(Method.LAUNCH, slow)
    world.clock.advance(seconds=30)
    world.tick()
    world.provider.fail(Method.LAUNCH, NotAuthorizedError("expired"), times=99)
    world.run(minutes=12)

    assert len(world.cloud.machines) == 3
    assert world.states() == {"requested": 3}
    assert world.open_plans() == []


def test_a_refusal_after_a_wait_is_the_end(world: World) -> None:
    world.save_pool(maximum=3)
    world.demand(pending=3)
    world.provider.fail(Method.LAUNCH, ThrottledError("slow", retry_after=timedelta(seconds=5)))
    world.tick()
    world.provider.fail(Method.LAUNCH, OutOfCapacityError("none"), times=1)
    world.clock.advance(seconds=30)
    world.tick()

    assert [error.kind for error in world.pool_errors()] == ["no-capacity"]
    world.tick_for(minutes=4)
    assert world.states() == {"requested": 3}
