"""Every method of the API through the stock client, over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests
import taskcluster  # type: ignore[import-untyped]

from tests.api.world import SIGNER, TOKEN, Api, a_definition, a_static_definition
from tests.factories import a_worker
from tests.http_server import serving
from worker_manager.core.model import State
from worker_manager.core.moments import to_wire, whole_milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.store.tables import Tables

POOL = "proj-x/pool-1"
RACKS = "proj-x/racks"
SECRET, NEXT_SECRET, LAST_SECRET = "s" * 44, "t" * 44, "u" * 44


def now() -> datetime:
    return whole_milliseconds(datetime.now(UTC))


class Service:
    """A served API and its stock clients."""

    def __init__(self, url: str, api: Api) -> None:
        self.url = url
        self.api = api

    def client(self, credentials: dict[str, str] | None = None) -> Any:
        known = {"clientId": "test/root", "accessToken": TOKEN}
        options = {
            "rootUrl": self.url,
            "credentials": known if credentials is None else credentials,
            "maxRetries": 0,
        }
        return taskcluster.WorkerManager(options)


@pytest.fixture
def service(tables: Tables) -> Iterator[Service]:
    made: list[Api] = []

    def handle(url: str) -> Any:
        made.append(Api(tables, now, url))
        return made[0].app.handle

    with serving(handle) as url:
        yield Service(url, made[0])


def test_pools_from_beginning_to_end(service: Service) -> None:
    client = service.client()
    assert client.ping()["alive"] is True
    assert client.lbheartbeat() == client.heartbeat() == {}
    assert "version" in client.version()
    assert len(client.listProviders()["providers"]) == 3
    body = a_definition()
    created = client.createWorkerPool(POOL, body)
    assert client.workerPool(POOL) == created
    assert client.createWorkerPool(POOL, body) == created
    updated = client.updateWorkerPool(POOL, created | {"description": "changed"})
    assert updated["description"] == "changed"
    [listed] = client.listWorkerPools(query={"limit": "10"})["workerPools"]
    assert listed | {"providerStatus": {"state": "ok"}} == updated
    page = client.listWorkerPoolLaunchConfigs(POOL, query={"includeArchived": "true"})
    assert [one["launchConfigId"] for one in page["workerPoolLaunchConfigs"]] == ["lc-a"]
    assert client.deleteWorkerPool(POOL)["providerId"] == "null-provider"


def test_pages_are_followed_by_the_clients_own_loop(service: Service) -> None:
    client = service.client()
    for name in "abc":
        client.createWorkerPool(f"proj-x/{name}", a_definition())
    seen: list[str] = []

    def collect(page: Any) -> None:
        seen.extend(pool["workerPoolId"] for pool in page["workerPools"])

    client.listWorkerPools(query={"limit": "1"}, paginationHandler=collect)
    assert seen == ["proj-x/a", "proj-x/b", "proj-x/c"]


def test_an_ec2_instance_lives_with_the_credentials_that_it_was_given(service: Service) -> None:
    client = service.client()
    client.createWorkerPool(POOL, a_definition())
    requested = a_worker(state=State.REQUESTED, created=now(), modified=now())
    assert service.api.deps.stores.workers.put_new(requested)
    registration = {
        "workerPoolId": POOL,
        "providerId": "aws",
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "workerIdentityProof": SIGNER.proof(),
        "systemBootTime": to_wire(now()),
    }
    registered = service.client({}).registerWorker(registration)
    worker = service.client(registered["credentials"])
    key = (POOL, "us-east-1", "i-1")
    assert worker.shouldWorkerTerminate(*key) == {"terminate": False, "reason": "none"}
    renewal = {
        "workerPoolId": POOL,
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "secret": registered["secret"],
    }
    renewed = worker.reregisterWorker(renewal)
    worker = service.client(renewed["credentials"])
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as refused:
        worker.shouldWorkerTerminate(POOL, "us-east-1", "i-2")
    assert refused.value.status_code == 403
    report = {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "kind": "worker-error",
        "title": "It broke",
        "description": "in two",
        "extra": {},
    }
    reported = worker.reportWorkerError(POOL, report)
    errors = client.listWorkerPoolErrors(POOL, query={"launchConfigId": "lc-a", "limit": "9"})
    assert errors["workerPoolErrors"] == [reported]
    assert client.worker(*key)["state"] == "running"
    assert len(client.listWorkersForWorkerPool(POOL, query={"state": "running"})["workers"]) == 1
    assert len(client.listWorkersForWorkerGroup(POOL, "us-east-1")["workers"]) == 1
    assert worker.removeWorker(*key) == {}
    assert client.worker(*key)["state"] == "stopping"
    assert worker.shouldWorkerTerminate(*key)["terminate"] is True
    assert len(service.api.advance.messages) == 1


def test_statistics_and_merged_lists_are_read(service: Service) -> None:
    client = service.client()
    client.createWorkerPool(POOL, a_definition())
    assert service.api.deps.stores.workers.put_new(a_worker())
    service.api.queue.set_activity(POOL, "us-east-1", "i-1", first_claim=now(), last_active=now())
    [stats] = client.workerPoolStats(POOL)["launchConfigStats"]
    assert (stats["launchConfigId"], stats["runningCount"]) == ("lc-a", 1)
    [stats] = client.listWorkerPoolsStats(query={"limit": "5"})["workerPoolsStats"]
    assert (stats["workerPoolId"], stats["currentCapacity"]) == (POOL, 1)
    report = {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "kind": "worker-error",
        "title": "It broke",
        "description": "in two",
        "extra": {},
    }
    client.reportWorkerError(POOL, report)
    for query in ({}, {"workerPoolId": POOL}):
        assert client.workerPoolErrorStats(query=query)["totals"]["title"] == {"It broke": 1}
    query = {"workerState": "running", "quarantined": "false", "launchConfigId": "lc-a"}
    [worker] = client.listWorkers(*POOL.split("/"), query=query)["workers"]
    assert worker["workerPoolId"] == POOL
    assert client.getWorker(*POOL.split("/"), "us-east-1", "i-1")["recentTasks"] == []


def test_a_static_worker_is_entered_changed_and_registered(service: Service) -> None:
    client = service.client()
    client.createWorkerPool(RACKS, a_static_definition())
    key = (RACKS, "rack-1", "box-1")
    body = {
        "expires": to_wire(now() + timedelta(days=9)),
        "capacity": 1,
        "providerInfo": {"staticSecret": SECRET},
    }
    assert client.createWorker(*key, body)["state"] == "created"
    assert client.updateWorker(*key, body | {"capacity": 2})["capacity"] == 2
    registration = {
        "workerPoolId": RACKS,
        "providerId": "static",
        "workerGroup": "rack-1",
        "workerId": "box-1",
        "workerIdentityProof": {"staticSecret": SECRET},
    }
    machine = service.client({})
    registered = machine.registerWorker(registration)
    assert registered["workerConfig"] == {"speed": 1}
    assert service.client(registered["credentials"]).shouldWorkerTerminate(*key)
    rotated = client.updateWorker(*key, {"providerInfo": {"staticSecret": NEXT_SECRET}})
    assert rotated["state"] == "running"
    assert rotated["previousSecretValidUntil"] > to_wire(now() + timedelta(hours=23))
    assert machine.registerWorker(registration)["workerConfig"] == {"speed": 1}
    client.removeWorker(*key)
    assert client.worker(*key)["state"] == "stopped"
    anew = client.createWorker(*key, {**body, "providerInfo": {"staticSecret": LAST_SECRET}})
    assert (anew["state"], "stoppedBy" in anew) == ("created", False)
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure):
        machine.registerWorker(registration)
    registration["workerIdentityProof"] = {"staticSecret": LAST_SECRET}
    machine.registerWorker(registration)
    assert client.worker(*key)["state"] == "running"


def test_a_signed_url_opens_what_it_was_made_for(service: Service) -> None:
    client = service.client()
    client.createWorkerPool(POOL, a_definition())
    url = client.buildSignedUrl("workerPool", POOL)
    assert requests.get(url, timeout=60).json()["workerPoolId"] == POOL
    assert requests.delete(url, timeout=60).status_code == 401


def test_errors_reach_the_client_in_its_own_words(service: Service) -> None:
    client = service.client()
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as missing:
        client.workerPool(POOL)
    assert missing.value.status_code == 404
    assert missing.value.body["code"] == "ResourceNotFound"
    stranger = service.client({"clientId": "test/root", "accessToken": "x" * 43})
    with pytest.raises(taskcluster.exceptions.TaskclusterAuthFailure):
        stranger.workerPool(POOL)
