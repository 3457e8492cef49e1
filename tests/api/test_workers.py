"""Workers read, listed, removed, and asked whether they should go."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, a_definition
from tests.factories import NOW, REGION, a_worker
from worker_manager.api import workers
from worker_manager.api.workers import REMOVED
from worker_manager.core.model import State, Surplus, Worker, WorkerKey
from worker_manager.core.surplus import NEEDED, OVER_CAPACITY, SPOT_INTERRUPTION
from worker_manager.queues import NotSentError
from worker_manager.store.places import Place
from worker_manager.taskcluster.credentials import worker_client_id

if TYPE_CHECKING:
    from tests.api.world import Api, Clock
    from worker_manager.store.transactions import Writes

POOL = f"{BASE}/workers/proj-x%2Fpool-1"
PATH = f"{POOL}/us-east-1/i-1"
ITSELF = worker_client_id(a_worker().key, provider_id="aws")


def put(api: Api, *workers: Worker) -> None:
    for worker in workers:
        assert api.deps.stores.workers.put_new(worker)


def row(api: Api, worker_id: str = "i-1") -> Worker:
    found = api.deps.stores.workers.get(WorkerKey("proj-x/pool-1", "us-east-1", worker_id))
    assert found is not None
    return found


class TestReading:
    def test_a_worker_is_shown_without_what_is_private(self, api: Api) -> None:
        put(api, a_worker(secret_hash="sha256$x$y", identity={"privateIp": "10.0.0.1"}))
        assert api.ok("GET", PATH) == {
            "workerPoolId": "proj-x/pool-1",
            "workerGroup": "us-east-1",
            "workerId": "i-1",
            "providerId": "aws",
            "created": "2026-01-02T02:04:05.000Z",
            "expires": "2026-01-10T02:04:05.000Z",
            "lastModified": "2026-01-02T02:04:05.000Z",
            "lastChecked": "2026-01-02T02:04:05.000Z",
            "state": "running",
            "capacity": 1,
            "launchConfigId": "lc-a",
        }

    def test_it_was_checked_when_its_region_was_last_listed(self, api: Api) -> None:
        put(api, a_worker())
        began = NOW - timedelta(minutes=1)
        api.deps.stores.places.believed("aws", Place(REGION), began=began, machines=1)
        shown = api.ok("GET", PATH)
        assert shown["lastChecked"] == "2026-01-02T03:03:05.000Z"
        assert shown["expires"] == "2026-01-10T03:03:05.000Z"

    def test_a_list_from_before_it_existed_did_not_check_it(self, api: Api) -> None:
        put(api, a_worker())
        began = NOW - timedelta(hours=2)
        api.deps.stores.places.believed("aws", Place(REGION), began=began, machines=1)
        assert api.ok("GET", PATH)["lastChecked"] == "2026-01-02T02:04:05.000Z"

    def test_without_a_launch_config_the_field_is_absent(self, api: Api) -> None:
        put(api, a_worker(launch_config_id=None))
        assert "launchConfigId" not in api.ok("GET", PATH)

    def test_a_worker_that_is_not_there_is_a_404(self, api: Api, clock: Clock) -> None:
        assert api("GET", PATH).status == 404
        put(api, a_worker(state=State.STOPPED))
        clock.advance(days=9)
        assert api("GET", PATH).status == 404

    def test_a_stray_colon_after_the_pool_id_is_forgiven(self, api: Api) -> None:
        """taskcluster#6109."""
        put(api, a_worker())
        api.ok("GET", f"{POOL}:/us-east-1/i-1")
        api.ok("GET", f"{POOL}%3A/us-east-1")
        missing = api("GET", f"{POOL}:/us-east-1/i-2")
        assert missing.body["requestInfo"]["method"] == "workerWithColon"


