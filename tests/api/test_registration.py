"""Machines register: who they are, once, and again when the answer was lost."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import (
    BASE,
    POOL_PATH,
    SIGNER,
    Signer,
    a_definition,
    a_launch_config,
)
from tests.factories import NOW, a_worker
from worker_manager.api import proofs
from worker_manager.core.errors import ProofUnavailableError
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.identity.aws import verify_document
from worker_manager.taskcluster.credentials import worker_scopes

if TYPE_CHECKING:
    from tests.api.world import Api, Clock, Response

KEY = WorkerKey("proj-x/pool-1", "us-east-1", "i-1")
PATH = f"{BASE}/worker/register"
BOOT = "2026-01-02T03:00:00.000Z"


def a_request(**overrides: Any) -> dict[str, Any]:
    return {
        "workerPoolId": KEY.pool_id,
        "providerId": "aws",
        "workerGroup": KEY.group,
        "workerId": KEY.worker_id,
        "workerIdentityProof": SIGNER.proof(),
        "systemBootTime": BOOT,
        **overrides,
    }


def a_requested_worker(**overrides: Any) -> Worker:
    return a_worker(state=State.REQUESTED, **overrides)


def register(api: Api, **overrides: Any) -> Response:
    return api("POST", PATH, a_request(**overrides), client=None)


def row(api: Api, key: WorkerKey = KEY) -> Worker:
    found = api.deps.stores.workers.get(key)
    assert found is not None
    return found


@pytest.fixture
def machine(pool: Api) -> Api:
    """The API with a pool and a worker that was requested."""
    config = a_launch_config(workerConfig={"speed": 9})
    config["workerManager"] = {"launchConfigId": "lc-b"}
    pool.ok("POST", POOL_PATH, a_definition(config={"launchConfigs": [config]}))
    pool.bus.events.clear()
    assert pool.deps.stores.workers.put_new(a_requested_worker(launch_config_id="lc-b"))
    return pool


class TestAnEc2Instance:
    def test_gets_credentials_config_and_a_secret(self, machine: Api) -> None:
        answer = machine.ok("POST", PATH, a_request(), client=None)
        assert answer["expires"] == "2026-01-06T03:04:05.000Z"
        assert answer["workerConfig"] == {"speed": 9}
        assert len(answer["secret"]) == 44
        credentials = answer["credentials"]
        assert credentials["clientId"] == "worker/aws/proj-x/pool-1/us-east-1/i-1"
        certificate = json.loads(credentials["certificate"])
        assert certificate["scopes"] == worker_scopes(KEY)
        assert certificate["issuer"] == "test/issuer"

    def test_runs_from_then_on(self, machine: Api) -> None:
        register(machine)
        worker = row(machine)
        assert worker.state is State.RUNNING
        assert worker.registered == worker.modified == NOW
        assert worker.boot_time == NOW.replace(minute=0, second=0)
        assert worker.deadline == NOW + timedelta(days=4)
        assert worker.unsent == ()
        [event] = machine.bus.events
        assert event["name"] == "worker-running"
        assert event["detail"]["launchConfigId"] == "lc-b"
        health = machine.deps.stores.health.window(KEY.pool_id, NOW)
        assert health["lc-b"].registered == 1

    def test_gets_the_lifetime_that_its_row_says(self, pool: Api) -> None:
        pool.deps.stores.workers.put_new(a_requested_worker(reregistration=timedelta(hours=1)))
        assert register(pool).body["expires"] == "2026-01-02T04:04:05.000Z"

    def test_gets_the_config_of_its_own_launch_config_archived_or_not(self, machine: Api) -> None:
        machine.ok("POST", POOL_PATH, a_definition())
        assert register(machine).body["workerConfig"] == {"speed": 9}

    def test_without_a_known_launch_config_has_an_empty_config(self, pool: Api) -> None:
        pool.deps.stores.workers.put_new(a_requested_worker(launch_config_id=None))
        assert register(pool).body["workerConfig"] == {}

    def test_leaves_no_secret_anywhere(self, machine: Api) -> None:
        secret = register(machine).body["secret"]
        assert all(secret not in item for item in machine.contents())

    def test_may_use_a_previous_provider(self, machine: Api) -> None:
        machine.ok("POST", POOL_PATH, a_definition(providerId="aws-2"))
        assert register(machine).status == 200

    def test_may_say_nothing_of_its_boot(self, machine: Api) -> None:
        body = a_request()
        del body["systemBootTime"]
        machine.ok("POST", PATH, body, client=None)
        assert row(machine).boot_time is None

    def test_is_registered_though_its_event_must_wait(self, machine: Api) -> None:
        machine.bus.refuses = True
        assert register(machine).status == 200
        assert [event["name"] for event in row(machine).unsent] == ["worker-running"]

    def test_is_registered_though_it_could_not_be_counted(
        self, machine: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("no counters today")

        monkeypatch.setattr(machine.deps.stores.health, "add", fail)
        assert register(machine).status == 200


class TestARepeat:
    """B15: taskcluster#4999, registration is idempotent."""

    def test_of_the_same_boot_gets_new_credentials(self, machine: Api, clock: Clock) -> None:
        first = register(machine).body
        clock.advance(minutes=9)
        again = machine.ok("POST", PATH, a_request(), client=None)
        assert again["secret"] != first["secret"]
        assert again["credentials"]["accessToken"] != first["credentials"]["accessToken"]
        assert again["expires"] == "2026-01-06T03:13:05.000Z"
        assert row(machine).registered == NOW
        assert machine.bus.names() == ["worker-running"]
        assert machine.deps.stores.health.window(KEY.pool_id, NOW)["lc-b"].registered == 1

    def test_makes_the_first_secret_worthless(self, machine: Api) -> None:
        first = register(machine).body["secret"]
        second = register(machine).body["secret"]
        for secret, status in ((first, 400), (second, 200)):
            body = {
                "workerPoolId": KEY.pool_id,
                "workerGroup": KEY.group,
                "workerId": KEY.worker_id,
                "secret": secret,
            }
            assert machine("POST", f"{BASE}/worker/reregister", body).status == status

    @pytest.mark.parametrize(
        "change",
        [
            {"registered": NOW - timedelta(minutes=11)},
            {"first_claim": NOW},
            {"boot_time": NOW - timedelta(days=1)},
        ],
    )
    def test_of_another_boot_or_after_work_or_too_late_is_refused(
        self, machine: Api, change: dict[str, Any]
    ) -> None:
        register(machine)
        assert machine.deps.stores.workers.change(row(machine), **change)
        before = machine.contents()
        response = register(machine)
        assert (response.status, response.code) == (400, "InputError")
        assert machine.contents() == before

    def test_still_needs_the_proof(self, machine: Api) -> None:
        register(machine)
        before = machine.contents()
        assert register(machine, workerIdentityProof=Signer().proof()).status == 400
        assert machine.contents() == before

    def test_at_the_same_moment_registers_once(
        self, machine: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Q7: of two that pass the check at once one write wins, and the other is a repeat."""
        change = machine.deps.stores.workers.change
        states: list[State] = []

        def raced(before: Worker, **changes: Any) -> Worker | None:
            states.append(before.state)
            if len(states) == 1:
                assert register(machine).status == 200
            return change(before, **changes)

        monkeypatch.setattr(machine.deps.stores.workers, "change", raced)
        assert register(machine).status == 200
        assert states == [State.REQUESTED, State.REQUESTED, State.RUNNING]
        assert machine.bus.names() == ["worker-running"]
        assert machine.deps.stores.health.window(KEY.pool_id, NOW)["lc-b"].registered == 1

    def test_lost_again_and_again_is_a_503(
        self, machine: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine.deps.stores.workers, "change", lambda *_, **__: None)
        assert register(machine).status == 503


GENERIC = "The identity of this worker could not be verified"


class TestAProofThatFails:
    @pytest.mark.parametrize(
        "proof",
        [
            Signer().proof(),
            SIGNER.proof() | {"signature": "x"},
            SIGNER.proof() | {"document": '{"region": "us-east-1", "instanceId": "i-1"}'},
            SIGNER.proof("i-2"),
            SIGNER.proof(region="us-west-2"),
            SIGNER.proof(accountId="2"),
            {"document": "", "signature": ""},
            {"staticSecret": "s" * 44},
            {"token": "x"},
            {"document": "x"},
        ],
    )
    def test_is_answered_with_one_sentence_whatever_is_wrong(
        self, machine: Api, proof: dict[str, str]
    ) -> None:
        worker = row(machine)
        assert machine.deps.stores.workers.change(worker, identity={"accountId": "1"})
        before = machine.contents()
        response = register(machine, workerIdentityProof=proof)
        assert (response.status, response.code) == (400, "InputError")
        assert response.message.startswith(f"{GENERIC}\n\n---")
        assert machine.contents() == before
        assert machine.bus.events == []

    def test_is_never_repeated_in_the_error_or_the_log(
        self, machine: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        proof = Signer().proof()
        response = register(machine, workerIdentityProof=proof)
        assert response.body["requestInfo"]["payload"] == "(OMITTED)"
        logged = str([vars(record) for record in caplog.records])
        assert proof["signature"] not in logged + str(response.body)
        assert "no trusted key" in logged

    def test_for_a_reason_of_ours_is_a_503_and_holds_when_it_is_repeated(
        self, machine: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """B30 (taskcluster PR#7673): a worker that was told 4xx once idled for two hours."""
        check = verify_document
        failures = [ProofUnavailableError("the certificate was not to be had")]

        def check_later(*given: Any) -> None:
            if failures:
                raise failures.pop()
            check(*given)

        monkeypatch.setattr(proofs, "verify_document", check_later)
        response = register(machine)
        assert response.status == 503
        assert int(response.headers["Retry-After"]) > 0
        assert row(machine).state is State.REQUESTED

        assert register(machine).status == 200

    @pytest.mark.parametrize("state", [State.STOPPING, State.STOPPED])
    def test_is_that_of_a_worker_that_is_going_too(self, pool: Api, state: State) -> None:
        pool.deps.stores.workers.put_new(a_worker(state=state, modified=NOW))
        before = pool.contents()
        response = register(pool)
        assert response.message.startswith(GENERIC)
        assert pool.contents() == before


class TestWhatIsNotThere:
    def test_a_pool_is_a_404(self, api: Api) -> None:
        assert register(api).status == 404

    def test_a_provider_is_a_404(self, machine: Api) -> None:
        assert register(machine, providerId="gone").status == 404

    def test_a_provider_of_another_pool_is_a_400(self, machine: Api) -> None:
        assert register(machine, providerId="aws-2").code == "InputError"

    def test_a_worker_is_a_404(self, machine: Api) -> None:
        other = register(machine, workerId="i-2", workerIdentityProof=SIGNER.proof("i-2"))
        assert (other.status, other.code) == (404, "ResourceNotFound")

    def test_a_worker_of_that_name_in_another_pool_does_not_count(self, pool: Api) -> None:
        pool.deps.stores.workers.put_new(a_requested_worker(pool_id="proj-x/other"))
        assert register(pool).status == 404

    def test_a_worker_of_another_provider_is_a_400(self, machine: Api) -> None:
        machine.ok("POST", POOL_PATH, a_definition(providerId="aws-2"))
        response = register(machine, providerId="aws-2")
        assert response.code == "InputError"

    def test_a_worker_that_ended_is_a_400(self, pool: Api) -> None:
        pool.deps.stores.workers.put_new(a_requested_worker(expires=NOW - timedelta(seconds=1)))
        assert "has expired" in register(pool).message
