"""Pools that move to another provider, and pools that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import POOL_ID, a_head
from tests.reconcile.invariants import assert_sound
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.model import NULL_PROVIDER
from worker_manager.core.surplus import ARCHIVED
from worker_manager.providers.fake import Method
from worker_manager.reconcile.expire import expire

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.world import World


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world(provider_ids=("aws", "other"))


def move(world: World) -> None:
    world.save_pool(heads=[a_head("lc-new")], provider_id="other", previous=("aws",))


def delete(world: World) -> None:
    world.save_pool(heads=[], provider_id=NULL_PROVIDER, previous=("aws",), minimum=1)


def previous(world: World) -> tuple[str, ...]:
    with world.aside():
        pool = world.stores.pools.get(POOL_ID)
    assert pool is not None
    return pool.previous_provider_ids


def machines_leave(world: World) -> None:
    """Workers that are told to terminate shut their machines down."""
    told = world.told_to_terminate()
    for machine in world.cloud.alive():
        if machine.key.worker_id in told:
            world.cloud.vanish(machine.key)


def test_after_a_move_the_new_provider_alone_plans_over_all_workers(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand(pending=1, claimed=2)

    move(world)
    world.run(minutes=1)

    assert len(world.cloud.machines) == 2
    assert len(world.clouds["other"].machines) == 1
    assert set(world.told_to_terminate().values()) == {ARCHIVED}
    outcomes = {report.outcome for report in world.reports[1:]}
    assert "moved to another provider" in outcomes
    assert_sound(world)


def test_a_previous_provider_is_dropped_when_it_is_empty(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand()
    move(world)
    world.run(minutes=1)
    assert previous(world) == ("aws",)

    machines_leave(world)
    world.run(minutes=2)

    assert previous(world) == ()
    with world.aside():
        members, _ = world.stores.places.of_provider("aws")
    assert members == []


def test_a_previous_provider_finishes_what_it_began(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    lost = CloudUnavailableError("lost")
    world.provider.fail(Method.LAUNCH, lost, after_acting=True)
    world.tick()

    move(world)
    world.run(minutes=1)

    assert world.open_plans() == []
    assert world.states() == {"requested": 2}
    assert world.clouds["other"].machines == {}
    assert previous(world) == ("aws",)


def test_a_listed_machine_keeps_its_previous_provider(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()
    move(world)
    world.cloud.protect(machine.key)
    world.remove(machine.key)

    world.run(minutes=2)
    assert previous(world) == ("aws",)

    machine.protected = False
    world.run_until(lambda: previous(world) == (), minutes=4)


def test_workers_of_a_deleted_pool_are_told_to_terminate(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand(pending=5, claimed=2)

    delete(world)
    world.run(minutes=1)

    assert list(world.told_to_terminate().values()) == [ARCHIVED, ARCHIVED]
    assert len(world.cloud.machines) == 2


def test_a_deleted_pool_goes_once_it_is_empty(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    world.register_all()
    delete(world)
    world.run(minutes=1)
    expire(world.keeper)
    assert world.pool_ids() == [POOL_ID]

    machines_leave(world)
    world.run(minutes=2)
    expire(world.keeper)

    assert world.pool_ids() == []
    world.tick()
