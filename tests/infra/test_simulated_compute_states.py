"""How machines of the simulated Compute Engine stop, vanish, and what they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.infra.compute_calls import PROJECT, ZONE, Compute, a_body, refused, request_id

if TYPE_CHECKING:
    from infra.local.clouds.compute import ComputeCloud
    from tests.infra.virtual_clock import VirtualClock


def running(compute: Compute, clock: VirtualClock, **overrides: Any) -> str:
    """A machine that runs; its id."""
    instance_id = str(compute.insert(a_body(**overrides)).target_id)
    clock.advance(1)
    assert compute.status(instance_id) == "RUNNING"
    return instance_id


def test_a_deleted_machine_stops_and_is_gone_with_the_disks_that_go_with_it(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    kept = {"autoDelete": False, "initializeParams": {"diskName": "kept"}}
    instance_id = running(compute, clock, disks=[*a_body()["disks"], kept])
    deletion = compute.delete(instance_id, request_id=request_id(1))
    assert compute.status() == "STOPPING"
    assert compute.delete(instance_id, request_id=request_id(1)).name == deletion.name
    assert compute.delete(instance_id, request_id=request_id(2)).name == deletion.name
    clock.advance(compute_cloud.settings.delete_seconds)
    done = compute.operation(deletion.name)
    assert (done.status, done.error.errors) == (done.Status.DONE, [])
    assert refused(lambda: compute.delete(instance_id)) == (404, "notFound")
    assert compute.listed() == []
    assert compute.disk_names() == ["kept"]
    disk = compute.disks.get(project=PROJECT, zone=ZONE, disk="kept")
    assert disk.users == []
    compute.disks.delete_unary(project=PROJECT, zone=ZONE, disk="kept")
    assert compute.disk_names() == []


def test_a_disk_in_use_cannot_be_deleted(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    running(compute, clock)
    in_use = refused(lambda: compute.disks.delete_unary(project=PROJECT, zone=ZONE, disk="one"))
    assert in_use == (400, "resourceInUseByAnotherResource")
    assert refused(lambda: compute.disks.delete_unary(project=PROJECT, zone=ZONE, disk="none")) == (
        404,
        "notFound",
    )
    assert len(compute_cloud.estate.disks) == 1


def test_an_insert_ends_in_conflict_when_its_machine_is_deleted_meanwhile(
    compute: Compute,
) -> None:
    accepted = compute.insert()
    compute.delete()
    ended = compute.operation(accepted.name)
    assert (ended.status, ended.http_error_status_code) == (ended.Status.DONE, 409)


def test_preemption_stops_or_deletes_as_the_machine_was_asked_to(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    spot = {"provisioningModel": "SPOT", "automaticRestart": False}
    gone = running(compute, clock, scheduling=spot | {"instanceTerminationAction": "DELETE"})
    stays = running(compute, clock, name="two", scheduling=spot)
    compute_cloud.preempt([gone, stays])
    assert [compute.status(name) for name in ("one", "two")] == ["STOPPING", "STOPPING"]
    clock.advance(1)
    assert compute.listed() == ["two"]
    assert compute.status("two") == "TERMINATED"
    operations = compute.raw(
        f"zones/{ZONE}/operations", filter="operationType=compute.instances.preempted"
    )
    assert [o["targetId"] for o in operations["items"]] == [gone, stays]
    assert {o["user"] for o in operations["items"]} == {"system"}


def test_a_machine_that_shuts_down_is_terminated_but_there(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    instance_id = running(compute, clock)
    compute_cloud.shut_down_from_inside(instance_id)
    compute_cloud.stop([instance_id])
    clock.advance(1)
    assert compute.status() == "TERMINATED"
    assert compute.listed(filter="status = TERMINATED") == ["one"]


def test_a_reset_keeps_a_running_machine_running(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    compute.insert()

    def reset() -> object:
        return compute.instances.reset_unary(project=PROJECT, zone=ZONE, instance="one")

    assert refused(reset) == (400, "resourceNotReady")
    clock.advance(1)
    reset()
    assert compute.status() == "RUNNING"
    assert compute_cloud.calls_of("instances.reset") == 2
    assert [instance.reboots for instance in compute_cloud.instances()] == [1]


def test_operations_can_be_read_for_two_weeks(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    accepted = compute.insert()
    assert len(compute.raw("aggregated/operations")["items"][f"zones/{ZONE}"]["operations"]) == 1
    clock.advance(compute_cloud.settings.operations_seconds)
    assert refused(lambda: compute.operation(accepted.name)) == (404, "notFound")