class TestListing:
    @pytest.fixture(autouse=True)
    def _workers(self, pool: Api) -> None:
        put(
            pool,
            a_worker("i-1"),
            a_worker("i-2", state=State.STOPPED, modified=NOW),
            a_worker("i-3", launch_config_id="lc_b"),
            a_worker("i-4", group="us-west-2", location="us-west-2"),
            a_worker("i-5", pool_id="proj-x/pool-2"),
        )

    def listed(self, api: Api, path: str = POOL, query: str = "") -> list[str]:
        return [one["workerId"] for one in api.ok("GET", path, query=query)["workers"]]

    def test_a_pool_shows_its_own_workers(self, pool: Api) -> None:
        assert self.listed(pool) == ["i-1", "i-2", "i-3", "i-4"]

    def test_a_group_shows_its_own_workers(self, pool: Api) -> None:
        assert self.listed(pool, f"{POOL}/us-west-2") == ["i-4"]
        assert self.listed(pool, f"{POOL}/us-west") == []

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("state=stopped", ["i-2"]),
            ("state=running", ["i-1", "i-3", "i-4"]),
            ("state=standalone", []),
            ("launchConfigId=lc_b", ["i-3"]),
            ("launchConfigId=lc_b&state=stopped", []),
        ],
    )
    def test_filters_leave_only_what_they_name(
        self, pool: Api, query: str, expected: list[str]
    ) -> None:
        assert self.listed(pool, query=query) == expected

    @pytest.mark.parametrize("path", [POOL, f"{POOL}/us-east-1"])
    def test_pages_follow_each_other_to_the_end(self, pool: Api, path: str) -> None:
        seen: list[str] = []
        token = ""
        while True:
            page = pool.ok("GET", path, query=f"limit=1{token}")
            assert len(page["workers"]) == 1
            seen.append(page["workers"][0]["workerId"])
            if "continuationToken" not in page:
                break
            token = f"&continuationToken={page['continuationToken']}"
        assert seen == self.listed(pool, path)

    def test_filters_apply_before_a_page_is_cut(self, pool: Api) -> None:
        page = pool.ok("GET", POOL, query="limit=1&launchConfigId=lc_b")
        assert [one["workerId"] for one in page["workers"]] == ["i-3"]

    def test_a_filter_that_lets_nothing_through_costs_only_so_much(
        self, pool: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workers, "MOST_READ", 3)
        page = pool.ok("GET", POOL, query="state=requested")
        assert page["workers"] == []
        query = f"state=requested&continuationToken={page['continuationToken']}"
        assert pool.ok("GET", POOL, query=query) == {"workers": []}

    @pytest.mark.parametrize("token", ["x", "dXMtZWFzdC0x", "dXMtd2VzdC0yI2ktNA"])
    def test_a_token_that_does_not_fit_is_refused(self, pool: Api, token: str) -> None:
        path = f"{POOL}/us-east-1"
        response = pool("GET", path, query=f"continuationToken={token}")
        assert (response.status, response.code) == (400, "InputError")

    def test_a_pool_that_does_not_exist_is_a_404_and_a_group_is_empty(self, pool: Api) -> None:
        missing = f"{BASE}/workers/proj-x%2Fmissing"
        assert pool("GET", missing).status == 404
        assert pool.ok("GET", f"{missing}/g") == {"workers": []}

    def test_a_state_that_does_not_exist_is_refused(self, pool: Api) -> None:
        assert pool("GET", POOL, query="state=lost").code == "InvalidRequestArguments"


