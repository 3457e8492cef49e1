"""What a function's numbers look like to CloudWatch."""

from __future__ import annotations

import json
import warnings
from datetime import timedelta
from typing import Any

import pytest

from tests.factories import NOW, a_worker
from worker_manager.metrics import BY_POOL, Meter

FACTS = {
    "running": 3,
    "requested": 2,
    "stopping": 1,
    "quarantined": 0,
    "maxCapacity": 5,
    "pending": 7,
    "claimed": 3,
    "target": 5,
}


def a_meter(*, namespace: str = "stage", by_pool: bool = False) -> Meter:
    meter = Meter()
    meter.configure(namespace=namespace, by_pool=by_pool, owner="aws")
    return meter


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def names(line: dict[str, Any]) -> set[str]:
    [directive] = line["_aws"]["CloudWatchMetrics"]
    return {metric["Name"] for metric in directive["Metrics"]}


def dimensions(line: dict[str, Any]) -> list[list[str]]:
    [directive] = line["_aws"]["CloudWatchMetrics"]
    found: list[list[str]] = directive["Dimensions"]
    return found


def provision(meter: Meter, **changes: Any) -> None:
    facts = FACTS | changes
    meter.provisioned("aws", "proj-x/pool-1", facts=facts, ordered=2, seconds=0.25)


def test_one_pools_tick_is_one_line_of_its_provider(capsys: pytest.CaptureFixture[str]) -> None:
    meter = a_meter()
    provision(meter)
    meter.flush()

    [line] = lines(capsys)
    assert line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "stage"
    assert dimensions(line) == [["Provider"]]
    assert line["Provider"] == "aws"
    assert (line["PendingTasks"], line["ExistingCapacity"], line["DesiredCapacity"]) == (
        [7.0],
        [5.0],
        [5.0],
    )
    assert line["pool"] == "proj-x/pool-1"


def test_capacity_beyond_the_maximum_counts_all_that_costs_money(
    capsys: pytest.CaptureFixture[str],
) -> None:
    meter = a_meter()
    provision(meter)
    provision(meter, maxCapacity=10)
    provision(meter, costing=5)
    meter.flush()

    [line] = lines(capsys)
    assert line["OverMaximum"] == [1.0, 0.0, 0.0]


def test_demand_that_is_unknown_is_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    meter = a_meter()
    known = {name: value for name, value in FACTS.items() if name not in ("pending", "claimed")}
    meter.provisioned("aws", "proj-x/pool-1", facts=known, ordered=0, seconds=1)
    meter.provisioned("aws", "proj-x/pool-2", facts=None, ordered=0, seconds=1)
    meter.flush()

    [line] = lines(capsys)
    assert not {"PendingTasks", "ClaimedTasks"} & names(line)
    assert line["ProvisionSeconds"] == [1.0, 1.0]
    assert "pool" not in line


def test_pools_are_a_dimension_of_few_metrics_and_only_where_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    meter = a_meter(by_pool=True)
    provision(meter)
    meter.flush()

    whole, of_pool = lines(capsys)
    assert names(of_pool) == BY_POOL
    assert dimensions(of_pool) == [["Provider", "Pool"]]
    assert of_pool["Pool"] == "proj-x/pool-1"
    assert names(whole) > BY_POOL


def test_failures_are_told_apart_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    meter = a_meter()
    meter.failed("aws", "no-capacity", count=3)
    meter.failed("aws", "no-capacity")
    meter.failed("aws", "never-claimed")
    meter.flush()

    found = {line["Kind"]: line["Failures"] for line in lines(capsys)}
    assert found == {"no-capacity": [3.0, 1.0], "never-claimed": [1.0]}


def test_a_registration_tells_both_parts_of_its_wait(capsys: pytest.CaptureFixture[str]) -> None:
    meter = a_meter()
    times: dict[str, Any] = {
        "created": NOW,
        "boot_time": NOW + timedelta(seconds=20),
        "registered": NOW + timedelta(seconds=50),
    }
    meter.registered(a_worker(**times))
    meter.registered(a_worker(**(times | {"boot_time": NOW - timedelta(seconds=5)})))
    meter.registered(a_worker(**(times | {"boot_time": None})))
    meter.registered(a_worker())
    meter.flush()

    [line] = lines(capsys)
    assert line["RegistrationSeconds"] == [50.0, 50.0, 50.0]
    assert line["BootSeconds"] == [20.0, 0.0]
    assert line["StartupSeconds"] == [30.0, 55.0]


def test_every_moment_has_its_metric(capsys: pytest.CaptureFixture[str]) -> None:
    meter = a_meter()
    meter.provision_ticked("aws", {"stale": False, "pools": 3})
    meter.provision_ticked("aws", {"stale": True, "pools": 0})
    lists = {"stale": False, "locations": 4, "believed": 3, "machines": 17}
    meter.scan_ticked("aws", lists, seconds=2)
    meter.scan_ticked("aws", {"stale": True}, seconds=2)
    scan = {"pool": "proj-x/pool-1", "seen": 5, "missing": 1, "strays": 0}
    meter.scanned("aws", scan, seconds=1)
    meter.scanned("aws", {"pool": "proj-x/pool-1", "stale": True}, seconds=1)
    meter.launched("aws", instances=4)
    meter.throttled("aws")
    meter.breaker_opened("aws")
    meter.crashed()
    meter.provider_failed()
    meter.stopped(a_worker(created=NOW), NOW + timedelta(hours=1))
    meter.mail_failed()
    meter.flush()

    aws, everywhere = lines(capsys)
    told = {name: value for name, value in aws.items() if isinstance(value, list)}
    assert told == {
        "ProvisionTicks": [1.0],
        "Pools": [3.0],
        "ScanTicks": [1.0],
        "ListSeconds": [2.0],
        "StaleLocations": [1.0],
        "Machines": [17.0],
        "ScanSeconds": [1.0],
        "SeenMachines": [5.0],
        "MissingMachines": [1.0],
        "StrayMachines": [0.0],
        "InstancesLaunched": [4.0],
        "CloudThrottles": [1.0],
        "BreakersOpened": [1.0],
        "Crashes": [1.0],
        "ProviderFailures": [1.0],
        "LifetimeSeconds": [3600.0],
    }
    assert (everywhere["Provider"], everywhere["MailFailures"]) == ("all", [1.0])


def test_a_handlers_numbers_are_written_however_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    meter = a_meter()

    @meter.written
    def handle(_event: object) -> None:
        meter.throttled("aws")
        raise RuntimeError

    for _ in range(2):
        with pytest.raises(RuntimeError):
            handle({})

    assert [line["CloudThrottles"] for line in lines(capsys)] == [[1.0], [1.0]]


def test_more_values_than_a_line_can_hold_are_all_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    meter = a_meter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(200):
            meter.throttled("aws")
        meter.flush()

    assert sum(len(line["CloudThrottles"]) for line in lines(capsys)) == 200


def test_without_a_namespace_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    meter = a_meter(namespace="")
    provision(meter)
    meter.mail_failed()
    meter.flush()

    assert capsys.readouterr().out == ""
