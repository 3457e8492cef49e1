"""The API behind a Taskcluster auth service, with stock clients in front of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests
import taskcluster  # type: ignore[import-untyped]

from tests.api.world import ISSUER, TOKEN, Api, a_definition
from tests.auth_service import FakeAuthService, an_answer
from tests.factories import a_worker
from tests.http_server import serving
from worker_manager.api.app import App
from worker_manager.core.moments import whole_milliseconds
from worker_manager.core.roles import Role
from worker_manager.taskcluster.auth_service import AuthService
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.credentials import (
    ISSUER_SCOPES,
    Issuer,
    issue,
    issue_worker_credentials,
)
from worker_manager.taskcluster.remote_auth import RemoteAuthenticator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from worker_manager.store.tables import Tables

POOL = "proj-x/pool-1"
ROOT = {"clientId": "test/root", "accessToken": TOKEN}


def now() -> datetime:
    return whole_milliseconds(datetime.now(UTC))


class Served:
    """A served API that knows its issuer and nobody else, and the service that it asks."""

    def __init__(self, url: str, auth_url: str, tables: Tables, auth: FakeAuthService) -> None:
        self.url = url
        self.auth = auth
        self.api = Api(tables, now, url)
        service = AuthService(auth_url)
        authenticator = RemoteAuthenticator(
            service, issuer=ISSUER, now=now, patience=timedelta(seconds=60)
        )
        self.api.deps = replace(self.api.deps, authenticator=authenticator)
        self.app = App(tuple(self.api.routes.values()), self.api.deps)

    def client(self, credentials: Mapping[str, object] | None = None, **options: Any) -> Any:
        given = {
            "rootUrl": self.url,
            "credentials": dict(ROOT if credentials is None else credentials),
        }
        return taskcluster.WorkerManager({**given, "maxRetries": 0, **options})


@pytest.fixture
def served(tables: Tables) -> Iterator[Served]:
    auth = FakeAuthService(
        clients=[
            Client("test/root", TOKEN, ("*",)),
            Client("test/poor", TOKEN, ("something:else",)),
            Client(ISSUER.client_id, ISSUER.access_token, ISSUER_SCOPES),
        ],
        now=now,
        roles=[Role("anonymous", ("worker-manager:list-providers",))],
    )
    made: list[Served] = []
    with ExitStack() as stack:
        auth_url = stack.enter_context(auth.served())

        def handle(url: str) -> Any:
            made.append(Served(url, auth_url, tables, auth))
            return made[0].app.handle

        stack.enter_context(serving(handle))
        yield made[0]


def test_a_pool_is_created_read_listed_and_deleted(served: Served) -> None:
    manager = served.client()
    created = manager.createWorkerPool(POOL, a_definition())
    assert manager.workerPool(POOL)["config"] == created["config"]
    listed = manager.listWorkerPools(query={"limit": "5"})
    assert [pool["workerPoolId"] for pool in listed["workerPools"]] == [POOL]
    assert manager.deleteWorkerPool(POOL)["providerId"] == "null-provider"
    assert len(served.auth.questions) == 4


def test_a_query_of_two_keys_in_any_order_is_understood(served: Served) -> None:
    manager = served.client()
    manager.createWorkerPool(POOL, a_definition())
    for query in (
        {"limit": "5", "state": "running", "launchConfigId": "lc-a"},
        {"state": "running", "launchConfigId": "lc-a", "limit": "5"},
    ):
        assert manager.listWorkersForWorkerPool(POOL, query=query) == {"workers": []}


def test_temporary_and_restricted_credentials_are_understood(served: Served) -> None:
    credentials = issue(
        "test/named",
        ["worker-manager:*"],
        issuer=Issuer("test/root", TOKEN),
        now=now(),
        expires=now() + timedelta(hours=1),
    )
    served.client(credentials).createWorkerPool(POOL, a_definition())
    restricted = served.client(
        credentials, authorizedScopes=[f"worker-manager:get-worker-pool:{POOL}"]
    )
    assert restricted.workerPool(POOL)["workerPoolId"] == POOL
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as failure:
        restricted.deleteWorkerPool(POOL)
    assert failure.value.status_code == 403


def test_a_worker_of_ours_polls_and_the_service_is_asked_once(served: Served) -> None:
    worker = a_worker()
    assert served.api.deps.stores.workers.put_new(worker)
    expires = now() + timedelta(hours=1)
    polling = served.client(
        issue_worker_credentials(
            worker.key, provider_id="aws", issuer=ISSUER, now=now(), expires=expires
        )
    )
    for _ in range(4):
        answer = polling.shouldWorkerTerminate(
            worker.key.pool_id, worker.key.group, worker.key.worker_id
        )
        assert answer["terminate"] is False
    assert len(served.auth.questions) == 1


def test_what_anybody_may_do_needs_no_signature(served: Served) -> None:
    assert served.client({}).listProviders()["providers"]
    answer = requests.get(f"{served.url}/api/worker-manager/v1/worker-pools", timeout=60)
    assert answer.status_code == 403


def test_a_wrong_token_is_a_401_in_the_services_words(served: Served) -> None:
    with pytest.raises(taskcluster.exceptions.TaskclusterAuthFailure, match="Bad mac"):
        served.client(ROOT | {"accessToken": "x" * 43}).listWorkerPools()


def test_too_few_scopes_are_a_403(served: Served) -> None:
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as failure:
        served.client(ROOT | {"clientId": "test/poor"}).listWorkerPools()
    assert failure.value.status_code == 403


@pytest.mark.parametrize("client", ["test/root", None])
def test_an_outage_of_the_service_is_a_503_that_says_when_to_come_back(
    served: Served, client: str | None
) -> None:
    served.auth.fails = lambda: an_answer({}, status=500)
    response = served.api.signed_event("GET", "/api/worker-manager/v1/worker-pools", client=client)
    answer = served.app.handle(response)
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "5")
    assert json.loads(answer["body"])["code"] == "ServiceUnavailable"


def test_what_is_public_needs_no_service(served: Served) -> None:
    served.auth.fails = lambda: an_answer({}, status=500)
    assert served.client().ping()["alive"] is True
