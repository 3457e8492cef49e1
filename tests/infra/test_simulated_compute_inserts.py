"""Inserts: idempotency, validation, stock-outs and quotas of the simulated Compute Engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.local.clouds.compute import CapacityScope, ComputeCloud, Fault, FaultKind, Status
from infra.local.clouds.compute.instances import vcpus_of
from tests.infra.compute_calls import ZONE, Compute, a_body, codes_of, refused, request_id

if TYPE_CHECKING:
    from tests.infra.virtual_clock import VirtualClock

SPOT = {"provisioningModel": "SPOT", "automaticRestart": False}
BOOT = a_body()["disks"][0]
SCRATCH = {"type": "SCRATCH", "initializeParams": {"diskType": f"zones/{ZONE}/diskTypes/local-ssd"}}


def test_an_insert_is_accepted_and_its_operation_ends_when_the_machine_runs(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    accepted = compute.insert()
    assert accepted.status == accepted.Status.RUNNING
    assert accepted.operation_type == "insert"
    shown = compute.get(str(accepted.target_id))
    assert (shown.name, shown.status) == ("one", "PROVISIONING")
    clock.advance(compute_cloud.settings.provisioning_seconds)
    assert compute.status() == "STAGING"
    clock.advance(compute_cloud.settings.insert_seconds)
    assert compute.status() == "RUNNING"
    done = compute.operation(accepted.name)
    assert done.status == done.Status.DONE
    assert not done.error.errors
    assert compute.disk_names() == ["one"]
    [disk] = [d for d in compute.raw(f"zones/{ZONE}/disks")["items"] if d["name"] == "one"]
    assert disk["labels"] == {"deployment": "ours"}
    assert disk["users"] == [shown.self_link]


def test_the_same_request_id_gives_the_same_operation_until_it_is_forgotten(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    first = compute.insert(request_id=request_id(1))
    assert compute.insert(request_id=request_id(1)).name == first.name
    assert len(compute_cloud.instances()) == 1
    clock.advance(compute_cloud.settings.request_seconds)
    again = refused(lambda: compute.insert(request_id=request_id(1)))
    assert again == (409, "alreadyExists")


def test_a_name_is_taken_also_by_a_disk_that_was_left(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    compute.insert(request_id=request_id(1))
    taken = refused(lambda: compute.insert(request_id=request_id(2)))
    assert taken == (409, "alreadyExists")
    compute_cloud.forget([compute_cloud.instances()[0].instance_id], leave_disks=True)
    assert refused(compute.insert) == (409, "alreadyExists")


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"name": "Upper"}, "invalid"),
        ({"name": "x" * 64}, "invalid"),
        ({"labels": {"Key": "v"}}, "invalid"),
        ({"labels": {"key": "a/b"}}, "invalid"),
        ({"labels": {"key": "v" * 64}}, "invalid"),
        ({"labels": {f"k{n}": "v" for n in range(65)}}, "invalid"),
        ({"machineType": "n2-standard-4"}, "invalid"),
        ({"machineType": "zones/us-east1-b/machineTypes/n2-standard-4"}, "invalid"),
        ({"machineType": f"zones/{ZONE}/machineTypes/n0-none"}, "invalid"),
        ({"networkInterfaces": []}, "required"),
        ({"disks": []}, "required"),
        ({"disks": [SCRATCH]}, "required"),
        ({"disks": [BOOT, SCRATCH | {"initializeParams": {"labels": {"a": "b"}}}]}, "invalid"),
        ({"disks": [BOOT, {"type": "SCRATCH"}]}, "invalid"),
        ({"disks": [BOOT, SCRATCH | {"type": "PERSISTENT"}]}, "invalid"),
        ({"disks": [BOOT | {"initializeParams": {"sourceImage": "images/none"}}]}, "invalid"),
        ({"disks": [BOOT | {"initializeParams": {"labels": {"A": "b"}}}]}, "invalid"),
        ({"metadata": {"items": [{"key": "k", "value": "v" * 262_145}]}}, "invalid"),
        ({"metadata": {"items": [{"key": k, "value": "v" * 200_000} for k in "abc"]}}, "invalid"),
        ({"scheduling": {"provisioningModel": "SPOT"}}, "invalid"),
        ({"guestAccelerators": [{"acceleratorCount": 1}]}, "invalid"),
    ],
)
def test_a_malformed_insert_is_refused_and_makes_nothing(
    compute_cloud: ComputeCloud, compute: Compute, overrides: dict[str, Any], reason: str
) -> None:
    compute_cloud.bad_images.add("none")
    compute_cloud.bad_machine_types.add("n0-none")
    assert refused(lambda: compute.insert(a_body(**overrides))) == (400, reason)
    assert compute_cloud.instances() == []


def test_scratch_disks_are_part_of_the_machine(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    compute.insert(a_body(disks=[BOOT, SCRATCH]))
    assert len(compute_cloud.instances()) == 1
    assert compute.disk_names() == ["one"]


def test_zones_projects_and_request_ids_must_be_real(compute: Compute) -> None:
    body = a_body(zone="mars-north1-a")
    assert refused(lambda: compute.insert(body, zone="mars-north1-a")) == (404, "notFound")
    zero = "00000000-0000-0000-0000-000000000000"
    assert refused(lambda: compute.insert(request_id=zero)) == (400, "invalid")
    assert compute.raw("nothing")["error"]["code"] == 404
    foreign = compute.raw(f"../another/zones/{ZONE}/instances")
    assert foreign["error"]["errors"][0]["reason"] == "forbidden"


def test_a_stock_out_fails_the_accepted_operation_and_the_machine_vanishes_with_its_disk(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    compute_cloud.capacity[CapacityScope(ZONE, "n2-standard-4")] = 1
    compute.insert()
    accepted = compute.insert(a_body("two"), request_id=request_id(2))
    assert compute.status("two") == "PROVISIONING"
    clock.advance(compute_cloud.settings.failing_seconds)
    ended = compute.operation(accepted.name)
    [error] = ended.error.errors
    assert error.code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    [info] = [d.error_info for d in error.error_details if d.error_info.reason]
    assert info.metadatas["vmType"] == "n2-standard-4"
    assert (ended.http_error_status_code, ended.http_error_message) == (503, "SERVICE UNAVAILABLE")
    assert refused(lambda: compute.get("two")) == (404, "notFound")
    assert compute.disk_names() == ["one"]
    assert codes_of(compute.insert(a_body("two"), request_id=request_id(2))) == [error.code]


def test_spot_and_other_zones_have_capacity_of_their_own(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    compute_cloud.capacity[CapacityScope(ZONE, spot=True)] = 0
    compute_cloud.change_settings(failing_seconds=0.0)
    assert codes_of(compute.insert(a_body(scheduling=SPOT)))
    assert not codes_of(compute.insert())
    other = "us-central1-b"
    body = a_body("two", zone=other, scheduling=SPOT)
    assert not codes_of(compute.insert(body, zone=other))


@pytest.mark.parametrize(
    ("metric", "overrides"),
    [
        ("CPUS", {}),
        ("N2_CPUS", {}),
        ("INSTANCES", {}),
        ("DISKS_TOTAL_GB", {}),
        ("PREEMPTIBLE_CPUS", {"scheduling": SPOT}),
        ("IN_USE_ADDRESSES", {"networkInterfaces": [{"accessConfigs": [{"name": "nat"}]}]}),
    ],
)
def test_a_quota_fails_the_operation_and_names_its_metric(
    compute_cloud: ComputeCloud, compute: Compute, metric: str, overrides: dict[str, Any]
) -> None:
    compute_cloud.limits.quotas["us-central1", metric] = 0
    compute_cloud.change_settings(failing_seconds=0.0)
    ended = compute.insert(a_body(**overrides))
    [error] = ended.error.errors
    assert error.code == "QUOTA_EXCEEDED"
    assert f"Quota '{metric}' exceeded" in error.message
    [details] = error.error_details
    assert details.quota_info.metric_name == f"compute.googleapis.com/{metric.lower()}"
    assert details.quota_info.dimensions["region"] == "us-central1"
    assert ended.http_error_status_code == 403


def test_quotas_and_stock_outs_can_refuse_at_once(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    compute_cloud.change_settings(refuses_late=False)
    compute_cloud.limits.quotas["us-central1", "CPUS"] = 7
    compute.insert()
    assert refused(lambda: compute.insert(a_body("two"))) == (403, "quotaExceeded")
    compute_cloud.limits.quotas.clear()
    compute_cloud.capacity[CapacityScope(ZONE)] = 1
    exhausted = (503, "ZONE_RESOURCE_POOL_EXHAUSTED")
    assert refused(lambda: compute.insert(a_body("two"))) == exhausted
    assert len(compute_cloud.instances()) == 1


def test_a_fault_can_fail_the_operation_with_or_without_a_list_of_errors(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    for code, status in (("RESOURCE_NOT_FOUND", 404), ("", 409)):
        fault = Fault(FaultKind.ERROR, "instances.insert", code=code, late=True, status=status)
        compute_cloud.faults.add(fault)
        accepted = compute.insert()
        assert compute.operation(accepted.name).status == accepted.Status.RUNNING
        clock.advance(compute_cloud.settings.failing_seconds)
        ended = compute.operation(accepted.name)
        assert codes_of(ended) == [code] * bool(code)
        assert ended.http_error_status_code == status
        assert compute_cloud.instances() == []


def test_a_terminated_machine_holds_no_capacity(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    compute_cloud.capacity[CapacityScope("us-central1")] = 1
    compute_cloud.stop([str(compute.insert().target_id)])
    clock.advance(compute_cloud.settings.stopping_seconds)
    assert compute_cloud.instances()[0].status is Status.TERMINATED
    compute.insert(a_body("two"))
    clock.advance(1)
    assert compute.status("two") == "RUNNING"


@pytest.mark.parametrize(
    ("machine_type", "count"),
    [
        ("n2-standard-8", 8),
        ("e2-medium", 2),
        ("f1-micro", 1),
        ("n1-custom-6-3072", 6),
        ("c3-standard-22-lssd", 22),
        ("a2-highgpu-1g", 1),
    ],
)
def test_processors_are_told_by_the_name(machine_type: str, count: int) -> None:
    assert vcpus_of(machine_type) == count
