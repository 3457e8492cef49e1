"""Machines without a row, and machines that do not go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reconcile.scenes import is_told_to_go, scan_later, strays, terminated, with_workers

if TYPE_CHECKING:
    import pytest

    from tests.reconcile.world import World


def test_a_stray_goes_only_when_it_is_old_and_was_reported_before(world: World) -> None:
    world.save_pool()
    (stray,) = strays(world, 1)
    scan_later(world, times=10)
    assert not is_told_to_go(stray)

    scan_later(world)

    assert is_told_to_go(stray)
    assert len(terminated(world)) == 1


def test_an_old_stray_survives_the_list_that_finds_it(world: World) -> None:
    world.save_pool()
    (stray,) = strays(world, 1)
    scan_later(world, minutes=30)
    assert not is_told_to_go(stray)

    scan_later(world)

    assert is_told_to_go(stray)


def test_machines_of_another_deployment_are_never_touched(world: World) -> None:
    world.save_pool()
    (foreign,) = strays(world, 1, deployment="stage-y")

    scan_later(world, minutes=30, times=3)

    assert not is_told_to_go(foreign)
    assert terminated(world) == []


def test_too_many_strays_wait_for_three_lists_that_agree(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.save_pool()
    found = strays(world, 7)
    scan_later(world, minutes=30)
    scan_later(world, times=2)
    assert terminated(world) == []

    scan_later(world)

    assert all(stray.terminated for stray in found)
    assert sum(m.startswith("too many strays") for m in caplog.messages) == 1


def test_a_machine_whose_row_says_stopped_is_taken_away(world: World) -> None:
    (machine,) = with_workers(world, 1)
    world.cloud.vanish(machine.key)
    scan_later(world)
    machine.gone = machine.terminated = None

    scan_later(world)

    assert is_told_to_go(machine)


def test_a_machine_that_does_not_go_is_alarmed_and_told_again_with_back_off(world: World) -> None:
    (machine,) = with_workers(world, 1)
    world.cloud.protect(machine.key)
    world.remove(machine.key)
    world.lose("advance")
    scan_later(world, times=20)
    assert world.pool_errors() == []
    asked = len(terminated(world))
    assert asked == 20

    scan_later(world, times=30)

    assert [error.kind for error in world.pool_errors()] == ["stuck-stopping"] * 2
    assert len(terminated(world)) == asked + 2
    machine.protected = False
    scan_later(world, times=40)
    assert world.states() == {"stopped": 1}


def test_a_ghost_stops_counting_for_at_most_a_tenth_or_one(world: World) -> None:
    world.save_pool(maximum=2)
    world.demand(pending=2)
    world.tick()
    for machine in world.cloud.alive():
        world.cloud.protect(machine.key)
        world.remove(machine.key)
    world.lose("advance")

    world.run_slowly(minutes=19)
    assert len(world.cloud.machines) == 2
    world.run(minutes=3)

    assert len(world.cloud.machines) == 3
