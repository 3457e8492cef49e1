"""One contract over the three ways in which the registry hears of workers.

The same story happens at a task queue; whether that is our own, a Taskcluster queue elsewhere that
is looked at, or one that tells what it sees, the registry then knows the same.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.registry.queue_world import BUSY, IDLE, MINUTE, POOL
from worker_manager.core.errors import InputInvalidError

if TYPE_CHECKING:
    from tests.registry.queue_world import World
    from worker_manager.registry.entities import Outcomes


def test_who_calls_is_known_at_all_four_levels(world: World) -> None:
    world.poll(IDLE)
    world.look()

    at = world.clock.now
    assert world.known(IDLE).first_claim == at
    assert world.known(IDLE).last_seen == at
    assert [group.group for group in world.here.groups(POOL)] == ["rack-1"]
    assert [one.last_seen for one in world.here.worker_types()] == [at]
    assert [one.provisioner_id for one in world.here.provisioners()] == ["proj-x"]


@pytest.mark.parametrize("state", ["completed", "failed", "exception"])
def test_what_a_worker_takes_is_known_while_it_runs_and_when_it_ended(
    world: World, state: str
) -> None:
    task_id = world.create()
    (run,) = world.poll(BUSY)
    world.look()
    (claim,) = world.known(BUSY).claims
    assert (claim.run, claim.claimed, claim.state) == ((task_id, 0), world.clock.now, None)

    world.clock.advance(minutes=5)
    world.end(BUSY, run, state)
    for _ in range(2):
        world.look()
    (claim,) = world.known(BUSY).claims
    assert (claim.state, claim.resolved) == (state, world.clock.now)
    assert sum(vars_of(world.known(BUSY).outcomes["2026-11-30"])) == 1


def vars_of(outcomes: Outcomes) -> list[int]:
    return [outcomes.completed, outcomes.failed, outcomes.exceptions, outcomes.others]


@pytest.mark.parametrize("idle_minutes", [1, 20, 29, 45])
def test_what_began_and_ended_between_two_looks_is_known_with_its_times(
    world: World, idle_minutes: int
) -> None:
    world.poll(BUSY)
    world.look()
    world.create()
    world.clock.advance(minutes=idle_minutes)
    began = world.clock.now
    (run,) = world.poll(BUSY)
    world.clock.advance(minutes=1)
    world.end(BUSY, run, "failed")
    world.poll(BUSY)
    world.look()

    (claim,) = world.known(BUSY).claims
    assert (claim.run, claim.state) == (run, "failed")
    assert (claim.claimed, claim.resolved) == (began, began + MINUTE)


def test_a_worker_that_keeps_calling_is_not_forgotten(world: World) -> None:
    for _ in range(5):
        world.poll(IDLE)
        world.look()
        world.clock.advance(minutes=31)

    assert world.known(IDLE).last_seen == world.clock.now - 31 * MINUTE


def test_a_quarantine_takes_hold_and_ends(world: World) -> None:
    world.create()
    world.poll(IDLE)
    world.look()
    world.clock.advance(minutes=1)
    world.create()
    world.quarantine(IDLE, world.clock.now + timedelta(days=9))
    world.look()
    assert world.poll(IDLE) == []
    assert world.known(IDLE).is_quarantined(world.clock.now)

    world.quarantine(IDLE, world.clock.now)
    world.look()
    assert not world.known(IDLE).is_quarantined(world.clock.now)
    assert len(world.poll(IDLE)) == 1


def test_an_unknown_worker_can_be_put_aside_and_is_once_it_comes(world: World) -> None:
    world.quarantine(IDLE, world.clock.now + timedelta(days=9))
    assert world.known(IDLE).first_seen is None
    world.look()
    world.poll(IDLE)
    world.look()
    world.create()

    assert world.known(IDLE).is_quarantined(world.clock.now)
    assert world.known(IDLE).first_claim is not None
    assert world.poll(IDLE) == []


@pytest.mark.parametrize("world", ["remote", "events"], indirect=True)
def test_only_our_own_queue_can_close_a_whole_type(world: World) -> None:
    with pytest.raises(InputInvalidError, match="not a queue of ours"):
        world.backend.close(POOL, world.clock.now)
