"""What a config on Compute Engine may say, and what its launch configs ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.clouds import (
    GOOGLE,
    a_google_launch_config,
    a_pool_of,
    real_pools,
    taken,
    with_clouds,
)
from tests.api.world import BASE, POOL_PATH
from worker_manager.api.offerings import location_of, offering_of
from worker_manager.api.refusals import Refusal

if TYPE_CHECKING:
    from tests.api.world import Api

LC = "config.launchConfigs[0]"
KIND = "zones/us-central1-a/machineTypes/n2-standard-2"


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in a_google_launch_config().items() if key != name}


def told(key: str, value: Any = "x") -> dict[str, Any]:
    return a_google_launch_config(metadata={"items": [{"key": key, "value": value}]})


@pytest.fixture
def clouds(api: Api) -> Api:
    return with_clouds(api)


def test_real_pools_are_taken_as_they_are(clouds: Api) -> None:
    for pool in real_pools("google"):
        name = pool.pop("workerPoolId").replace("/", "%2F")
        created = clouds.ok("PUT", f"{BASE}/worker-pool/{name}", pool)
        assert created["config"] == pool["config"]


@pytest.mark.parametrize(
    ("launch_config", "what"),
    [
        *(
            (without(name), f"{LC}.{name}: field required")
            for name in (
                "region",
                "zone",
                "machineType",
                "disks",
                "networkInterfaces",
                "scheduling",
                "workerConfig",
            )
        ),
        ("x", f"{LC}: "),
        (a_google_launch_config(zone="us central"), f"{LC}.zone: "),
        (a_google_launch_config(zone="us-central1-b"), f"{LC}: machineType must be of zone"),
        *(
            (a_google_launch_config(machineType=wrong), f"{LC}.machineType: must be zones/<zone>/")
            for wrong in (
                "",
                "n2-standard-2",
                "zones/us-central1-a/machineTypes/",
                f"{KIND}\n",
                f"x {KIND}",
            )
        ),
        (a_google_launch_config(disks={}), f"{LC}.disks: "),
        (a_google_launch_config(disks=["x"]), f"{LC}.disks[0]: "),
        (a_google_launch_config(disks=[{"labels": []}]), f"{LC}.disks[0].labels: "),
        (
            a_google_launch_config(disks=[{"initializeParams": {"labels": {"a": 1}}}]),
            f"{LC}.disks[0].initializeParams.labels.a: ",
        ),
        (a_google_launch_config(networkInterfaces={}), f"{LC}.networkInterfaces: "),
        (a_google_launch_config(scheduling=[]), f"{LC}.scheduling: "),
        (a_google_launch_config(workerConfig=None), f"{LC}.workerConfig: "),
        (a_google_launch_config(labels={"a": 1}), f"{LC}.labels.a: "),
        (a_google_launch_config(workerManager={"publicIp": True}), "publicIp: unknown field"),
        (told("taskcluster"), f"{LC}.metadata.items[0].key: must not be taskcluster"),
        (told("script", 1), f"{LC}.metadata.items[0].value: "),
        (told("script", "ü" * 140_000), "value: is 280000 bytes; Compute Engine takes at most"),
        (
            a_google_launch_config(workerConfig={"x": "y" * 262_000}),
            f"{LC}.workerConfig: is 262008 bytes; metadata has room for",
        ),
    ],
)
def test_a_launch_config_that_is_wrong_is_refused_by_field_name(
    launch_config: Any, what: str
) -> None:
    with pytest.raises(Refusal) as refused:
        taken(GOOGLE, launch_config)
    assert refused.value.code == "InputValidationError"
    assert what in refused.value.message


@pytest.mark.parametrize(
    "before",
    [
        "https://www.googleapis.com/compute/v1/projects/proj/",
        "https://compute.googleapis.com/compute/v1/projects/example.com:proj/",
        "projects/proj/",
    ],
)
def test_a_machine_type_may_be_any_longer_form_of_its_path(before: str) -> None:
    kind = f"{before}zones/us-central1-a/machineTypes/n2-custom-4-4096-ext"
    taken(GOOGLE, a_google_launch_config(machineType=kind))


def test_what_only_google_knows_goes_through_untouched(clouds: Api) -> None:
    body = a_google_launch_config(
        guestAccelerators=[{"acceleratorCount": 1}],
        metadata={"items": [{"key": "script", "value": "x"}], "kind": "compute#metadata"},
        disks=[{"type": "SCRATCH", "interface": "NVME", "initializeParams": {"diskType": "x"}}],
    )
    definition = a_pool_of("google", body)
    assert clouds.ok("PUT", POOL_PATH, definition)["config"] == definition["config"]
    [head] = clouds.deps.stores.pools.get("proj-x/pool-1").heads  # type: ignore[union-attr]
    assert (head.location, head.offering) == ("proj", "proj/us-central1-a/n2-standard-2/spot")


@pytest.mark.parametrize(
    ("change", "offering"),
    [
        ({}, "proj/us-central1-a/n2-standard-2/spot"),
        ({"scheduling": {}}, "proj/us-central1-a/n2-standard-2/on-demand"),
        (
            {"scheduling": {"provisioningModel": "STANDARD"}},
            "proj/us-central1-a/n2-standard-2/on-demand",
        ),
        ({"scheduling": {"preemptible": True}}, "proj/us-central1-a/n2-standard-2/spot"),
        ({"machineType": "n1-highmem-8"}, "proj/us-central1-a/n1-highmem-8/spot"),
        ({"machineType": "zones/us-central1-a/machineTypes/"}, ""),
        ({"machineType": "größer"}, ""),
        ({"zone": "x" * 65}, ""),
    ],
)
def test_an_offering_is_project_zone_machine_type_and_market(
    change: dict[str, Any], offering: str
) -> None:
    body = a_google_launch_config(**change)
    assert offering_of(GOOGLE)(body) == offering
    assert location_of(GOOGLE)(body) == "proj"
