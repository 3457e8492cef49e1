"""What functions behind queues answer, and how deletes that come together are done together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import an_ec2_notice, an_sqs_event
from worker_manager.core.messages import ProvisionPool, Resume, ScanPool, Terminate
from worker_manager.core.model import Location, WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.providers.aws.provider import AwsProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.functions.deployed import DeployedStage
    from tests.functions.running import RunningStage
    from worker_manager.core.model import Worker
    from worker_manager.providers.protocol import Terminated

POOL_ID = "proj-x/pool-1"


def a_message(name: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    match name:
        case "provision-pool-aws":
            return ProvisionPool(POOL_ID, "t-1", now).to_json()
        case "scan-pool-aws":
            return ScanPool(POOL_ID, Location("us-east-1"), "t-1", now).to_json()
        case "advance-aws":
            return Resume(POOL_ID, "t-1").to_json()
        case "notices-aws":
            return an_ec2_notice("i-0123456789abcdef0", "terminated")
        case _:
            return {"time": to_wire(now), "slot": 0}


@pytest.mark.parametrize(
    "name",
    [
        "provision-tick-aws",
        "provision-pool-aws",
        "scan-tick-aws",
        "scan-pool-aws",
        "advance-aws",
        "notices-aws",
    ],
)
def test_a_queue_is_answered_with_nothing_or_with_what_failed(
    deployed: DeployedStage, name: str
) -> None:
    """Lambda takes any other answer to a queue for a failure of the whole batch."""
    answer = deployed.call(name, an_sqs_event([a_message(name)]))

    assert answer is None or answer == {"batchItemFailures": []}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Which workers each delete was for."""
    calls: list[list[str]] = []
    terminate = AwsProvider.terminate

    def recorded(provider: AwsProvider, workers: Sequence[Worker]) -> Terminated:
        calls.append([worker.key.worker_id for worker in workers])
        return terminate(provider, workers)

    monkeypatch.setattr(AwsProvider, "terminate", recorded)
    return calls


def test_deletes_that_come_together_are_one_call_and_a_pool_is_resumed_beside_them(
    running: RunningStage, told: list[list[str]]
) -> None:
    running.define_pool(minCapacity=3)
    running.provision()
    names = [worker["workerId"] for worker in running.workers()]
    for name in names:
        path = f"/api/worker-manager/v1/workers/proj-x%2Fpool-1/us-east-1/{name}"
        running.ask("workers-api", "DELETE", path)
    running.deployed.drain("advance-aws")
    running.deployed.drain("provision-aws.fifo")
    deletes = [Terminate(WorkerKey(POOL_ID, "us-east-1", name)).to_json() for name in names]
    bodies: list[Any] = [deletes[0], "no JSON", *deletes[1:], Resume(POOL_ID, "t-9").to_json()]
    event = an_sqs_event(bodies, queue="wm-local-advance-aws")

    answer = running.deployed.call("advance-aws", event)

    unread = event["Records"][1]["messageId"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": unread}]}
    assert [sorted(call) for call in told] == [sorted(names)]
    running.clock.advance(60)
    assert running.machines() == {"terminated": 3}
    assert len(running.deployed.drain("provision-aws.fifo")) == 1
