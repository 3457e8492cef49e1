"""Machines of Compute Engine register with the token that Google signed for them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.clouds import a_google_launch_config, a_pool_of, with_clouds
from tests.api.world import BASE, POOL_PATH
from tests.azure_signer import a_document
from tests.factories import NOW, a_plan, a_worker
from tests.google_signer import FOREIGN, INSTANCE, PROJECT, ZONE, Published, a_token, claims
from worker_manager.core.model import Location, State, WorkerKey
from worker_manager.core.plans import Control

if TYPE_CHECKING:
    from tests.api.world import Api, Clock, Response

POOL = "proj-x/pool-1"
OTHERS: list[dict[str, Any]] = [
    {"token": "x"},
    {"token": a_token(key=FOREIGN)},
    {"token": a_token(claims({"project_id": "other"}))},
    {"token": a_token(claims(sub="1"))},
    {"token": a_token(claims(exp=int(NOW.timestamp()) - 120))},
    {"document": a_document()},
    {"document": "{}", "signature": "x"},
    {"staticSecret": "s" * 44},
]
"""Proofs that are none for this machine."""


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def pool(api: Api, published: Published) -> Api:
    with_clouds(api, published=published)
    api.ok("PUT", POOL_PATH, a_pool_of("google", a_google_launch_config()))
    return api


@pytest.fixture
def machine(pool: Api) -> Api:
    """The API with a pool and a worker that was requested."""
    row = a_worker(
        INSTANCE,
        group=ZONE,
        provider_id="google",
        location=Location(PROJECT),
        state=State.REQUESTED,
        identity={"name": "worker-1"},
    )
    assert pool.deps.stores.workers.put_new(row)
    return pool


def register(api: Api, proof: dict[str, Any] | None = None, **overrides: Any) -> Response:
    body = {
        "workerPoolId": POOL,
        "providerId": "google",
        "workerGroup": ZONE,
        "workerId": INSTANCE,
        "workerIdentityProof": proof or {"token": a_token()},
        **overrides,
    }
    return api("POST", f"{BASE}/worker/register", body, client=None)


def test_gets_credentials_and_the_config_of_its_launch_config(machine: Api) -> None:
    response = register(machine)
    assert response.status == 200
    assert response.body["workerConfig"] == {"speed": 9}
    client_id = response.body["credentials"]["clientId"]
    assert client_id == f"worker/google/{POOL}/{ZONE}/{INSTANCE}"
    row = machine.deps.stores.workers.get(WorkerKey(POOL, ZONE, INSTANCE))
    assert row is not None
    assert row.state is State.RUNNING


def test_with_any_other_proof_hears_one_and_the_same_refusal(machine: Api) -> None:
    before = machine.contents()
    for proof in OTHERS:
        response = register(machine, proof)
        assert response.status == 400, proof
        assert response.message.startswith("The identity of this worker could not be verified\n")
    assert machine.contents() == before


def test_is_registered_once_with_one_token(machine: Api, clock: Clock) -> None:
    """Who comes later with a copy of it, as from another boot, gets nothing."""
    assert register(machine).status == 200
    clock.now += timedelta(minutes=11)
    assert register(machine).status == 400


def test_is_told_to_come_back_while_googles_keys_are_out_of_reach(
    machine: Api, published: Published, clock: Clock
) -> None:
    """B30: taskcluster PR#7673."""
    published.fails = True
    before = machine.contents()
    response = register(machine)
    assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert machine.contents() == before
    published.fails = False
    clock.advance(seconds=5)
    assert register(machine).status == 200


def test_that_is_faster_than_its_row_is_told_to_come_back(pool: Api) -> None:
    plan = a_plan(provider_id="google")
    assert pool.plans.note(plan, Control(POOL), reasons_hash="")
    assert register(pool).status == 503
    assert register(pool, {"token": a_token(key=FOREIGN)}).status == 404
    assert register(pool, workerId="1").status == 404
