"""Whatever fits the OpenAPI document, or just does not, gets an answer that it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from tests.api.fuzzing import fallible, fitting, fuzz, operations, refuse_misfits
from tests.api.world import (
    BASE,
    ROOT_URL,
    Api,
    Clock,
    a_definition,
    a_static_definition,
)
from tests.conftest import REGION, SESSION
from tests.factories import a_worker
from worker_manager.api.config_schemas import AwsConfig, StaticConfig
from worker_manager.api.documents.openapi import openapi
from worker_manager.api.documents.schemas import Definitions
from worker_manager.api.documents.worker_manager import SERVICE
from worker_manager.store.tables import TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.api.fuzzing import Names

PROOF = {"staticSecret": "s" * 44}
CLOUD: Names = {
    "workerPoolId": "proj-x/pool-1",
    "provisionerId": "proj-x",
    "workerType": "pool-1",
    "workerGroup": "us-east-1",
    "workerId": "i-1",
    "launchConfigId": "lc-a",
    "providerId": "aws",
    "until": "2027-01-01T00:00:00.000Z",
}
RACK: Names = {
    "workerPoolId": "proj-x/racks",
    "provisionerId": "proj-x",
    "workerType": "racks",
    "workerGroup": "rack-1",
    "workerId": "box-1",
    "providerId": "static",
    "providerInfo": PROOF,
    "workerIdentityProof": PROOF,
    "expires": "2027-01-01T00:00:00.000Z",
    "capacity": 1,
}
STRANGE: Names = {"providerId": "static"}
"""Names of what is there, and none: what they name is not left to chance."""


def document() -> dict[str, Any]:
    """The OpenAPI document, with the shapes of configs where it has any object."""
    made = openapi(SERVICE, ROOT_URL)
    components = made["components"]
    definitions = Definitions([AwsConfig, StaticConfig])
    found = components["schemas"] | definitions.all(_reference)
    shapes = {"anyOf": [{"$ref": _reference(name)} for name in ("AwsConfig", "StaticConfig")]}
    for name in ("CreateWorkerPoolRequest", "UpdateWorkerPoolRequest"):
        found[name] = {**found[name], "properties": {**found[name]["properties"], "config": shapes}}
    return {**made, "components": {**components, "schemas": found}}


def _reference(name: str) -> str:
    return f"#/components/schemas/{name}"


DOCUMENT = document()
OPERATIONS = operations(DOCUMENT)


@pytest.fixture(scope="module")
def every_table() -> Iterator[Api]:
    """An API over tables that all cases share."""
    with mock_aws():
        tables = Tables.bind({name: f"test-{name}" for name in TABLES}, SESSION, REGION)
        for name in TABLES:
            getattr(tables, name).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        yield Api(tables, Clock(), ROOT_URL)


@pytest.fixture
def api(every_table: Api) -> Api:
    """The same, with what is named."""
    every_table("PUT", f"{BASE}/worker-pool/proj-x%2Fpool-1", a_definition())
    every_table("POST", f"{BASE}/worker-pool/proj-x%2Fpool-1", a_definition())
    every_table("PUT", f"{BASE}/worker-pool/proj-x%2Fracks", a_static_definition())
    every_table.deps.stores.workers.put_new(a_worker())
    return every_table


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_what_fits_gets_an_answer_that_is_described(api: Api, name: str) -> None:
    for names in (CLOUD, RACK, STRANGE):
        fuzz(api, fitting(OPERATIONS[name], names), client="test/root", examples=5)


@pytest.mark.parametrize("name", fallible(OPERATIONS))
def test_what_does_not_fit_is_not_taken(api: Api, name: str) -> None:
    refuse_misfits(api, DOCUMENT, OPERATIONS[name], CLOUD)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_nobody_gets_an_answer_that_is_described(api: Api, name: str) -> None:
    operation = OPERATIONS[name]
    seen = fuzz(api, fitting(operation, CLOUD), client=None, examples=2)
    if operation.definition.raw["security"]:
        assert {status for _, status in seen} == {403}
