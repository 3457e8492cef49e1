"""Workers set up by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, a_static_definition
from tests.factories import NOW, a_worker
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.identity.static import matches

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

SECRET = "s" * 44
OTHER = "t" * 44
PATH = f"{BASE}/workers/proj-x%2Fpool-1/rack-1/box-1"
KEY = WorkerKey("proj-x/pool-1", "rack-1", "box-1")


def a_body(**overrides: Any) -> dict[str, Any]:
    return {
        "expires": "2026-02-01T00:00:00.000Z",
        "capacity": 2,
        "providerInfo": {"staticSecret": SECRET},
        **overrides,
    }


def row(api: Api) -> Worker:
    found = api.deps.stores.workers.get(KEY)
    assert found is not None
    return found


@pytest.fixture
def racks(api: Api) -> Api:
    """The API with a static pool."""
    api.ok("PUT", POOL_PATH, a_static_definition())
    api.bus.events.clear()
    return api


class TestCreating:
    def test_a_worker_is_created_and_does_not_run_before_it_registers(self, racks: Api) -> None:
        created = racks.ok("PUT", PATH, a_body())
        assert created == {
            "workerPoolId": "proj-x/pool-1",
            "workerGroup": "rack-1",
            "workerId": "box-1",
            "providerId": "static",
            "created": "2026-01-02T03:04:05.000Z",
            "expires": "2026-02-01T00:00:00.000Z",
            "lastModified": "2026-01-02T03:04:05.000Z",
            "lastChecked": "2026-01-02T03:04:05.000Z",
            "state": "created",
            "capacity": 2,
        }
        assert racks.ok("GET", PATH) == created
        assert racks.bus.events == []

    def test_its_secret_is_kept_as_a_hash_only(self, racks: Api) -> None:
        """Q5."""
        racks.ok("PUT", PATH, a_body())
        assert all(SECRET not in item for item in racks.contents())

    def test_capacity_is_one_unless_given(self, racks: Api) -> None:
        body = a_body()
        del body["capacity"]
        assert racks.ok("PUT", PATH, body)["capacity"] == 1

    def test_the_same_again_is_the_same_answer(self, racks: Api) -> None:
        created = racks.ok("PUT", PATH, a_body())
        before = racks.contents()
        assert racks.ok("PUT", PATH, a_body()) == created
        assert racks.contents() == before

    @pytest.mark.parametrize(
        "change",
        [
            {"providerInfo": {"staticSecret": OTHER}},
            {"capacity": 3},
            {"expires": "2026-02-02T00:00:00Z"},
        ],
    )
    def test_one_that_differs_is_a_conflict(self, racks: Api, change: dict[str, Any]) -> None:
        """Q6: it must not look as if the new secret counted."""
        racks.ok("PUT", PATH, a_body())
        before = racks.contents()
        response = racks("PUT", PATH, a_body(**change))
        assert (response.status, response.code) == (409, "RequestConflict")
        assert racks.contents() == before

    def test_a_stopped_one_begins_anew_with_the_new_secret(self, racks: Api, clock: Clock) -> None:
        racks.ok("PUT", PATH, a_body())
        racks.ok("DELETE", PATH)
        clock.advance(hours=1)
        racks.ok("PUT", PATH, a_body(providerInfo={"staticSecret": OTHER}, capacity=1))
        worker = row(racks)
        assert worker.state is State.CREATED
        assert worker.created == clock.now
        assert (worker.registered, worker.registrations) == (None, ())
        assert (worker.stop_reason, worker.stopped_by) == (None, None)
        assert worker.stopping_since is None
        assert matches(OTHER, worker.identity["staticSecretHash"])
        assert list(racks.deps.stores.workers.live("proj-x/pool-1")) != []

    def test_checks_come_in_the_documented_order(self, api: Api) -> None:
        past = a_body(expires="2025-01-01T00:00:00Z")
        assert api("PUT", PATH, past).status == 404
        api.ok("PUT", POOL_PATH, a_static_definition())
        assert api("PUT", PATH, past).code == "InputError"

    def test_a_secret_is_needed(self, racks: Api) -> None:
        body = a_body()
        del body["providerInfo"]
        response = racks("PUT", PATH, body)
        assert (response.status, response.code) == (400, "InputError")
        assert "providerInfo" in response.message

    def test_cloud_pools_have_no_workers_made_by_hand(self, pool: Api) -> None:
        before = pool.contents()
        for method in ("PUT", "POST"):
            response = pool(method, PATH, a_body())
            assert (response.status, response.code) == (400, "InputError")
        assert pool.contents() == before

    def test_a_worker_of_the_cloud_of_that_name_is_a_conflict(self, racks: Api) -> None:
        racks.deps.stores.workers.put_new(a_worker("box-1", group="rack-1", state=State.STOPPED))
        assert racks("PUT", PATH, a_body()).status == 409

    def test_whoever_comes_second_at_the_same_moment_is_compared(
        self, racks: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put_new = racks.deps.stores.workers.put_new

        def late(worker: Worker) -> bool:
            put_new(worker)
            return False

        monkeypatch.setattr(racks.deps.stores.workers, "put_new", late)
        racks.ok("PUT", PATH, a_body())

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            ({}, "expires: field required"),
            (a_body(expires="tomorrow"), "expires: must be a date-time"),
            (a_body(expires=1_800_000_000), "expires: must be a date-time"),
            (a_body(expires="2026-13-01T00:00:00Z"), "expires: is not a time that exists"),
            (a_body(expires="0001-01-01T00:00:00+10:00"), "expires: is not a time that exists"),
            (a_body(expires="2026-02-01T00:00:00"), "expires: must be a date-time"),
            (a_body(capacity=0), "capacity: "),
            (a_body(providerInfo={}), "providerInfo.staticSecret: field required"),
            (a_body(providerInfo={"staticSecret": "x" * 43}), "providerInfo.staticSecret: "),
            (a_body(state="running"), "state: unknown field"),
        ],
    )
    def test_a_body_that_is_wrong_is_refused_by_field_name(
        self, racks: Api, body: dict[str, Any], told: str
    ) -> None:
        before = racks.contents()
        response = racks("PUT", PATH, body)
        assert (response.status, response.code) == (400, "InputValidationError")
        assert told in response.message
        assert racks.contents() == before

    def test_no_error_repeats_the_secret(self, racks: Api) -> None:
        response = racks("PUT", PATH, a_body(capacity=0))
        assert response.body["requestInfo"]["payload"]["providerInfo"] == {
            "staticSecret": "(OMITTED)"
        }
        assert SECRET not in str(response.body)

    def test_names_that_are_too_long_are_refused(self, racks: Api) -> None:
        response = racks("PUT", f"{PATH}{'x' * 38}", a_body())
        assert response.code == "InvalidRequestArguments"


class TestChanging:
    def test_what_is_given_is_changed_and_the_rest_stays(self, racks: Api, clock: Clock) -> None:
        """Q19: without providerInfo the secret stays."""
        racks.ok("PUT", PATH, a_body())
        clock.advance(minutes=1)
        updated = racks.ok("POST", PATH, {"expires": "2026-03-01T00:00:00.000Z"})
        assert updated["expires"] == "2026-03-01T00:00:00.000Z"
        assert updated["capacity"] == 2
        assert updated["lastModified"] == "2026-01-02T03:05:05.000Z"
        assert matches(SECRET, row(racks).identity["staticSecretHash"])

    def test_capacity_and_secret_can_change(self, racks: Api) -> None:
        racks.ok("PUT", PATH, a_body())
        racks.ok("POST", PATH, a_body(capacity=5, providerInfo={"staticSecret": OTHER}))
        assert row(racks).capacity == 5
        assert matches(OTHER, row(racks).identity["staticSecretHash"])

    def test_nothing_need_be_given(self, racks: Api) -> None:
        created = racks.ok("PUT", PATH, a_body())
        assert racks.ok("POST", PATH, {}) == created
        assert racks.ok("POST", PATH, {"capacity": 7}) == {**created, "capacity": 7}

    def test_an_end_in_the_past_ends_it_now(self, racks: Api) -> None:
        racks.ok("PUT", PATH, a_body())
        ended = racks.ok("POST", PATH, {"expires": "2025-01-01T00:00:00.000Z"})
        assert (ended["state"], ended["expires"]) == ("stopped", "2025-01-01T00:00:00.000Z")
        assert [event["name"] for event in racks.bus.events] == ["worker-stopped"]
        assert (row(racks).stop_reason, row(racks).unsent) == ("expired", ())

    def test_it_ends_also_while_the_bus_is_away(self, racks: Api) -> None:
        racks.ok("PUT", PATH, a_body())
        racks.bus.refuses = True
        racks.ok("POST", PATH, {"expires": "2025-01-01T00:00:00.000Z"})
        assert [event["name"] for event in row(racks).unsent] == ["worker-stopped"]

    def test_what_ended_does_not_end_again(self, racks: Api) -> None:
        racks.ok("PUT", PATH, a_body())
        for _ in range(2):
            racks.ok("POST", PATH, {"expires": "2025-01-01T00:00:00.000Z"})
        assert len(racks.bus.events) == 1

    def test_a_worker_or_pool_that_is_not_there_is_a_404(self, api: Api) -> None:
        assert api("POST", PATH, a_body()).status == 404
        api.ok("PUT", POOL_PATH, a_static_definition())
        assert api("POST", PATH, a_body()).status == 404

    def test_a_worker_of_another_provider_is_not_touched(self, racks: Api) -> None:
        racks.deps.stores.workers.put_new(a_worker("box-1", group="rack-1"))
        before = racks.contents()
        assert racks("POST", PATH, a_body()).code == "InputError"
        assert racks.contents() == before

    def test_the_colon_is_forgiven_here_too(self, racks: Api) -> None:
        colon = f"{BASE}/workers/proj-x%2Fpool-1:/rack-1/box-1"
        racks.ok("PUT", colon, a_body())
        racks.ok("POST", colon, a_body())
        assert row(racks).created == NOW
