"""Machines that forgot their credentials in a reboot that we made register again: once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.api.clouds import (
    SUBSCRIPTION,
    Issuers,
    a_deployment_config,
    a_google_launch_config,
    a_pool_of,
    with_clouds,
)
from tests.api.world import BASE, POOL_PATH, SIGNER, Signer, a_definition
from tests.azure_signer import BETWEEN, VM_ID, a_document, content
from tests.factories import NOW, a_worker
from tests.google_signer import FOREIGN, INSTANCE, PROJECT, ZONE, Published, a_token
from worker_manager.core.model import Location, State, Worker, WorkerKey
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from datetime import datetime

    from tests.api.world import Api, Clock, Response

POOL = "proj-x/pool-1"
MINUTE = timedelta(minutes=1)
MARKED = NOW - MINUTE
"""When the machines were about to be rebooted."""
REBOOTED = MARKED + timedelta(seconds=20)
"""When they booted then, by their own clocks."""
FIRST_BOOT = NOW - timedelta(days=1)
OLD: dict[str, Any] = {
    "registered": FIRST_BOOT + MINUTE,
    "registrations": (FIRST_BOOT + MINUTE,),
    "boot_time": FIRST_BOOT,
    "first_claim": FIRST_BOOT + 2 * MINUTE,
    "quarantine_until": NOW + timedelta(days=1),
    "secret_hash": "old",
}


class Machine(NamedTuple):
    """A cloud's machine: its row's facts, its proof, and one that is none."""

    group: str
    worker_id: str
    location: str
    identity: dict[str, Any]
    proof: dict[str, str]
    wrong: dict[str, str]


MACHINES = {
    "aws": Machine("us-east-1", "i-1", "us-east-1", {}, SIGNER.proof(), Signer().proof()),
    "google": Machine(
        ZONE,
        INSTANCE,
        PROJECT,
        {"name": "worker-1"},
        {"token": a_token()},
        {"token": a_token(key=FOREIGN)},
    ),
    "azure": Machine(
        "eastus",
        "vm-abc",
        SUBSCRIPTION,
        {"resourceGroup": "rg-workers", "vmId": VM_ID},
        {"document": a_document()},
        {"document": a_document(content(vmId="another"))},
    ),
}


class Rebooted:
    """A machine at work that its cloud was about to be told to reboot, and the API."""

    def __init__(self, api: Api, provider_id: str = "aws") -> None:
        self.api = api
        self.provider_id = provider_id
        self.machine = MACHINES[provider_id]
        self.key = WorkerKey(POOL, self.machine.group, self.machine.worker_id)
        if provider_id != "aws":
            with_clouds(api, published=Published(), issuers=Issuers(BETWEEN.der))
        definition = {
            "aws": a_definition(),
            "google": a_pool_of("google", a_google_launch_config()),
            "azure": a_pool_of("azure", a_deployment_config()),
        }
        api.ok("PUT", POOL_PATH, definition[provider_id])
        row = a_worker(
            self.key.worker_id,
            group=self.key.group,
            provider_id=provider_id,
            location=Location(self.machine.location),
            identity=self.machine.identity,
            rebooted=MARKED,
            **OLD,
        )
        assert api.deps.stores.workers.put_new(row)
        api.bus.events.clear()

    @property
    def row(self) -> Worker:
        found = self.api.deps.stores.workers.get(self.key)
        assert found is not None
        return found

    def change(self, **changes: Any) -> None:
        assert self.api.deps.stores.workers.change(self.row, **changes)

    def register(
        self, boot: datetime | None = REBOOTED, *, proof: dict[str, str] | None = None
    ) -> Response:
        body = {
            "workerPoolId": POOL,
            "providerId": self.provider_id,
            "workerGroup": self.key.group,
            "workerId": self.key.worker_id,
            "workerIdentityProof": proof or self.machine.proof,
            **({} if boot is None else {"systemBootTime": to_wire(boot)}),
        }
        return self.api("POST", f"{BASE}/worker/register", body, client=None)

    def is_refused(self, boot: datetime | None = REBOOTED, **how: Any) -> bool:
        """With the one sentence that every refusal has, and nothing written."""
        before = self.api.contents()
        answer = self.register(boot, **how)
        assert self.api.contents() == before
        sentence = "The identity of this worker could not be verified\n"
        return answer.status == 400 and answer.message.startswith(sentence)


@pytest.fixture
def rebooted(api: Api) -> Rebooted:
    return Rebooted(api)


@pytest.mark.parametrize("provider_id", MACHINES)
def test_a_rebooted_machine_of_any_cloud_gets_new_credentials_once_for_its_proof(
    api: Api, clock: Clock, provider_id: str
) -> None:
    rebooted = Rebooted(api, provider_id)
    assert rebooted.is_refused(proof=rebooted.machine.wrong)
    assert rebooted.register().status == 200
    row = rebooted.row
    assert (row.state, row.rebooted, row.registered) == (State.RUNNING, None, NOW)
    assert (row.boot_time, row.registrations[-1]) == (REBOOTED, NOW)
    assert (row.first_claim, row.quarantine_until) == (OLD["first_claim"], OLD["quarantine_until"])
    assert row.secret_hash != OLD["secret_hash"]
    assert row.deadline == NOW + row.reregistration
    assert api.bus.events == []
    assert not api.deps.stores.health.window(POOL, NOW)

    clock.advance(minutes=1)
    assert rebooted.is_refused(NOW)


def test_one_whose_answer_was_lost_gets_another_until_it_claims(
    rebooted: Rebooted, clock: Clock
) -> None:
    first = rebooted.register().body["secret"]
    clock.advance(minutes=9)
    again = rebooted.register()
    assert again.status == 200
    assert again.body["secret"] != first
    assert rebooted.row.registered == NOW
    clock.advance(minutes=2)
    assert rebooted.is_refused()


@pytest.mark.parametrize(
    ("change", "boot"),
    [
        pytest.param({"rebooted": None}, REBOOTED, id="it was not rebooted"),
        pytest.param({"rebooted": NOW - 31 * MINUTE}, NOW, id="that was too long ago"),
        pytest.param({}, None, id="it tells no boot time"),
        pytest.param({}, FIRST_BOOT, id="it is the boot that was"),
        pytest.param({}, MARKED - 5 * MINUTE, id="it booted before"),
        pytest.param({"boot_time": REBOOTED + MINUTE}, REBOOTED, id="it booted again since"),
        pytest.param({"state": State.STOPPING}, REBOOTED, id="it is told to go"),
    ],
)
def test_nobody_is_let_in_by_a_reboot_that_was_not_his(
    rebooted: Rebooted, change: dict[str, Any], boot: datetime | None
) -> None:
    rebooted.change(**change)
    assert rebooted.is_refused(boot)


def test_a_clock_may_be_some_minutes_behind_and_the_first_boot_unknown(rebooted: Rebooted) -> None:
    rebooted.change(boot_time=None)
    assert rebooted.register(MARKED - 4 * MINUTE).status == 200


def test_until_it_is_surely_down_it_is_told_to_come_back(rebooted: Rebooted, clock: Clock) -> None:
    """What runs on it until then has the same proof, and any boot time it likes."""
    rebooted.change(rebooted=NOW)
    assert rebooted.is_refused(proof=rebooted.machine.wrong)
    before = rebooted.api.contents()
    answer = rebooted.register(NOW + MINUTE)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert rebooted.api.contents() == before
    clock.advance(seconds=45)
    assert rebooted.register(NOW + MINUTE).status == 200


def test_of_two_at_once_one_is_let_in(rebooted: Rebooted, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = rebooted.api.deps.stores.workers
    change = workers.change
    others: list[int] = []

    def raced(before: Worker, **changes: Any) -> Worker | None:
        if not others:
            others.append(0)
            others[0] = rebooted.register(NOW).status
        return change(before, **changes)

    monkeypatch.setattr(workers, "change", raced)
    assert rebooted.register().status == 400
    assert others == [200]
    assert rebooted.row.boot_time == NOW


@pytest.mark.parametrize(
    ("ago", "status"),
    [(timedelta(seconds=44), 200), (timedelta(seconds=45), 400)],
)
def test_one_rebooted_before_it_ever_registered_registers_once_after_it_was_down(
    rebooted: Rebooted, clock: Clock, ago: timedelta, status: int
) -> None:
    nothing = dict.fromkeys(("registered", "boot_time", "first_claim", "quarantine_until"))
    rebooted.change(state=State.REQUESTED, registrations=(), rebooted=NOW - ago, **nothing)
    assert rebooted.register(NOW - ago).status == 200
    clock.advance(minutes=1)
    assert rebooted.register(NOW).status == status
    assert rebooted.api.bus.names() == ["worker-running"]
