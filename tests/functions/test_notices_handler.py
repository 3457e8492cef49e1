"""EC2's notices, as the queue hands them over, with exactly the function's environment and role."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.events import an_ec2_notice, an_sqs_event
from worker_manager.providers.aws.provider import AwsProvider

if TYPE_CHECKING:
    import pytest

    from tests.functions.deployed import DeployedStage
    from tests.functions.running import RunningStage

QUEUE = "wm-local-notices-aws"
DONE: dict[str, Any] = {"batchItemFailures": []}


def with_workers(running: RunningStage, count: int) -> list[str]:
    running.define_pool(minCapacity=count)
    running.provision()
    running.deployed.drain("provision-aws.fifo")
    running.clock.advance(60)
    return [worker["workerId"] for worker in running.workers()]


def told_provision(running: RunningStage) -> list[str]:
    events = running.deployed.drain("provision-aws.fifo")
    return [json.loads(found["body"])["tick"] for event in events for found in event["Records"]]


def test_a_terminated_instance_is_a_stopped_worker_and_its_pool_is_planned(
    running: RunningStage,
) -> None:
    name, other = with_workers(running, 2)
    running.ec2.terminate("us-east-1", [name])
    notices = [
        an_ec2_notice(name, "shutting-down"),
        an_ec2_notice("i-0123456789abcdef0", "terminated", number=1),
    ]

    assert running.deployed.call("notices-aws", an_sqs_event(notices, queue=QUEUE)) == DONE

    states = {worker["workerId"]: worker["state"] for worker in running.workers()}
    assert states == {name: "stopping", other: "requested"}
    [tick] = told_provision(running)
    assert tick.partition("#")[2] == f"again-{notices[0]['id'][:22]}"

    running.clock.advance(60)
    ended = an_ec2_notice(name, "terminated", number=2)
    assert running.deployed.call("notices-aws", an_sqs_event([ended], queue=QUEUE)) == DONE

    states = {worker["workerId"]: worker["state"] for worker in running.workers()}
    assert states == {name: "stopped", other: "requested"}


def test_a_stopped_instance_is_deleted(running: RunningStage) -> None:
    (name,) = with_workers(running, 1)
    running.ec2.stop("us-east-1", [name])
    running.clock.advance(60)

    event = an_sqs_event([an_ec2_notice(name, "stopped")], queue=QUEUE)
    assert running.deployed.call("notices-aws", event) == DONE

    running.clock.advance(60)
    assert running.machines() == {"terminated": 1}


def test_a_worker_on_a_warned_spot_instance_is_told_to_terminate(running: RunningStage) -> None:
    (name,) = with_workers(running, 1)

    event = an_sqs_event([an_ec2_notice(name, None)], queue=QUEUE)
    assert running.deployed.call("notices-aws", event) == DONE

    path = f"/api/worker-manager/v1/workers/proj-x%2Fpool-1/us-east-1/{name}/should-terminate"
    answer = running.ask("workers-api", "GET", path)
    assert answer == {"terminate": True, "reason": "spot interruption"}


def test_a_poisonous_notice_comes_again_and_its_neighbours_are_heeded(
    running: RunningStage, caplog: pytest.LogCaptureFixture
) -> None:
    (name,) = with_workers(running, 1)
    running.ec2.terminate("us-east-1", [name])
    bodies: list[Any] = ["no JSON", an_ec2_notice(name, "hovering"), an_ec2_notice(name, "stopped")]
    event = an_sqs_event(bodies, queue=QUEUE)

    answer = running.deployed.call("notices-aws", event)

    failed = [event["Records"][number]["messageId"] for number in (0, 1)]
    assert answer == {"batchItemFailures": [{"itemIdentifier": found} for found in failed]}
    assert [worker["state"] for worker in running.workers()] == ["stopping"]
    logged = [record.getMessage() for record in caplog.records]
    assert logged.count("a message failed, it comes again") == 2


def test_a_cloud_that_does_not_answer_gets_the_notices_again(
    deployed: DeployedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(AwsProvider, "recognise", fail)
    event = an_sqs_event([an_ec2_notice("i-0123456789abcdef0", "terminated")], queue=QUEUE)

    answer = deployed.call("notices-aws", event)

    failed = event["Records"][0]["messageId"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": failed}]}