class TestRemoving:
    @pytest.mark.parametrize(
        ("surplus", "reason", "by"),
        [
            (Surplus(True, OVER_CAPACITY, NOW), OVER_CAPACITY, "worker-manager"),
            (Surplus(True, SPOT_INTERRUPTION, NOW), SPOT_INTERRUPTION, "cloud"),
            (Surplus(False, NEEDED, NOW), REMOVED, ITSELF),
            (None, REMOVED, ITSELF),
        ],
    )
    def test_a_worker_that_goes_as_it_was_told_ends_for_the_reason_it_was_told(
        self, api: Api, surplus: Surplus | None, reason: str, by: str
    ) -> None:
        put(api, a_worker(surplus=surplus))
        api.remove_itself(row(api))
        assert (row(api).stop_reason, row(api).stopped_by) == (reason, by)
        assert {event["detail"]["reason"] for event in api.bus.events} == {reason}

    def test_who_removes_a_worker_that_was_told_to_go_is_still_named(self, api: Api) -> None:
        put(api, a_worker(surplus=Surplus(True, OVER_CAPACITY, NOW)))
        api.ok("DELETE", PATH)
        assert (row(api).stop_reason, row(api).stopped_by) == (REMOVED, "test/root")

    @pytest.mark.parametrize("state", [State.REQUESTED, State.RUNNING])
    def test_a_cloud_worker_stops_and_its_delete_is_asked_for_at_once(
        self, api: Api, state: State
    ) -> None:
        """B08: taskcluster#8574, the delete is submitted in the call itself."""
        put(api, a_worker(state=state))
        assert api.ok("DELETE", PATH) == {}
        worker = row(api)
        assert worker.state is State.STOPPING
        assert worker.stopping_since == worker.modified == NOW
        assert worker.stop_reason == "workerManager.removeWorker API call"
        assert worker.unsent == ()
        assert api.bus.names() == ["worker-removed", "worker-stopping"]
        assert api.bus.events[0]["detail"]["launchConfigId"] == "lc-a"
        [message] = api.advance.messages
        assert message.body == {
            "kind": "terminate",
            "pool": "proj-x/pool-1",
            "group": "us-east-1",
            "worker": "i-1",
        }

    def test_removing_again_asks_again_and_tells_nothing_new(self, api: Api) -> None:
        put(api, a_worker())
        api.ok("DELETE", PATH)
        before = row(api)
        api.ok("DELETE", PATH)
        assert row(api) == before
        assert len(api.advance.messages) == 2
        assert api.bus.names() == ["worker-removed", "worker-stopping"]

    def test_a_queue_that_takes_nothing_is_a_503_and_the_next_try_succeeds(self, api: Api) -> None:
        put(api, a_worker())
        api.advance.error = NotSentError("refused")
        assert api("DELETE", PATH).status == 503
        api.advance.error = None
        api.ok("DELETE", PATH)
        assert len(api.advance.messages) == 1

    def test_an_event_that_cannot_be_published_stays_on_the_row(self, api: Api) -> None:
        put(api, a_worker())
        api.bus.refuses = True
        api.ok("DELETE", PATH)
        assert [event["name"] for event in row(api).unsent] == ["worker-removed", "worker-stopping"]

    def test_a_static_worker_is_stopped_at_once(self, api: Api) -> None:
        put(api, a_worker(provider_id="static", location=""))
        api.ok("DELETE", PATH)
        assert row(api).state is State.STOPPED
        assert api.advance.messages == []
        assert api.bus.names() == ["worker-removed"]

    def test_a_stopped_worker_stays_as_it_is(self, api: Api) -> None:
        put(api, a_worker(state=State.STOPPED, modified=NOW))
        before = api.contents()
        assert api.ok("DELETE", PATH) == {}
        assert api.contents() == before
        assert api.advance.messages == []

    def test_a_worker_that_is_not_there_is_a_404(self, api: Api) -> None:
        assert api("DELETE", PATH).status == 404

    def test_a_provider_that_is_not_there_is_a_404_that_names_it(self, api: Api) -> None:
        put(api, a_worker(provider_id="gone"))
        before = api.contents()
        response = api("DELETE", PATH)
        assert response.status == 404
        assert "'gone'" in response.message
        assert api.contents() == before

    def test_a_change_in_between_is_not_overwritten(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(api, a_worker(state=State.REQUESTED))
        workers = api.deps.stores.workers
        change_with = workers.change_with
        calls = []

        def raced(before: Worker, also: Writes, **changes: Any) -> Worker | None:
            calls.append(before.state)
            if len(calls) == 1:
                assert workers.change(before, state=State.RUNNING, registered=NOW)
            return change_with(before, also, **changes)

        monkeypatch.setattr(workers, "change_with", raced)
        api.ok("DELETE", PATH)
        assert calls == [State.REQUESTED, State.RUNNING]
        assert row(api).registered == NOW


class TestLettingGo:
    def test_before_any_decision_nobody_has_to_go(self, api: Api) -> None:
        put(api, a_worker())
        assert api.ok("GET", f"{PATH}/should-terminate") == {"terminate": False, "reason": "none"}

    @pytest.mark.parametrize(
        ("terminate", "reason"),
        [(True, "over capacity"), (True, "launch config archived"), (False, "needed")],
    )
    def test_the_standing_decision_is_told(self, api: Api, terminate: bool, reason: str) -> None:
        put(api, a_worker(surplus=Surplus(terminate, reason, NOW)))
        answer = api.ok("GET", f"{PATH}/should-terminate")
        assert answer == {"terminate": terminate, "reason": reason}

    @pytest.mark.parametrize("state", [State.STOPPING, State.STOPPED])
    def test_who_is_being_stopped_should_go(self, api: Api, state: State) -> None:
        put(api, a_worker(state=state, stop_reason="removed", modified=NOW))
        answer = api.ok("GET", f"{PATH}/should-terminate")
        assert answer == {"terminate": True, "reason": "removed"}

    def test_it_costs_one_read(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        put(api, a_worker())
        client = api.tables.connection.client
        calls: list[str] = []
        make = client._make_api_call

        def counted(name: str, *args: Any) -> Any:
            calls.append(name)
            return make(name, *args)

        monkeypatch.setattr(client, "_make_api_call", counted)
        api.ok("GET", f"{PATH}/should-terminate")
        assert calls == ["GetItem"]

    def test_a_worker_that_is_not_there_is_a_404(self, api: Api) -> None:
        assert api("GET", f"{PATH}/should-terminate").status == 404


def test_workers_of_a_moved_pool_are_removed_by_their_own_provider(pool: Api) -> None:
    put(pool, a_worker())
    pool.ok("POST", POOL_PATH, a_definition(providerId="aws-2"))
    pool.ok("DELETE", PATH)
    assert len(pool.advance.messages) == 1
    assert row(pool) == replace(row(pool), provider_id="aws")
