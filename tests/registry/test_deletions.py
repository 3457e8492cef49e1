"""What is deleted is gone, at every level, and who was in quarantine is free."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.registry.held_world import DAY, HOUR, KEY, NOON, POOL, World
from worker_manager.core.errors import NotFoundError, QueueUnavailableError
from worker_manager.core.model import WorkerKey
from worker_manager.registry.entities import Metadata

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

OTHER = WorkerKey(POOL, "rack-1", "m-2")


@pytest.fixture
def world(tables: Tables) -> World:
    return World(tables)


def test_what_is_deleted_is_gone_at_every_level(world: World) -> None:
    other = WorkerKey("proj-x/testers", "rack-1", "m-2")
    elsewhere = WorkerKey("proj-y/builders", "rack-1", "m-3")
    for key in (KEY, other, elsewhere):
        world.see(key=key)
    world.change(NOON + DAY)
    metadata = Metadata({"type": "object"}, "# Docs", NOON, "test/root")
    world.declarations.put_metadata(POOL, metadata)

    world.deletion().worker(KEY)
    assert world.registry.worker(KEY) is None
    assert world.quarantines.listed(limit=9)[0] == []
    world.see()
    world.deletion().worker_type(POOL)
    assert world.registry.workers(POOL, limit=9)[0] == []
    assert world.declarations.metadata(POOL) is None
    assert world.registry.groups(POOL) == []
    world.deletion().provisioner("proj-x")
    assert [one.queue_id for one in world.registry.worker_types()] == ["proj-y/builders"]
    assert [one.provisioner_id for one in world.registry.provisioners()] == ["proj-y"]
    with pytest.raises(NotFoundError):
        world.deletion().worker(KEY)
    with pytest.raises(NotFoundError):
        world.deletion().worker_type(POOL)
    with pytest.raises(NotFoundError):
        world.deletion().provisioner("proj-x")


def test_a_name_that_was_deleted_and_is_seen_again_is_known_at_once(world: World) -> None:
    world.see()
    world.deletion().provisioner("proj-x")
    world.see(now=NOON + timedelta(minutes=1))

    assert world.registry.provisioner("proj-x") is not None
    assert world.registry.worker_type(POOL) is not None


def test_a_worker_put_aside_while_it_is_deleted_leaves_no_line_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.see()
    table = world.registry.deletions
    remove = table.remove_worker

    def remove_late(*of: Any, **along: Any) -> None:
        monkeypatch.setattr(table, "remove_worker", remove)
        world.change(NOON + DAY)
        remove(*of, **along)

    monkeypatch.setattr(table, "remove_worker", remove_late)
    world.deletion().worker(KEY)

    assert world.registry.worker(KEY) is None
    assert world.quarantines.listed(limit=9)[0] == []


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_type_is_deleted_though_others_delete_its_workers_or_those_call_again(
    world: World, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    world.see()
    world.see(key=OTHER)
    workers = world.registry.workers

    def read(*of: Any, **asked: Any) -> Any:
        found = workers(*of, **asked)
        monkeypatch.setattr(world.registry, "workers", workers)
        world.registry.delete_worker(KEY)
        if comes_back:
            world.see(now=NOON + HOUR)
        return found

    monkeypatch.setattr(world.registry, "workers", read)
    world.deletion().worker_type(POOL)

    assert world.registry.worker_type(POOL) is None


@pytest.mark.parametrize("level", ["worker", "worker_type", "provisioner"])
def test_whoever_was_in_quarantine_is_released_by_a_deletion_and_that_is_told(
    world: World, level: str
) -> None:
    free_again = WorkerKey(POOL, "rack-1", "m-3")
    for key in (KEY, OTHER, free_again):
        world.see(key=key)
    world.change(NOON + DAY)
    world.change(NOON + HOUR / 2, key=free_again)
    delete = getattr(world.deletion(now=NOON + HOUR), level)
    delete({"worker": KEY, "worker_type": POOL, "provisioner": "proj-x"}[level])

    _, _, event = world.told
    assert event["name"] == "worker-released"
    assert event["detail"]["workerId"] == "m-1"
    assert (event["detail"]["clientId"], event["detail"]["reason"]) == (
        "ops/ann",
        "deleted by ops/ann",
    )
    assert world.backend.heard == [(KEY, NOON + HOUR, "deleted by ops/ann")]
    assert [one.info for one in world.quarantines.history(KEY)] == ["deleted by ops/ann", "noisy"]
    world.see(now=NOON + HOUR)
    worker = world.registry.worker(KEY)
    assert worker is not None
    assert not worker.is_quarantined(NOON + HOUR)


def test_a_type_that_is_closed_opens_when_it_is_deleted(world: World) -> None:
    deletion = world.deletion(now=NOON + HOUR)
    until = NOON + DAY
    deletion.downtimes.change(POOL, until, info="cables", client_id="ops/bob", now=NOON)
    deletion.worker_type(POOL)

    assert world.names() == ["task-queue-closed", "task-queue-opened"]
    assert world.told[-1]["detail"]["reason"] == "deleted by ops/ann"
    assert deletion.downtimes.in_force(now=NOON + HOUR) == {}


def test_a_large_type_is_deleted_by_asking_until_it_is_gone(world: World) -> None:
    keys = [WorkerKey(POOL, "rack-1", f"m-{number:03d}") for number in range(230)]
    for key in keys:
        world.see(key=key)
    world.change(NOON + DAY, key=keys[150])

    def left() -> int:
        return len(world.registry.workers(POOL, limit=1000)[0])

    for expected in (130, 31):
        times = iter([False, True, True])
        with pytest.raises(QueueUnavailableError, match="ask again"):
            world.deletion(is_late=partial(next, times)).worker_type(POOL)
        assert left() == expected
        assert world.registry.worker_type(POOL) is not None
    world.deletion().worker_type(POOL)

    assert left() == 0
    assert world.names() == ["worker-quarantined", "worker-released"]
    assert world.registry.worker_type(POOL) is None


def test_groups_too_are_deleted_only_while_there_is_time(world: World) -> None:
    for number in range(3):
        world.see(key=WorkerKey(POOL, f"rack-{number}", "m-1"))

    # Once for the workers, once for the first group.
    times = iter([False, False, True])
    with pytest.raises(QueueUnavailableError, match="ask again"):
        world.deletion(is_late=partial(next, times)).worker_type(POOL)
    assert [one.group for one in world.registry.groups(POOL)] == ["rack-1", "rack-2"]
    world.deletion().worker_type(POOL)

    assert world.registry.groups(POOL) == []
    assert world.registry.worker_type(POOL) is None


def test_a_worker_that_comes_back_is_another_one(world: World) -> None:
    world.see()
    before = world.registry.worker(KEY)
    assert before is not None
    world.deletion().worker(KEY)
    world.see()

    after = world.registry.worker(KEY)
    assert after is not None
    assert (after.created, after.last_seen) == (before.created, before.last_seen)
    assert after.version != before.version
