"""Machines that register before their row is written, or with a body that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, SIGNER, Signer
from tests.factories import a_plan, a_worker
from worker_manager.core.model import State
from worker_manager.core.plans import Control

if TYPE_CHECKING:
    from tests.api.world import Api, Response


def register(api: Api, **overrides: Any) -> Response:
    body = {
        "workerPoolId": "proj-x/pool-1",
        "providerId": "aws",
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "workerIdentityProof": SIGNER.proof(),
        **overrides,
    }
    return api("POST", f"{BASE}/worker/register", body, client=None)


@pytest.fixture
def launching(pool: Api) -> Api:
    """The API with a pool whose plan is open."""
    assert pool.plans.note(a_plan(), Control("proj-x/pool-1"), reasons_hash="")
    return pool


def test_is_told_to_come_back(launching: Api) -> None:
    before = launching.contents()
    response = register(launching)
    assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert launching.contents() == before


def test_must_still_prove_to_be_a_machine(launching: Api) -> None:
    assert register(launching, workerIdentityProof=Signer().proof()).status == 404
    assert register(launching, workerId="i-2").status == 404
    assert register(launching, workerGroup="us-west-2").status == 404


def test_whose_plan_is_of_another_provider_is_a_404(pool: Api) -> None:
    plan = a_plan(provider_id="aws-2")
    assert pool.plans.note(plan, Control("proj-x/pool-1"), reasons_hash="")
    assert register(pool).status == 404


def test_whose_row_comes_while_its_plan_is_closed_is_registered(
    pool: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = pool.deps.stores.pools.get_with_control

    def closed_meanwhile(pool_id: str) -> Any:
        pool.deps.stores.workers.put_new(a_worker(state=State.REQUESTED))
        return read(pool_id)

    monkeypatch.setattr(pool.deps.stores.pools, "get_with_control", closed_meanwhile)
    assert register(pool).status == 200


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"workerId": "a.b"}, "workerId: "),
        ({"workerPoolId": "x"}, "workerPoolId: "),
        ({"workerIdentityProof": {}}, "workerIdentityProof"),
        ({"workerIdentityProof": {"document": 1, "signature": "x"}}, "workerIdentityProof"),
        ({"workerIdentityProof": {"staticSecret": "short"}}, "workerIdentityProof"),
        ({"systemBootTime": "yesterday"}, "systemBootTime: must be a date-time"),
        ({"extra": 1}, "extra: unknown field"),
    ],
)
def test_a_body_that_is_wrong_is_refused_by_field_name(
    pool: Api, change: dict[str, Any], told: str
) -> None:
    before = pool.contents()
    response = register(pool, **change)
    assert (response.status, response.code) == (400, "InputValidationError")
    assert told in response.message
    assert pool.contents() == before
