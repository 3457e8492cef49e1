"""Machines of Azure register with their attested document."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.clouds import SUBSCRIPTION, Issuers, a_deployment_config, a_pool_of, with_clouds
from tests.api.world import BASE, POOL_PATH
from tests.azure_signer import BETWEEN, VM_ID, a_document, content, issue
from tests.factories import a_plan, a_worker
from tests.google_signer import a_token
from worker_manager.core.model import Location, State, Worker, WorkerKey
from worker_manager.core.plans import Control

if TYPE_CHECKING:
    from tests.api.world import Api, Clock, Response

POOL = "proj-x/pool-1"
KEY = WorkerKey(POOL, "eastus", "vm-abc")
FORGER = issue("metadata.azure.com", is_authority=False)
OTHERS: list[dict[str, Any]] = [
    {"document": "x"},
    {"document": a_document(by=FORGER)},
    {"document": a_document(content(vmId="another"))},
    {"document": a_document(content(timeStamp={"expiresOn": "01/02/26 03:00:00 -0000"}))},
    {"token": a_token()},
    {"document": a_document(), "signature": "x"},
    {"staticSecret": "s" * 44},
]
"""Proofs that are none for this machine."""


@pytest.fixture
def issuers() -> Issuers:
    return Issuers(BETWEEN.der)


@pytest.fixture
def pool(api: Api, issuers: Issuers) -> Api:
    with_clouds(api, issuers=issuers)
    api.ok("PUT", POOL_PATH, a_pool_of("azure", a_deployment_config()))
    return api


@pytest.fixture
def machine(pool: Api) -> Api:
    """The API with a pool and a worker that was requested."""
    assert pool.deps.stores.workers.put_new(a_row(vmId=VM_ID))
    return pool


def a_row(**identity: Any) -> Worker:
    return a_worker(
        KEY.worker_id,
        group=KEY.group,
        provider_id="azure",
        location=Location(SUBSCRIPTION),
        state=State.REQUESTED,
        identity={"resourceGroup": "rg-workers", **identity},
    )


def register(api: Api, proof: dict[str, Any] | None = None, **overrides: Any) -> Response:
    body = {
        "workerPoolId": POOL,
        "providerId": "azure",
        "workerGroup": KEY.group,
        "workerId": KEY.worker_id,
        "workerIdentityProof": proof or {"document": a_document()},
        **overrides,
    }
    return api("POST", f"{BASE}/worker/register", body, client=None)


def test_gets_credentials_and_the_config_of_its_launch_config(machine: Api) -> None:
    response = register(machine)
    assert response.status == 200
    assert response.body["workerConfig"] == {"speed": 9}
    assert response.body["credentials"]["clientId"] == f"worker/azure/{POOL}/eastus/vm-abc"
    row = machine.deps.stores.workers.get(KEY)
    assert row is not None
    assert row.state is State.RUNNING


def test_with_any_other_proof_hears_one_and_the_same_refusal(machine: Api) -> None:
    before = machine.contents()
    for proof in OTHERS:
        response = register(machine, proof)
        assert response.status == 400, proof
        assert response.message.startswith("The identity of this worker could not be verified\n")
    assert machine.contents() == before


def test_is_registered_once_with_one_document(machine: Api, clock: Clock) -> None:
    """Who comes later with a copy of it, as from another boot, gets nothing."""
    assert register(machine).status == 200
    clock.now += timedelta(minutes=11)
    assert register(machine).status == 400


def test_is_told_to_come_back_while_a_certificate_is_out_of_reach(
    machine: Api, issuers: Issuers
) -> None:
    """B30: taskcluster PR#7673."""
    issuers.found = None
    before = machine.contents()
    response = register(machine)
    assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert machine.contents() == before
    issuers.found = BETWEEN.der
    assert register(machine).status == 200


def test_is_told_to_come_back_while_its_row_does_not_know_its_vm_id(pool: Api) -> None:
    row = a_row(deployment="deploy-abc")
    assert pool.deps.stores.workers.put_new(row)
    assert register(pool).status == 503
    learned = {**row.identity, "vmId": VM_ID.upper()}
    stored = pool.deps.stores.workers.get(KEY)
    assert stored is not None
    assert pool.deps.stores.workers.change(stored, identity=learned)
    assert register(pool).status == 200


def test_without_a_row_was_never_ordered(pool: Api) -> None:
    """Rows are written before machines are asked for."""
    assert pool.plans.note(a_plan(provider_id="azure"), Control(POOL), reasons_hash="")
    assert register(pool).status == 404
