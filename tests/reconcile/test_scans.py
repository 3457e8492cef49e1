"""What a scan concludes, and what it must not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.factories import POOL_ID, REGION
from tests.reconcile.invariants import assert_sound
from tests.reconcile.scenes import scan_later, terminated, with_workers
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.events import WORKER_STOPPED
from worker_manager.core.model import MachineStatus
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    import pytest

    from tests.reconcile.world import World

DOWN = CloudUnavailableError("internal error")


def test_a_vanished_machine_is_told_of_within_one_scan(world: World) -> None:
    """B25: tasks waited 20 minutes for a worker that the cloud had taken."""
    (machine,) = with_workers(world, 1)
    world.cloud.vanish(machine.key)

    scan_later(world)

    assert world.states() == {"stopped": 1}
    assert WORKER_STOPPED in world.bus.names(machine.key.worker_id)


def test_a_machine_that_was_only_stopped_is_terminated(world: World) -> None:
    """B27: instances that stopped without terminating stayed, and cost."""
    (machine,) = with_workers(world, 1)
    world.cloud.stop(machine.key)

    scan_later(world, times=2)

    assert world.cloud.alive() == []
    assert world.states() == {"stopped": 1}


def test_a_worker_that_fell_silent_is_taken_away_in_time(world: World) -> None:
    """B14: workers whose agent had died ran on for days."""
    (machine,) = with_workers(world, 1)
    world.works(machine.key)
    # Two hours, and as long as its last call may be told too early.
    scan_later(world, minutes=149)
    assert world.states() == {"running": 1}

    scan_later(world, minutes=2)

    assert world.cloud.alive() == []


def test_a_queue_that_does_not_answer_condemns_nobody(world: World) -> None:
    """B13: what the queue did not tell was taken for inactivity."""
    (machine,) = with_workers(world, 1)
    world.works(machine.key)
    world.queue.fail()

    scan_later(world, minutes=300)

    assert world.states() == {"running": 1}


def test_a_worker_that_the_queue_does_not_know_yet_is_no_orphan(world: World) -> None:
    """B38: an eventually consistent registry got busy runners killed; one sign is not enough."""
    with_workers(world, 1)

    scan_later(world, times=5)

    assert world.states() == {"running": 1}
    assert terminated(world) == []


def test_the_quarantine_of_a_vanished_worker_ends_with_it(world: World) -> None:
    """B22: the quarantine of a machine that was gone alarmed for ever."""
    (machine,) = with_workers(world, 1)
    world.queue.set_activity(
        POOL_ID,
        machine.key.group,
        machine.key.worker_id,
        first_claim=world.clock.now,
        last_active=world.clock.now,
        quarantine_until=world.clock.now + timedelta(days=365),
    )
    scan_later(world)
    assert world.row(machine.key).quarantine_until is not None

    world.cloud.vanish(machine.key)
    scan_later(world)

    assert world.row(machine.key).quarantine_until is None


def test_a_lookup_that_fails_proves_no_death(world: World) -> None:
    """B37: "not found" is gone, "server error" is unknown."""
    (machine,) = with_workers(world, 1)
    world.cloud.vanish(machine.key)
    world.provider.fail(Method.LOOKUP, DOWN)

    scan_later(world)
    assert world.states() == {"running": 1}

    scan_later(world)
    assert world.states() == {"stopped": 1}


def test_a_list_that_breaks_off_concludes_nothing(world: World) -> None:
    machines = with_workers(world, 2)
    world.cloud.vanish(machines[0].key)
    world.provider.fail(Method.INSTANCES, DOWN, after_acting=True)

    scan_later(world)

    assert world.states() == {"running": 2}
    with world.aside():
        place = world.stores.places.place("aws", REGION)
    assert place.stale_since == world.clock.now
    scan_later(world)
    assert world.states() == {"running": 1, "stopped": 1}


def test_a_machine_too_young_for_the_list_is_not_missing(world: World) -> None:
    world.cloud.list_lag = timedelta(seconds=25)
    world.save_pool()
    world.demand(pending=2)
    world.tick()

    world.scan()
    world.clock.advance(seconds=20)
    world.scan()

    assert world.states() == {"requested": 2}
    assert terminated(world) == []


def test_a_list_that_lost_everything_is_held_and_then_looked_up(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_workers(world, 8)
    monkeypatch.setattr(world.provider, "instances", lambda location: iter(()))

    scan_later(world, times=2)
    alarms = [m for m in caplog.messages if m.startswith("too many machines vanished")]
    assert len(alarms) == 1
    with world.aside():
        assert world.stores.places.place("aws", REGION).stale_since is not None
    scan_later(world)

    assert world.states() == {"running": 8}
    lookups = [call for call in world.provider.calls if call.method is Method.LOOKUP]
    assert len(lookups) == 1


def test_machines_that_all_vanished_are_believed_gone_by_the_third_list(world: World) -> None:
    for machine in with_workers(world, 8):
        world.cloud.vanish(machine.key)

    scan_later(world, times=2)
    assert world.states() == {"running": 8}
    scan_later(world)

    assert world.states() == {"stopped": 8}


def test_machines_that_were_told_to_go_hold_no_list(world: World) -> None:
    for machine in with_workers(world, 8):
        world.remove(machine.key)
    world.deliver_all()

    scan_later(world)

    assert world.states() == {"stopped": 8}


def test_a_pool_that_many_machines_are_seen_of_gets_them_through_a_blob(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker_manager.reconcile.listing.LARGEST_MESSAGE", 200)
    with_workers(world, 3)
    world.cloud.vanish(world.cloud.alive()[0].key)

    scan_later(world)

    assert world.blobs.texts
    assert world.states() == {"running": 2, "stopped": 1}


def test_a_part_that_cannot_be_stored_keeps_no_other_pool_from_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker_manager.reconcile.listing.LARGEST_MESSAGE", 1000)
    for pool_id, count in (("proj-x/large", 20), ("proj-x/small", 1)):
        world.save_pool(pool_id, minimum=count, maximum=count)
    world.tick()
    world.register_all()
    world.clock.advance(minutes=2)
    world.blobs.refusing = True
    for pool_id in ("proj-x/large", "proj-x/small"):
        world.cloud.vanish(next(m.key for m in world.cloud.alive() if m.key.pool_id == pool_id))

    scan_later(world)
    assert world.states("proj-x/large") == {"running": 20}
    assert world.states("proj-x/small") == {"stopped": 1}

    world.blobs.refusing = False
    scan_later(world)
    assert world.states("proj-x/large") == {"running": 19, "stopped": 1}


def test_a_refusing_bus_delays_events_and_loses_none(world: World) -> None:
    world.bus.refusing = True
    (machine,) = with_workers(world, 1)
    world.cloud.vanish(machine.key)
    scan_later(world)
    assert world.bus.published == []
    assert_sound(world)

    world.bus.refusing = False
    scan_later(world)

    names = world.bus.names(machine.key.worker_id)
    assert names == ["worker-requested", "worker-running", "worker-stopped"]
    assert world.is_quiet()
    with world.aside():
        assert list(world.stores.workers.live(POOL_ID)) == []


def test_the_status_in_a_list_is_what_counts(world: World) -> None:
    (machine,) = with_workers(world, 1)
    world.cloud.deletion_time = timedelta(minutes=3)
    world.remove(machine.key)
    world.deliver_all()
    assert world.cloud.status(machine) is MachineStatus.STOPPING

    scan_later(world)
    assert world.states() == {"stopping": 1}
    assert len(terminated(world)) == 1

    scan_later(world, times=3)
    assert world.states() == {"stopped": 1}
