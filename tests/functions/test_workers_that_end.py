"""A worker's end, from our bus to the queue and the registry; and what looks at other queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from functions.observe.handler import handle as observe
from tests.events import a_bus_event, an_sqs_event
from tests.factories import a_worker
from tests.functions.lambda_context import LambdaContext
from worker_manager.core import events
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.wiring import sightings

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.functions.deployed import DeployedStage
    from tests.functions.running import RunningStage

QUEUE = "/api/queue/v1"


def an_end(worker_id: str, *, at: datetime) -> dict[str, Any]:
    worker = a_worker(worker_id=worker_id)
    event = events.worker_event(events.WORKER_STOPPED, worker, at=at, reason="gone")
    return a_bus_event(events.WORKER_STOPPED, {**event["detail"], "eventId": event["id"]})


def test_what_a_worker_claimed_is_somebody_elses_at_once_and_its_end_may_be_told_twice(
    running: RunningStage,
) -> None:
    """B25: tasks waited up to 20 minutes although their worker was known to be dead."""
    running.create_task("one")
    claim = {"workerGroup": "us-east-1", "workerId": "i-1", "tasks": 1}
    path = f"{QUEUE}/claim-work/proj-x%2Fpool-1"
    assert len(running.ask("queue-api", "POST", path, claim)["tasks"]) == 1
    later = datetime.now(UTC) + timedelta(seconds=1)
    event = an_sqs_event(["no JSON", an_end("i-1", at=later)], queue="wm-local-worker-gone")

    for _ in range(2):
        answer = running.deployed.call("worker-gone", event)
        (failed,) = answer["batchItemFailures"]
        assert failed == {"itemIdentifier": event["Records"][0]["messageId"]}

    status = running.ask("queue-api", "GET", f"{QUEUE}/task/{derived_slugid('one')}/status")
    assert [run["state"] for run in status["status"]["runs"]] == ["exception", "pending"]
    assert status["status"]["runs"][0]["reasonResolved"] == "worker-shutdown"


def test_a_taskcluster_queue_is_asked_for_as_long_as_the_call_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Backend:
        def refresh(self, is_late: Callable[[], bool]) -> dict[str, int]:
            assert not is_late()
            return {"workers": 3}

    monkeypatch.setattr(sightings, "backend", Backend)

    assert observe({}, cast("Any", LambdaContext())) == {"workers": 3}


def test_what_ended_by_itself_is_told_of_once(deployed: DeployedStage) -> None:
    pool, before = "proj-x/pool-1", datetime.now(UTC) - timedelta(hours=2)
    said: Any = {"info": "bad disk", "client_id": "test/root", "now": before}
    until = before + timedelta(hours=1)
    with deployed.container("publish"):
        key = WorkerKey(pool, "us-east-1", "i-1")
        sightings.quarantines().change(key, until, **said)
        sightings.downtimes().change(pool, until, **said)

    reports = [deployed.call("publish", {}) for _ in range(2)]
    assert [(one["released"], one["opened"]) for one in reports] == [(1, 1), (0, 0)]
