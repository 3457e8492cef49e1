"""An action done to many: a page at a time, so many a minute, and until somebody stops it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.action_tables import an_action
from tests.api.registry_world import BASE, POOL, TYPE, RegistryApi
from tests.api.world import TOKEN
from worker_manager.actions.declared import to_json
from worker_manager.api import bulk_runs
from worker_manager.core.ids import derived_slugid
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

BULK = f"{BASE}/action-runs"
ID = derived_slugid("bulk")
RUN = "worker-registry:run-action"
LOOKS = ("worker-registry:search", "queue:list-workers:*")


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    scopes = (*LOOKS, f"{RUN}:quarantine:{POOL}/rack-1/m-1")
    clients = [Client("test/some", TOKEN, scopes), Client("test/looks", TOKEN, LOOKS)]
    clients.append(Client("test/admin", TOKEN, (*LOOKS, f"{RUN}:*")))
    api = RegistryApi(tables, clients=clients)
    for number in range(3):
        api.see(f"m-{number}")
    return api


def asks(**more: Any) -> dict[str, Any]:
    return {"requestId": ID, "action": "quarantine", "filter": {"taskQueueId": POOL}, **more}


def post(api: RegistryApi, body: dict[str, Any], **how: Any) -> dict[str, Any]:
    answer: dict[str, Any] = api.ok("POST", BULK, body, **how)
    return answer


def states(api: RegistryApi) -> list[str]:
    runs, _ = api.runs.of_queue(POOL, limit=99)
    return [str(run.state) for run in runs]


def test_each_worker_gets_a_run_and_asking_again_makes_no_other(api: RegistryApi) -> None:
    assert "runId" not in post(api, asks(dryRun=True))["runs"][0]
    assert states(api) == []
    first = post(api, asks(limit=2, reason="noisy"))
    assert [one["workerId"] for one in first["runs"]] == ["m-0", "m-1"]
    assert post(api, asks(limit=2, reason="noisy")) == first
    token = first["continuationToken"]
    rest = post(api, asks(continuationToken=token, reason="noisy"))
    assert [one["workerId"] for one in rest["runs"]] == ["m-2"]
    assert "continuationToken" not in rest

    runs, _ = api.runs.of_queue(POOL, limit=99)
    assert {run.run_id for run in runs} == {one["runId"] for one in (*first["runs"], *rest["runs"])}
    assert {run.bulk_id for run in runs} == {ID}
    assert api("POST", BULK, asks(reason="other")).code == "RequestConflict"


def test_whom_it_cannot_be_done_to_is_told_with_why(api: RegistryApi) -> None:
    declared = [to_json(an_action("reimage")), to_json(an_action("clean", is_bulk=True))]
    api.ok("PUT", f"{BASE}{TYPE}", {"actions": declared})

    def refused(**more: Any) -> set[str | None]:
        answer = post(api, asks(**more), client=more.pop("client", "test/root"))
        return {one.get("refused") for one in answer["runs"]}

    assert refused(requestId=derived_slugid(1), action="reimage") == {
        "action: 'reimage' is not done to many at once"
    }
    assert refused(requestId=derived_slugid(2), action="dance") == {"there is no action 'dance'"}
    some = post(api, asks(), client="test/some")["runs"]
    assert [one.get("refused") for one in some] == [
        "your scopes do not allow it",
        None,
        "your scopes do not allow it",
    ]
    clean = post(api, asks(requestId=derived_slugid(3), action="clean"))["runs"]
    assert ["has an open run" in one.get("refused", "") for one in clean] == [False, True, False]


def test_a_minute_has_only_so_many_runs(api: RegistryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_runs, "MOST_A_MINUTE", 2)
    first = post(api, asks())
    assert (len(first["runs"]), first["retryAfter"]) == (2, 60 - api.clock.now.second)
    again = asks(continuationToken=first["continuationToken"])
    assert post(api, again)["runs"] == []
    api.clock.advance(minutes=1)
    assert [one["workerId"] for one in post(api, again)["runs"]] == ["m-2"]


def test_a_stopped_bulk_cancels_what_is_open_and_goes_no_further(api: RegistryApi) -> None:
    first = post(api, asks(limit=2), client="test/admin")
    stop = f"{BULK}/stop"

    assert api("POST", stop, {"requestId": ID}, client="test/looks").status == 403
    assert api.ok("POST", stop, {"requestId": ID}, client="test/root")["cancelled"] == 2
    assert api.ok("POST", stop, {"requestId": ID}, client="test/admin")["cancelled"] == 0
    more = asks(limit=2, continuationToken=first["continuationToken"])
    assert api("POST", BULK, more, client="test/admin").code == "RequestConflict"
    assert states(api) == ["cancelled"] * 2
    assert api("POST", stop, {"requestId": derived_slugid("none")}).status == 404


def test_a_bulk_that_takes_long_to_stop_is_stopped_with_several_requests(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(api, asks())
    monkeypatch.setattr(bulk_runs, "PATIENCE", timedelta())
    stop = {"requestId": ID}
    answers = [api.ok("POST", f"{BULK}/stop", stop) for _ in range(3)]
    assert answers == [
        {"cancelled": 1, "retryAfter": 0},
        {"cancelled": 1, "retryAfter": 0},
        {"cancelled": 1},
    ]
