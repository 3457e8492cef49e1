"""Credentials renewed with a secret, each secret once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, TOKEN, a_static_definition
from tests.factories import NOW, a_worker
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.identity.static import hash_secret
from worker_manager.taskcluster.credentials import Issuer

if TYPE_CHECKING:
    from tests.api.world import Api, Clock, Response

KEY = WorkerKey("proj-x/pool-1", "us-east-1", "i-1")
PATH = f"{BASE}/worker/reregister"
FIRST = "f" * 44
GENERIC = "Could not generate credentials for this secret"


def a_body(secret: str = FIRST, **overrides: Any) -> dict[str, Any]:
    return {
        "workerPoolId": KEY.pool_id,
        "workerGroup": KEY.group,
        "workerId": KEY.worker_id,
        "secret": secret,
        **overrides,
    }


def row(api: Api) -> Worker:
    found = api.deps.stores.workers.get(KEY)
    assert found is not None
    return found


def renew(api: Api, secret: str = FIRST, **overrides: Any) -> Response:
    return api("POST", PATH, a_body(secret, **overrides))


@pytest.fixture(autouse=True)
def _worker(api: Api) -> None:
    assert api.deps.stores.workers.put_new(a_worker(secret_hash=hash_secret(FIRST, "salt")))


def test_each_secret_leads_to_the_next(api: Api, clock: Clock) -> None:
    secret, seen = FIRST, {FIRST}
    for _ in range(4):
        clock.advance(hours=90)
        answer = api.ok("POST", PATH, a_body(secret))
        assert set(answer) == {"expires", "credentials", "secret"}
        secret = answer["secret"]
        assert secret not in seen
        seen.add(secret)


def test_credentials_last_as_long_as_the_row_says(api: Api) -> None:
    answer = api.ok("POST", PATH, a_body())
    assert answer["expires"] == "2026-01-06T03:04:05.000Z"
    assert answer["credentials"]["clientId"] == "worker/aws/proj-x/pool-1/us-east-1/i-1"
    worker = row(api)
    assert worker.deadline is not None
    assert (worker.deadline - NOW).days == 4
    assert worker.modified < NOW
    assert api.bus.events == []


def test_a_lost_answer_is_given_again(api: Api, clock: Clock) -> None:
    first = api.ok("POST", PATH, a_body())
    before = api.contents()
    clock.advance(minutes=9)
    again = api.ok("POST", PATH, a_body())
    assert (again["secret"], again["expires"]) == (first["secret"], first["expires"])
    assert api.contents() == before


def test_a_used_secret_is_worth_nothing_later(api: Api, clock: Clock) -> None:
    renew(api)
    clock.advance(minutes=11)
    response = renew(api)
    assert (response.status, response.code) == (400, "InputError")
    assert response.message.startswith(GENERIC)


def test_a_used_secret_is_worth_nothing_once_the_next_one_was_used(api: Api) -> None:
    renew(api, renew(api).body["secret"])
    assert renew(api).status == 400


def test_no_secret_is_stored(api: Api) -> None:
    secret = renew(api).body["secret"]
    assert all(secret not in item and FIRST not in item for item in api.contents())


def test_the_next_secret_cannot_be_derived_from_the_table_alone(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew(api)
    object.__setattr__(api.deps, "issuer", Issuer("test/issuer", TOKEN))
    assert renew(api).message.startswith(GENERIC)


def test_whoever_does_not_know_the_secret_learns_nothing(api: Api) -> None:
    before = api.contents()
    for overrides in (
        {"secret": "x" * 44},
        {"workerId": "i-2"},
        {"workerPoolId": "proj-x/unknown"},
    ):
        response = api("POST", PATH, a_body(**overrides))
        assert (response.status, response.code) == (400, "InputError")
        assert response.message.startswith(GENERIC)
    assert api.contents() == before


@pytest.mark.parametrize("state", [State.REQUESTED, State.STOPPING, State.STOPPED])
def test_a_worker_that_does_not_run_is_refused_after_its_secret_was_checked(
    api: Api, state: State
) -> None:
    assert api.deps.stores.workers.change(row(api), state=state, modified=NOW)
    before = api.contents()
    assert "is not running" in renew(api).message
    assert renew(api, "x" * 44).message.startswith(GENERIC)
    assert api.contents() == before


@pytest.mark.parametrize("field", ["deadline", "expires"])
def test_a_worker_that_expired_is_refused(api: Api, clock: Clock, field: str) -> None:
    assert api.deps.stores.workers.change(row(api), **{field: clock.now})
    clock.advance(seconds=1)
    before = api.contents()
    assert "has expired" in renew(api).message
    assert api.contents() == before


def test_a_worker_without_a_secret_is_refused(api: Api) -> None:
    assert api.deps.stores.workers.change(row(api), secret_hash=None)
    assert renew(api).message.startswith(GENERIC)


def test_a_static_worker_gets_the_lifetime_of_its_pool(api: Api) -> None:
    """Q19: not always four days."""
    config = {"lifecycle": {"reregistrationTimeout": 3600}}
    api.ok("PUT", POOL_PATH, a_static_definition(config=config))
    assert api.deps.stores.workers.change(row(api), provider_id="static")
    assert renew(api).body["expires"] == "2026-01-02T04:04:05.000Z"


def test_two_at_once_get_the_same_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    change = api.deps.stores.workers.change
    calls: list[dict[str, Any]] = []

    def raced(before: Worker, **changes: Any) -> Worker | None:
        calls.append(changes)
        if len(calls) == 1:
            assert change(before, **changes)
            return None
        return change(before, **changes)

    monkeypatch.setattr(api.deps.stores.workers, "change", raced)
    first = renew(api).body
    assert len(calls) == 1
    assert renew(api).body["secret"] == first["secret"]


def test_only_who_may_renew_this_worker_may_try(api: Api) -> None:
    response = api("POST", PATH, a_body(), client="test/poor")
    assert response.status == 403
    assert "worker-manager:reregister-worker:proj-x/pool-1/us-east-1/i-1" in response.message
    assert response.body["requestInfo"]["payload"] == "(OMITTED)"


@pytest.mark.parametrize("secret", [None, "short", "x" * 45, "ü" * 44])
def test_a_secret_that_cannot_be_one_is_refused(api: Api, secret: Any) -> None:
    response = api("POST", PATH, a_body(secret=secret))
    assert response.code == "InputValidationError"
    assert "secret: " in response.message
