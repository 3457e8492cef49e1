"""The registry's API, fuzzed by its OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.session import Session
from moto import mock_aws

from tests.action_tables import a_run
from tests.api.fuzzing import fallible, fitting, fuzz, operations, refuse_misfits
from tests.api.registry_world import RegistryApi
from tests.api.world import ROOT_URL
from tests.factories import NOW
from worker_manager.actions.course import LEASE
from worker_manager.actions.entities import Lease
from worker_manager.api.documents.openapi import openapi
from worker_manager.api.documents.worker_registry import SERVICE
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.store.tables import TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.api.fuzzing import Names

DOCUMENT = openapi(SERVICE, ROOT_URL)
OPERATIONS = operations(DOCUMENT)
KNOWN: Names = {
    "taskQueueId": "proj-x/builders",
    "provisionerId": "proj-x",
    "workerType": "builders",
    "workerGroup": "rack-1",
    "workerId": "m-1",
    "taskId": derived_slugid("task"),
    "runId": 0,
    "at": to_wire(NOW),
    "actionName": "reboot",
    "actionRunId": derived_slugid("run", 1),
    "agentId": "dc1",
    "requestId": derived_slugid("run", 1),
    "leaseId": derived_slugid("lease"),
}
"""Names of what is there, and times that make sense."""


@pytest.fixture(scope="module")
def api() -> Iterator[RegistryApi]:
    with mock_aws():
        tables = Tables.bind({}, Session(), "us-east-1")
        for name in TABLES:
            getattr(tables, name).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        api = RegistryApi(tables)
        api.see()
        lease = Lease(derived_slugid("lease"), "dc1", NOW + LEASE)
        run = api.runs.request(a_run(key=WorkerKey("proj-x/builders", "rack-1", "m-1")))
        api.runs.take(run.run_id, lease, now=NOW)
        yield api


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_what_fits_gets_an_answer_that_is_described(api: RegistryApi, name: str) -> None:
    for names in (KNOWN, {}):
        fuzz(api, fitting(OPERATIONS[name], names), client="test/root", examples=6)


@pytest.mark.parametrize("name", fallible(OPERATIONS))
def test_what_does_not_fit_is_not_taken(api: RegistryApi, name: str) -> None:
    refuse_misfits(api, DOCUMENT, OPERATIONS[name], KNOWN)
