"""The embedded queue over HTTP, driven by the stock client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import taskcluster  # type: ignore[import-untyped]
from botocore.session import Session
from moto import mock_aws

from tests.api.world import ISSUER, TOKEN
from tests.http_server import serving
from tests.registry_tables import a_registry, queue_deps
from worker_manager.api.app import App
from worker_manager.api.queue import ROUTES
from worker_manager.core.ids import derived_slugid
from worker_manager.core.moments import to_wire
from worker_manager.core.roles import Roles
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.store.queue_table import QueueTable
from worker_manager.store.tables import Tables
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POOL = "proj-x/pool-1"
TASK = derived_slugid("task")
WORKER = ("proj-x", "pool-1", "rack-1", "box-1")
SCOPES = (
    "queue:create-task:lowest/proj-x/*",
    "queue:create-task:project:none",
    "queue:scheduler-id:-",
)
OTHERS = (
    "queue:cancel-task-in-project:other",
    "queue:cancel-task:-/other/*",
    "queue:claim-task:other/pool",
    "queue:worker-id:*",
)
"""Of somebody who may do all of it, but to other tasks."""


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def client() -> Iterator[Callable[..., Any]]:
    """Makes stock clients of a served queue, by client id."""
    with mock_aws():
        tables = Tables.bind({}, Session(), "us-east-1")
        table = QueueTable.bind("queue", tables.connection)
        table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        tables.providers.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        registry = a_registry(tables)
        known = [
            Client("test/root", TOKEN, ("*",)),
            Client("test/creator", TOKEN, SCOPES),
            Client("test/poor", TOKEN),
            Client("test/project", TOKEN, ("queue:cancel-task-in-project:none",)),
            Client("test/group", TOKEN, (f"queue:cancel-task:-/{TASK}/{TASK}",)),
            Client("test/others", TOKEN, OTHERS),
        ]

        def handle(url: str) -> Any:
            deps = queue_deps(
                EmbeddedQueue(table, registry, now, ISSUER),
                registry,
                authenticator=LocalAuthenticator(known, Roles(()), now),
                root_url=url,
                clock=now,
            )
            return App(ROUTES, deps).handle

        with serving(handle) as url:

            def make(client_id: str = "test/root") -> Any:
                credentials = {"clientId": client_id, "accessToken": TOKEN}
                options = {"rootUrl": url, "credentials": credentials, "maxRetries": 0}
                return taskcluster.Queue(options)

            yield make


def a_task(**overrides: Any) -> dict[str, Any]:
    return {
        "taskQueueId": POOL,
        "created": to_wire(now()),
        "deadline": to_wire(now() + timedelta(hours=1)),
        "payload": {"seconds": 1},
        "metadata": {
            "name": "build",
            "description": "builds",
            "owner": "someone@example.com",
            "source": "https://example.com/source",
        },
        **overrides,
    }


def claim(queue: Any, tasks: int = 1) -> list[Any]:
    body = {"workerGroup": "rack-1", "workerId": "box-1", "tasks": tasks}
    claimed: list[Any] = queue.claimWork(POOL, body)["tasks"]
    return claimed


def test_a_task_is_created_claimed_renewed_and_done(client: Callable[..., Any]) -> None:
    queue = client()
    body = a_task()
    assert queue.createTask(TASK, body)["status"]["state"] == "pending"
    assert queue.createTask(TASK, body)["status"]["taskId"] == TASK
    assert queue.taskQueueCounts(POOL)["pendingTasks"] == 1
    [claimed] = claim(queue)
    assert claimed["task"]["payload"] == {"seconds": 1}
    assert queue.taskQueueCounts(POOL)["claimedTasks"] == 1
    assert len(queue.listClaimedTasks(POOL)["tasks"]) == 1
    assert queue.reclaimTask(TASK, "0")["credentials"]["clientId"]
    assert queue.reportCompleted(TASK, "0")["status"]["state"] == "completed"
    assert queue.status(TASK)["status"]["state"] == "completed"
    assert queue.task(TASK)["metadata"]["name"] == "build"


def test_runs_may_fail_or_be_given_back(client: Callable[..., Any]) -> None:
    queue = client()
    reports: dict[str, Callable[[str], Any]] = {
        "failed": lambda task: queue.reportFailed(task, "0"),
        "pending": lambda task: queue.reportException(task, "0", {"reason": "worker-shutdown"}),
    }
    for name, report in reports.items():
        task_id = derived_slugid(name)
        queue.createTask(task_id, a_task())
        claim(queue)
        assert report(task_id)["status"]["state"] == name


def test_what_waits_is_told_claimed_by_name_and_cancelled(client: Callable[..., Any]) -> None:
    queue = client()
    other = derived_slugid("other")
    for task_id in (TASK, other):
        queue.createTask(task_id, a_task())
    assert queue.pendingTasks(POOL)["pendingTasks"] == 2
    page = queue.listPendingTasks(POOL, query={"limit": "1"})
    rest = queue.listPendingTasks(POOL, query={"continuationToken": page["continuationToken"]})
    waiting = page["tasks"] + rest["tasks"]
    assert {(item["taskId"], item["runId"]) for item in waiting} == {(TASK, 0), (other, 0)}
    worker = {"workerGroup": "rack-1", "workerId": "box-1"}
    assert queue.claimTask(other, "0", worker)["task"]["payload"] == {"seconds": 1}
    for client_id in ("test/group", "test/project"):
        assert client(client_id).cancelTask(TASK)["status"]["state"] == "exception"
    assert queue.pendingTasks(POOL)["pendingTasks"] == 0


def test_whoever_may_do_it_to_other_tasks_may_not_to_this_one(client: Callable[..., Any]) -> None:
    client().createTask(TASK, a_task())
    worker = {"workerGroup": "rack-1", "workerId": "box-1"}
    for client_id in ("test/others", "test/poor"):
        queue = client(client_id)
        for call, arguments in ((queue.cancelTask, ()), (queue.claimTask, ("0", worker))):
            with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as refused:
                call(TASK, *arguments)
            assert refused.value.status_code == 403
    assert client().status(TASK)["status"]["state"] == "pending"


def test_workers_are_remembered_and_put_aside(client: Callable[..., Any]) -> None:
    queue = client()
    claim(queue)
    assert len(queue.listWorkers("proj-x", "pool-1")["workers"]) == 1
    until = to_wire(now() + timedelta(hours=1))
    queue.quarantineWorker(*WORKER, {"quarantineUntil": until})
    assert queue.getWorker(*WORKER)["quarantineUntil"] == until
    query = {"quarantined": "false", "limit": "5"}
    assert queue.listWorkers("proj-x", "pool-1", query=query)["workers"] == []
    query = {"quarantined": "true"}
    assert len(queue.listWorkers("proj-x", "pool-1", query=query)["workers"]) == 1


def test_the_registry_has_the_queues_own_methods_too(client: Callable[..., Any]) -> None:
    queue = client()
    expires = to_wire(now() + timedelta(days=2))
    assert queue.declareWorker(*WORKER, {"expires": expires})["expires"] == expires

    [provisioner] = queue.listProvisioners()["provisioners"]
    assert provisioner == queue.getProvisioner("proj-x")
    [worker_type] = queue.listWorkerTypes("proj-x", query={"limit": "1"})["workerTypes"]
    assert {**worker_type, "actions": []} == queue.getWorkerType("proj-x", "pool-1")
    [task_queue] = queue.listTaskQueues()["taskQueues"]
    assert task_queue == queue.getTaskQueue(POOL)
    assert worker_type.items() >= task_queue.items()
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure, match="not supported"):
        queue.listProvisioners(query={"includeInactive": "true"})


def test_creating_needs_the_scopes_of_just_this_task(client: Callable[..., Any]) -> None:
    creator = client("test/creator")
    creator.createTask(TASK, a_task())
    for overrides in (
        {"scopes": ["secret:scope"]},
        {"priority": "high"},
        {"taskQueueId": "other/pool"},
    ):
        with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as refused:
            creator.createTask(derived_slugid("other"), a_task(**overrides))
        assert refused.value.status_code == 403


def test_everything_but_pings_needs_scopes(client: Callable[..., Any]) -> None:
    poor = client("test/poor")
    assert poor.ping()["alive"] is True
    for call in (
        lambda: poor.status(TASK),
        lambda: poor.task(TASK),
        lambda: poor.taskQueueCounts(POOL),
        lambda: poor.pendingTasks(POOL),
        lambda: poor.listPendingTasks(POOL),
        lambda: claim(poor),
        lambda: poor.reclaimTask(TASK, "0"),
        lambda: poor.reportCompleted(TASK, "0"),
        poor.listProvisioners,
        lambda: poor.getProvisioner("proj-x"),
        lambda: poor.listWorkerTypes("proj-x"),
        lambda: poor.getWorkerType("proj-x", "pool-1"),
        poor.listTaskQueues,
        lambda: poor.getTaskQueue(POOL),
        lambda: poor.declareWorker(*WORKER, {"expires": to_wire(now())}),
        lambda: poor.listWorkers("proj-x", "pool-1"),
        lambda: poor.getWorker(*WORKER),
        lambda: poor.quarantineWorker(*WORKER, {"quarantineUntil": to_wire(now())}),
    ):
        with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as refused:
            call()
        assert refused.value.status_code == 403


def test_what_does_not_exist_or_fit_is_the_documented_4xx(client: Callable[..., Any]) -> None:
    queue = client()
    refusals: list[tuple[Callable[[], Any], int]] = [
        (lambda: queue.status(TASK), 404),
        (lambda: queue.status("no-slugid"), 400),
        (lambda: queue.createTask(TASK, a_task(deadline="soon")), 400),
        (lambda: queue.createTask(TASK, a_task(deadline=to_wire(now() - timedelta(days=1)))), 400),
        (lambda: queue.claimWork(POOL, {"workerGroup": "g", "workerId": "w", "tasks": 99}), 400),
        (lambda: queue.getWorker(*WORKER), 404),
        (lambda: queue.cancelTask(TASK), 404),
    ]
    for call, status in refusals:
        with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as refused:
            call()
        assert refused.value.status_code == status
    queue.createTask(TASK, a_task())
    for call in (
        lambda: queue.createTask(TASK, a_task(payload={"other": 1})),
        lambda: queue.reclaimTask(TASK, "0"),
    ):
        with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as refused:
            call()
        assert refused.value.status_code == 409
