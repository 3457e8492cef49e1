"""Deletes and returns that come together: what fails comes again, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reconcile.scenes import terminated, with_workers
from worker_manager.core.errors import CloudUnavailableError, ThrottledError
from worker_manager.core.messages import Resume, Terminate, advance_from_json
from worker_manager.core.model import State
from worker_manager.providers.fake import Method
from worker_manager.reconcile.advance import advance

if TYPE_CHECKING:
    from tests.reconcile.world import World

RESUME = Resume("proj-x/pool-1", "t-1")


def removed(world: World, count: int) -> list[Terminate]:
    """The messages of so many workers that somebody removed."""
    machines = with_workers(world, count)
    for machine in machines:
        world.remove(machine.key)
    messages = [Terminate(machine.key) for machine in machines]
    world.lose("advance")
    return messages


def test_one_machine_that_cannot_be_deleted_keeps_no_other(world: World) -> None:
    messages = removed(world, 3)
    world.cloud.machines[messages[1].key].protected = True

    failed = advance([*messages, RESUME], world.deps)

    assert failed == {messages[1]}
    assert len(terminated(world)) == 1
    assert [delivery.queue for delivery in world.mail] == ["provision"]


def test_a_cloud_that_does_not_answer_gets_every_delete_again(world: World) -> None:
    messages = removed(world, 2)
    world.provider.fail(Method.TERMINATE, CloudUnavailableError("no answer"))

    assert advance([*messages, RESUME], world.deps) == set(messages)
    assert [delivery.queue for delivery in world.mail] == ["provision"]


def test_a_cloud_that_asks_to_wait_gets_the_deletes_later(world: World) -> None:
    messages = removed(world, 2)
    world.provider.fail(Method.TERMINATE, ThrottledError("slow"))

    assert advance(messages, world.deps) == frozenset()

    later = {advance_from_json(delivery.body) for delivery in world.mail}
    assert later == set(messages)
    assert all(delivery.due > world.clock.now for delivery in world.mail)


def test_a_worker_that_is_gone_already_needs_no_delete(world: World) -> None:
    (message,) = removed(world, 1)
    with world.aside():
        world.stores.workers.change(world.row(message.key), state=State.STOPPED)

    assert advance([message], world.deps) == frozenset()
    assert terminated(world) == []
