"""A machine gets another secret: for a time both are good, and nobody has to hurry."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, a_static_definition
from tests.factories import NOW
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from tests.api.world import Api, Clock, Response
    from worker_manager.core.model import Worker

OLD, NEW, THIRD = "s" * 44, "t" * 44, "u" * 44
KEY = WorkerKey("proj-x/pool-1", "rack-1", "box-1")
WORKER = f"{BASE}/workers/proj-x%2Fpool-1/rack-1/box-1"
UNTIL = "previousSecretValidUntil"
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _worker(api: Api) -> None:
    api.ok("PUT", POOL_PATH, a_static_definition())
    body = {"expires": "2026-02-01T00:00:00Z", "providerInfo": {"staticSecret": OLD}}
    api.ok("PUT", WORKER, body)


def rotate(api: Api, secret: str | None = NEW, **also: Any) -> Any:
    body = {"providerInfo": {"staticSecret": secret}} if secret else {}
    return api.ok("POST", WORKER, {**body, **also})


def register(api: Api, secret: str) -> Response:
    body = {
        "workerPoolId": "proj-x/pool-1",
        "providerId": "static",
        "workerGroup": "rack-1",
        "workerId": "box-1",
        "workerIdentityProof": {"staticSecret": secret},
    }
    return api("POST", f"{BASE}/worker/register", body, client=None)


def valid(api: Api) -> set[str]:
    return {secret for secret in (OLD, NEW, THIRD) if register(api, secret).status == 200}


def row(api: Api) -> Worker:
    found = api.deps.stores.workers.get(KEY)
    assert found is not None
    return found


def test_both_secrets_are_good_for_a_day(api: Api, clock: Clock) -> None:
    assert rotate(api)[UNTIL] == to_wire(NOW + DAY)
    clock.advance(hours=23)
    assert valid(api) == {OLD, NEW}
    assert api.ok("GET", WORKER)[UNTIL] == to_wire(NOW + DAY)
    clock.advance(hours=1)
    assert valid(api) == {NEW}
    assert UNTIL not in api.ok("GET", WORKER)


def test_neither_secret_is_told_or_kept(api: Api) -> None:
    told = [rotate(api), api.ok("GET", WORKER), api.ok("GET", f"{WORKER.rpartition('/')[0]}")]
    text = str([told, api.contents(), api.bus.events])
    assert OLD not in text
    assert NEW not in text
    assert "sha256" not in str([told, api.bus.events])


@pytest.mark.parametrize(("seconds", "after"), [(0, {NEW}), (60, {OLD, NEW})])
def test_how_long_the_old_one_stays_may_be_said(api: Api, seconds: int, after: set[str]) -> None:
    rotate(api, previousSecretValidSeconds=seconds)
    assert valid(api) == after


def test_a_rotation_that_comes_again_changes_nothing(api: Api, clock: Clock) -> None:
    """A stock client repeats it after a lost answer; the old secret must not live on for that."""
    rotate(api, previousSecretValidSeconds=60)
    before = row(api).identity
    clock.advance(seconds=59)
    for _ in range(2):
        rotate(api, previousSecretValidSeconds=60)
    assert row(api).identity == before
    clock.advance(seconds=1)
    assert valid(api) == {NEW}


def test_the_old_secret_can_be_ended_early(api: Api) -> None:
    rotate(api)
    rotate(api, None, previousSecretValidSeconds=3600)
    assert row(api).identity["previousSecretValidUntil"] == to_wire(NOW + DAY / 24)
    rotate(api, None, previousSecretValidSeconds=0)
    assert valid(api) == {NEW}


def test_of_three_secrets_only_the_latest_two_are_good(api: Api) -> None:
    rotate(api)
    rotate(api, THIRD)
    assert valid(api) == {NEW, THIRD}
    rotate(api, NEW)
    assert valid(api) == {NEW, THIRD}


def test_what_else_changes_leaves_both_alone(api: Api) -> None:
    rotate(api)
    api.ok("POST", WORKER, {"capacity": 7})
    assert valid(api) == {OLD, NEW}


@pytest.mark.parametrize(("seconds", "status"), [(60, 200), (0, 400)])
def test_whoever_registers_with_the_old_one_just_then_is_judged_by_the_row_of_now(
    api: Api, monkeypatch: pytest.MonkeyPatch, seconds: int, status: int
) -> None:
    """Neither a refusal of who is right, nor credentials for a secret that was just ended."""
    change = api.deps.stores.workers.change

    def rotated_first(before: Worker, **changes: Any) -> Worker | None:
        monkeypatch.setattr(api.deps.stores.workers, "change", change)
        rotate(api, previousSecretValidSeconds=seconds)
        return change(before, **changes)

    monkeypatch.setattr(api.deps.stores.workers, "change", rotated_first)
    assert register(api, OLD).status == status
    assert valid(api) >= {NEW}


def test_a_rotation_ends_nobodys_credentials(api: Api) -> None:
    """The secret to renew with is another one, and belongs to the credentials."""
    renewal = register(api, OLD).body
    rotate(api, previousSecretValidSeconds=0)
    body = {
        "workerPoolId": "proj-x/pool-1",
        "workerGroup": "rack-1",
        "workerId": "box-1",
        "secret": renewal["secret"],
    }
    api.ok("POST", f"{BASE}/worker/reregister", body)


def test_after_a_removal_no_earlier_secret_is_good(api: Api) -> None:
    """taskcluster#7465: one that was removed can be set up again."""
    rotate(api)
    api.ok("DELETE", WORKER)
    body = {"expires": "2026-02-01T00:00:00Z", "providerInfo": {"staticSecret": THIRD}}
    revived = api.ok("PUT", WORKER, body)
    assert revived["state"] == "created"
    assert UNTIL not in revived
    assert valid(api) == {THIRD}
    names = [event["name"] for event in api.bus.events]
    assert names[-2:] == ["worker-removed", "worker-running"]
    assert len({event["id"] for event in api.bus.events}) == len(names)


@pytest.mark.parametrize(
    ("method", "value"), [("POST", -1), ("POST", 2_592_001), ("POST", True), ("PUT", 1)]
)
def test_a_time_that_cannot_be_is_refused_by_its_name(api: Api, method: str, value: object) -> None:
    before = api.contents()
    body = {
        "expires": "2026-02-01T00:00:00Z",
        "providerInfo": {"staticSecret": NEW},
        "previousSecretValidSeconds": value,
    }
    response = api(method, WORKER, body)
    assert (response.status, response.code) == (400, "InputValidationError")
    assert "previousSecretValidSeconds: " in response.message
    assert api.contents() == before
