"""The loop's handlers: what they do with events, records that fail, and missing settings."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import a_scheduled_event, an_sqs_event
from worker_manager.core.messages import ProvisionPool, Resume, ScanPool, Terminate
from worker_manager.core.model import Location, WorkerKey
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from tests.functions.deployed import DeployedStage
    from tests.functions.running import RunningStage

TICKS = ("provision-tick-aws", "scan-tick-aws")
REGION = Location("us-east-1")


def a_provision(pool_id: str = "proj-x/pool-1", **overrides: Any) -> dict[str, Any]:
    return ProvisionPool(pool_id, "t-1", datetime.now(UTC)).to_json() | overrides


def a_scan(pool_id: str = "proj-x/pool-1", **overrides: Any) -> dict[str, Any]:
    return ScanPool(pool_id, REGION, "t-1", datetime.now(UTC)).to_json() | overrides


def logged(caplog: pytest.LogCaptureFixture, message: str) -> list[str]:
    """The bodies that were logged with a message."""
    return [vars(record)["body"] for record in caplog.records if record.getMessage() == message]


def sent_for(running: RunningStage, name: str) -> list[str]:
    """The ticks for which a tick's function sent messages to pools."""
    queue = "provision-aws.fifo" if name.startswith("provision") else "scan-aws.fifo"
    records = [record for event in running.deployed.drain(queue) for record in event["Records"]]
    return [json.loads(record["body"])["tick"] for record in records]


def test_one_pool_that_fails_stops_no_other_and_not_the_call(
    running: RunningStage, caplog: pytest.LogCaptureFixture
) -> None:
    running.define_pool(minCapacity=1)
    bodies: list[Any] = ["no JSON", a_provision(at="yesterday"), {"pool": "x/y"}, a_provision()]

    assert running.deployed.call("provision-pool-aws", an_sqs_event(bodies)) is None

    assert running.machines() == {"pending": 1}
    failures = logged(caplog, "a pool failed, its next tick repairs")
    assert failures == [body if isinstance(body, str) else json.dumps(body) for body in bodies[:3]]


def test_one_scan_that_fails_stops_no_other_and_not_the_call(
    running: RunningStage, caplog: pytest.LogCaptureFixture
) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    (worker,) = running.workers()
    running.ec2.terminate("us-east-1", [worker["workerId"]])
    running.clock.advance(60)
    bodies: list[Any] = ["no JSON", a_scan(listedAt=None), {"blob": 7}, a_scan()]

    assert running.deployed.call("scan-pool-aws", an_sqs_event(bodies)) is None

    assert [found["state"] for found in running.workers()] == ["stopped"]
    assert len(logged(caplog, "a scan failed, the next list repairs")) == 3


def test_a_list_whose_blob_has_vanished_is_acknowledged(
    deployed: DeployedStage, caplog: pytest.LogCaptureFixture
) -> None:
    event = an_sqs_event([{"blob": "scan/gone.json"}], queue="wm-local-scan-aws.fifo")

    assert deployed.call("scan-pool-aws", event) is None

    assert logged(caplog, "a scan failed, the next list repairs") == []


def test_a_delete_that_fails_comes_again_and_its_neighbours_are_done(
    running: RunningStage,
) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    (worker,) = running.workers()
    path = f"/api/worker-manager/v1/workers/proj-x%2Fpool-1/us-east-1/{worker['workerId']}"
    running.ask("workers-api", "DELETE", path)
    running.deployed.drain("advance-aws")
    key = WorkerKey("proj-x/pool-1", "us-east-1", worker["workerId"])
    bodies = [{"kind": "unheard-of"}, "no JSON", Terminate(key).to_json()]

    event = an_sqs_event(bodies, queue="wm-local-advance-aws")
    answer = running.deployed.call("advance-aws", event)

    failed = [event["Records"][number]["messageId"] for number in (0, 1)]
    assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}
    running.clock.advance(60)
    assert running.machines() == {"terminated": 1}


def test_a_message_that_fails_is_logged(
    deployed: DeployedStage, caplog: pytest.LogCaptureFixture
) -> None:
    deployed.call("advance-aws", an_sqs_event(["no JSON"], queue="wm-local-advance-aws"))

    assert logged(caplog, "a message failed, it comes again") == ["no JSON"]


def test_a_batch_of_deletes_that_all_fail_is_reported_and_does_not_raise(
    deployed: DeployedStage,
) -> None:
    event = an_sqs_event([{"kind": "unheard-of"}], queue="wm-local-advance-aws")

    answer = deployed.call("advance-aws", event)

    assert len(answer["batchItemFailures"]) == 1


def test_a_resumed_pool_is_planned_again(deployed: DeployedStage) -> None:
    event = an_sqs_event([Resume("proj-x/pool-1", "t-9").to_json()], queue="wm-local-advance-aws")

    assert deployed.call("advance-aws", event) == {"batchItemFailures": []}

    (sent,) = deployed.drain("provision-aws.fifo")
    (record,) = sent["Records"]
    assert record["attributes"]["MessageGroupId"] == "proj-x/pool-1"
    assert json.loads(record["body"])["tick"] == "t-9"


def test_a_schedule_is_the_first_tick_and_sends_the_later_ones(running: RunningStage) -> None:
    running.define_pool()
    running.deployed.drain("provision-aws.fifo")
    now = datetime.now(UTC).replace(microsecond=0)

    running.deployed.call("provision-tick-aws", a_scheduled_event(now))

    assert sent_for(running, "provision-tick-aws") == [f"{to_wire(now)}#00"]
    assert running.deployed.waiting("provision-ticks-aws") == (0, 1)


@pytest.mark.parametrize("name", TICKS)
def test_a_later_tick_comes_from_the_queue(running: RunningStage, name: str) -> None:
    running.define_pool()
    running.deployed.drain("provision-aws.fifo")
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=30)
    body = {"time": a_scheduled_event(at)["time"], "slot": 1}

    running.deployed.call(name, an_sqs_event([body], queue="wm-local-ticks-aws"))

    assert sent_for(running, name) == [f"{to_wire(at + timedelta(seconds=30))}#01"]


@pytest.mark.parametrize("name", TICKS)
@pytest.mark.parametrize("by_queue", [False, True])
def test_a_stale_tick_sends_nothing(running: RunningStage, name: str, by_queue: bool) -> None:
    running.define_pool()
    running.deployed.drain("provision-aws.fifo")
    event = a_scheduled_event(datetime.now(UTC) - timedelta(minutes=5))
    if by_queue:
        event = an_sqs_event([{"time": event["time"], "slot": 1}], queue="wm-local-ticks-aws")

    running.deployed.call(name, event)

    for queue in running.deployed.queue_urls:
        assert running.deployed.waiting(queue) == (0, 0), queue


@pytest.mark.parametrize("name", TICKS)
def test_a_schedule_that_fires_late_takes_nothing_from_later_ticks(
    deployed: DeployedStage, name: str
) -> None:
    """EventBridge keeps the minute, not the second: with short ticks all would be stale."""
    event = a_scheduled_event(datetime.now(UTC) - timedelta(seconds=32))

    deployed.call(name, event, WM_TICK_SECONDS="15")

    queue = name.replace("tick", "ticks")
    assert deployed.drain(queue) == []
    assert deployed.waiting(queue) == (0, 1)
