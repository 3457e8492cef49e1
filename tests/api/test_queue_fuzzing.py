"""The embedded queue's API, fuzzed by its OpenAPI document."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session
from moto import mock_aws

from tests.api.fuzzing import fallible, fitting, fuzz, operations, refuse_misfits
from tests.api.world import ISSUER, ROOT_URL, TOKEN, Api, Clock
from tests.factories import NOW
from tests.registry_tables import a_registry, queue_deps
from worker_manager.api.app import App
from worker_manager.api.documents.openapi import openapi
from worker_manager.api.documents.queue import SERVICE
from worker_manager.api.queue import ROUTES
from worker_manager.api.registry import routes_of
from worker_manager.core.ids import derived_slugid
from worker_manager.core.moments import to_wire
from worker_manager.core.roles import Roles
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.store.queue_table import QueueTable
from worker_manager.store.tables import Tables
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.api.fuzzing import Names

DOCUMENT = openapi(SERVICE, ROOT_URL)
TWINS = {route.name for route in routes_of("queue")}
"""The registry's, by the same handlers: ``test_registry_fuzzing`` sends to those."""
OPERATIONS = {name: one for name, one in operations(DOCUMENT).items() if name not in TWINS}
KNOWN: Names = {
    "taskQueueId": "proj-x/pool-1",
    "provisionerId": "proj-x",
    "workerType": "pool-1",
    "workerGroup": "rack-1",
    "workerId": "box-1",
    "taskId": derived_slugid("task"),
    "runId": "0",
    "created": to_wire(NOW),
    "deadline": to_wire(NOW + timedelta(hours=1)),
    "expires": to_wire(NOW + timedelta(days=1)),
    "reason": "worker-shutdown",
}
"""Names of what is there, and times that make sense."""


class QueueApi(Api):
    """The same client in front of another API."""

    def __init__(self) -> None:
        tables = Tables.bind({}, Session(), "us-east-1")
        table = QueueTable.bind("queue", tables.connection)
        table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        clock = Clock()
        registry = a_registry(tables)
        tables.providers.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        deps: Any = queue_deps(
            EmbeddedQueue(table, registry, clock, ISSUER),
            registry,
            authenticator=LocalAuthenticator(
                [Client("test/root", TOKEN, ("*",))], Roles(()), clock
            ),
            root_url=ROOT_URL,
            clock=clock,
        )
        routes: Any = ROUTES
        self.root_url = ROOT_URL
        self.deps = deps
        self.app = App(routes, deps)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with mock_aws():
        yield QueueApi()


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_what_fits_gets_an_answer_that_is_described(api: Api, name: str) -> None:
    for names in (KNOWN, {}):
        fuzz(api, fitting(OPERATIONS[name], names), client="test/root", examples=6)


@pytest.mark.parametrize("name", fallible(OPERATIONS))
def test_what_does_not_fit_is_not_taken(api: Api, name: str) -> None:
    refuse_misfits(api, DOCUMENT, OPERATIONS[name], KNOWN)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_nobody_gets_an_answer_that_is_described(api: Api, name: str) -> None:
    fuzz(api, fitting(OPERATIONS[name], KNOWN), client=None, examples=2)
