"""Each of the 27 published methods, called by the stock client, answers what its schema says."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import taskcluster  # type: ignore[import-untyped]

from tests.api import stock
from tests.api.test_references import ENTRIES, validator
from tests.api.world import SIGNER, TOKEN, Api, a_definition, a_static_definition
from tests.factories import POOL_ID, a_worker
from tests.http_server import serving
from worker_manager.core.model import State
from worker_manager.core.moments import to_wire
from worker_manager.wiring.base import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker_manager.store.tables import Tables

    Answer = dict[str, Any]
    Call = Callable[[Any, "Story"], Answer]

CLOUD = (POOL_ID, "us-east-1", "i-1")
RACKS = "proj-x/racks"
BOX = (RACKS, "rack-1", "box-1")
SECRET = "s" * 44


class Story:
    """What was learned from earlier answers."""

    def __init__(self) -> None:
        self.registered: Answer = {}


def tomorrow() -> str:
    return to_wire(now() + timedelta(days=1))


def register(client: Any, story: Story) -> Answer:
    body = {
        "workerPoolId": POOL_ID,
        "providerId": "aws",
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "workerIdentityProof": SIGNER.proof(),
        "systemBootTime": to_wire(now()),
    }
    story.registered = client.registerWorker(body)
    return story.registered


def reregister(client: Any, story: Story) -> Answer:
    body = {
        "workerPoolId": POOL_ID,
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "secret": story.registered["secret"],
    }
    answer: Answer = client.reregisterWorker(body)
    return answer


def report(client: Any, _story: Story) -> Answer:
    body = {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "kind": "worker-error",
        "title": "It broke",
        "description": "in two",
        "extra": {"code": "broken"},
    }
    answer: Answer = client.reportWorkerError(POOL_ID, body)
    return answer


STORY: dict[str, Call] = {
    "ping": lambda client, _: client.ping(),
    "lbheartbeat": lambda client, _: client.lbheartbeat(),
    "heartbeat": lambda client, _: client.heartbeat(),
    "version": lambda client, _: client.version(),
    "listProviders": lambda client, _: client.listProviders(query={"limit": "10"}),
    "createWorkerPool": lambda client, _: client.createWorkerPool(RACKS, a_static_definition()),
    "updateWorkerPool": lambda client, _: client.updateWorkerPool(
        POOL_ID, a_definition(description="changed")
    ),
    "workerPool": lambda client, _: client.workerPool(POOL_ID),
    "listWorkerPools": lambda client, _: client.listWorkerPools(query={"limit": "10"}),
    "listWorkerPoolLaunchConfigs": lambda client, _: client.listWorkerPoolLaunchConfigs(
        POOL_ID, query={"includeArchived": "true"}
    ),
    "registerWorker": register,
    "reregisterWorker": reregister,
    "shouldWorkerTerminate": lambda client, _: client.shouldWorkerTerminate(*CLOUD),
    "worker": lambda client, _: client.worker(*CLOUD),
    "listWorkersForWorkerGroup": lambda client, _: client.listWorkersForWorkerGroup(*CLOUD[:2]),
    "listWorkersForWorkerPool": lambda client, _: client.listWorkersForWorkerPool(
        POOL_ID, query={"state": "running", "launchConfigId": "lc-a"}
    ),
    "listWorkers": lambda client, _: client.listWorkers(
        *POOL_ID.split("/"), query={"workerState": "running", "quarantined": "false"}
    ),
    "getWorker": lambda client, _: client.getWorker(*POOL_ID.split("/"), *CLOUD[1:]),
    "workerPoolStats": lambda client, _: client.workerPoolStats(POOL_ID),
    "listWorkerPoolsStats": lambda client, _: client.listWorkerPoolsStats(query={"limit": "10"}),
    "reportWorkerError": report,
    "listWorkerPoolErrors": lambda client, _: client.listWorkerPoolErrors(
        POOL_ID, query={"launchConfigId": "lc-a"}
    ),
    "workerPoolErrorStats": lambda client, _: client.workerPoolErrorStats(
        query={"workerPoolId": POOL_ID}
    ),
    "createWorker": lambda client, _: client.createWorker(
        *BOX, {"expires": tomorrow(), "providerInfo": {"staticSecret": SECRET}}
    ),
    "updateWorker": lambda client, _: client.updateWorker(
        *BOX, {"expires": tomorrow(), "capacity": 2}
    ),
    "removeWorker": lambda client, _: client.removeWorker(*BOX),
    "deleteWorkerPool": lambda client, _: client.deleteWorkerPool(RACKS),
}
"""Method → a call of it that succeeds, in an order in which they all do."""


@pytest.fixture
def client(tables: Tables) -> Iterator[Any]:
    """The stock client of a service that has a pool and a machine that was just launched."""

    def handle(url: str) -> Any:
        api = Api(tables, now, url)
        api.ok("PUT", f"/api/worker-manager/v1/worker-pool/{POOL_ID}", a_definition())
        assert api.deps.stores.workers.put_new(
            a_worker(state=State.REQUESTED, created=now(), modified=now())
        )
        api.queue.set_activity(*CLOUD, first_claim=now(), last_active=now())
        return api.app.handle

    with serving(handle) as url:
        credentials = {"clientId": "test/root", "accessToken": TOKEN}
        options = {"rootUrl": url, "credentials": credentials, "maxRetries": 0}
        yield taskcluster.WorkerManager(options)


def test_every_method_of_the_stock_client_has_its_part() -> None:
    assert STORY.keys() == stock.METHODS.keys()


def test_every_method_answers_what_its_schema_says(client: Any) -> None:
    story = Story()
    for name, call in STORY.items():
        answer = call(client, story)
        assert isinstance(answer, dict), name
        if "output" in ENTRIES[name]:
            schema = ENTRIES[name]["output"].rstrip("#")
            validator(f"/schemas/worker-manager/{schema}").validate(answer)
        else:
            assert answer == {}, name
