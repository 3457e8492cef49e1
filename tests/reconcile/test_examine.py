"""Looking after machines over real tables: what is written, told and done, and how often."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.action_tables import an_action, some_runs
from tests.factories import NOW, a_head, a_worker
from tests.fake_queue import FakeQueue
from tests.reconcile.test_expire import NOWHERE, House
from tests.registry_tables import a_registry, quarantines_of
from worker_manager.actions.catalogue import Catalogue
from worker_manager.actions.declared import to_json
from worker_manager.actions.entities import Kind as ActionKind
from worker_manager.actions.entities import RunState
from worker_manager.actions.hosts import Hosts
from worker_manager.core.activity import Downtime
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import State, WorkerKey
from worker_manager.core.moments import FOR_EVER
from worker_manager.machines.memory import Record, to_record
from worker_manager.machines.policy import Policy
from worker_manager.machines.policy import to_json as policy_json
from worker_manager.mix.load import Loads
from worker_manager.reconcile.deadline import UNLIMITED, Deadline
from worker_manager.reconcile.examine import ExamineDeps, examine
from worker_manager.reconcile.remedying import Cures
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.observations import Kind, Observation
from worker_manager.settings import ProviderSettings
from worker_manager.store.load_table import LoadTable
from worker_manager.store.machine_table import MachineTable

if TYPE_CHECKING:
    from worker_manager.actions.entities import Run
    from worker_manager.store.tables import Tables

RACKED = "hw/linux"
CLOUDY = "proj-x/pool-1"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HOSTS = Hosts.of(["auth.example.com"])
EVERYTHING = Policy(reboot=True, quarantine=True, replace=True)


def a_key(number: int, pool_id: str = RACKED) -> WorkerKey:
    return WorkerKey(pool_id, "rack-1", f"m-{number:02}")


class Ward(House):
    """Machines of a rack, and the round that is made by them."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.queue = FakeQueue()
        self.registry = a_registry(tables, interval=timedelta())
        self.machines = MachineTable(self.registry.table)
        self.loads = Loads(LoadTable(self.registry.table))
        self.quarantines = quarantines_of(self.registry)
        self.declarations = Declarations(self.registry)
        self.runs = some_runs(tables, self.registry)
        providers = {"static": ProviderSettings("static", "static")}
        catalogue = Catalogue(self.registry, self.workers, providers, HOSTS)
        self.deps = ExamineDeps(
            registry=self.registry,
            queue=self.queue,
            stores=self.keeper.stores,
            outbox=self.keeper.outbox,
            errors=self.errors,
            loads=self.loads,
            machines=self.machines,
            cures=Cures(self.registry, self.runs, catalogue, self.quarantines, BuiltinBackend()),
            clock=lambda: self.now,
            timing=self.keeper.timing,
            static=frozenset({"static"}),
        )
        said = {"is_hardware": True, "actions": (to_json(an_action("reboot")),)}
        self.declarations.worker_type(RACKED, said, by="test/root", now=NOW)

    def see(self, *numbers: int, pool_id: str = RACKED) -> None:
        keys = [a_key(number, pool_id) for number in numbers]
        self.registry.observe([Observation(key, Kind.IDLE, self.now) for key in keys])

    def work(self, number: int, *, ok: int, bad: int = 0, pool_id: str = RACKED) -> None:
        """A machine takes tasks for an hour, of which the last ones fail."""
        for turn in range(ok + bad):
            ran: dict[str, Any] = {
                "task_id": derived_slugid(number, turn, str(self.now)),
                "run_id": 0,
            }
            state = "completed" if turn < ok else "failed"
            at = self.now - HOUR + turn * MINUTE
            key = a_key(number, pool_id)
            self.registry.observe(
                [
                    Observation(key, Kind.CLAIM, at, **ran),
                    Observation(key, Kind.RESOLVE, at + MINUTE / 2, **ran, state=state),
                ]
            )

    def say(self, policy: Policy, pool_id: str = RACKED) -> None:
        self.machines.put_policy(pool_id, policy_json(policy))

    def look(self, **amount: float) -> dict[str, Any]:
        self.now += timedelta(**amount)
        return examine(self.deps, UNLIMITED)

    def records(self, pool_id: str = RACKED) -> dict[str, Record]:
        return {
            row.key.worker_id: to_record(row.body, version=row.version)
            for row in self.machines.verdicts(pool_id)
        }

    def conditions(self, pool_id: str = RACKED) -> dict[str, str]:
        found = self.records(pool_id)
        return {name: record.verdict.condition.value for name, record in found.items()}

    def all_runs(self, pool_id: str = RACKED) -> list[Run]:
        return self.runs.of_queue(pool_id, limit=100)[0]


@pytest.fixture
def ward(tables: Tables) -> Ward:
    return Ward(tables)


def test_a_missing_machine_is_rebooted_once_however_often_one_looks(ward: Ward) -> None:
    ward.say(EVERYTHING)
    ward.see(*range(10))
    ward.look(hours=3)
    assert ward.all_runs() == []
    ward.see(*range(9))

    for _ in range(2):
        ward.look()
        ward.look(minutes=5)

    [run] = ward.all_runs()
    assert run.target.key == a_key(9)
    assert (run.requested_by, run.was_silent) == ("worker-manager", True)
    assert run.reason.startswith("auto: missing: It was last heard of at")
    assert ward.conditions() == {"m-09": "missing"}
    assert ward.bus.names.count("machine-verdict") == 10 + 9


def test_two_calls_at_once_ask_for_one_run_and_tell_each_thing_once(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    ward.say(EVERYTHING)
    ward.see(*range(10))
    ward.now += 3 * HOUR
    ward.see(*range(9))
    put = ward.machines.put_watch

    def put_late(*of: Any, **more: Any) -> None:
        monkeypatch.setattr(ward.machines, "put_watch", put)
        examine(ward.deps, UNLIMITED)
        put(*of, **more)

    monkeypatch.setattr(ward.machines, "put_watch", put_late)
    report = ward.look()

    assert report["pools"] == 0
    assert len(ward.all_runs()) == 1
    assert ward.bus.names.count("machine-verdict") == 1


def test_a_look_that_crashed_half_way_is_finished_by_the_next(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    ward.say(EVERYTHING)
    ward.see(*range(10))
    ward.now += 3 * HOUR
    ward.see(*range(9))
    for name in ("put_watch", "write_verdicts"):
        with monkeypatch.context() as broken:
            broken.setattr(ward.machines, name, lambda *_, **__: 1 / 0)
            assert ward.look()["failed"] == 1
        assert ward.all_runs() == []
    request = ward.runs.request
    with monkeypatch.context() as broken:
        # The run is written, and the answer is lost.
        broken.setattr(ward.runs, "request", lambda run: (request(run), 1 / 0))
        assert ward.look()["failed"] == 1
    ward.look()

    assert len(ward.all_runs()) == 1
    assert ward.bus.names.count("machine-verdict") == 1


@pytest.mark.parametrize("has_pool", [True, False])
def test_a_quarter_that_falls_silent_at_once_causes_one_alarm_and_nothing_else(
    ward: Ward, has_pool: bool
) -> None:
    if has_pool:
        ward.save(RACKED, heads=[a_head(location=NOWHERE)], provider_id="static")
    ward.say(EVERYTHING)
    ward.see(*range(8))
    for _ in range(8):
        ward.now += 30 * MINUTE
        ward.see(*range(6))
        ward.look()

    assert ward.all_runs() == []
    assert ward.conditions() == dict.fromkeys(("m-06", "m-07"), "missing")
    assert ward.bus.names.count("machines-held") == 1
    errors = list(ward.errors.newest_first(RACKED))
    assert [one.kind for one in errors] == (["machines-outage"] if has_pool else [])
    ward.see(*range(8))
    ward.look(minutes=5)
    ward.look(minutes=5)
    assert ward.bus.names.count("machines-freed") == 1
    assert ward.conditions() == {}


def test_a_dead_machine_is_told_to_its_owner_once(ward: Ward) -> None:
    ward.save(RACKED, heads=[a_head(location=NOWHERE)], provider_id="static")
    ward.see(*range(10))
    for _ in range(6):
        ward.now += 5 * HOUR
        ward.see(*range(9))
        ward.look()

    assert ward.conditions() == {"m-09": "dead"}
    [error] = ward.errors.newest_first(RACKED)
    assert (error.kind, error.extra["workerId"]) == ("machine-dead", "m-09")
    assert ward.bus.names.count("worker-error") == 1


@pytest.mark.parametrize(
    "declared",
    [
        {
            "kind": ActionKind.HTTP,
            "url": "https://auth.example.com/api/auth/v1/clients/x",
            "method": "DELETE",
            "required_scopes": ("auth:delete-client:x",),
        },
        {"kind": ActionKind.BUILTIN, "operation": "kill"},
    ],
)
def test_nobody_borrows_our_scopes_by_declaring_what_a_sick_machine_gets(
    ward: Ward, declared: dict[str, Any]
) -> None:
    nothing = {"agent_id": None, "operation": None}
    action = an_action("reboot", **(nothing | declared))
    ward.declarations.worker_type(RACKED, {"actions": (to_json(action),)}, by="test/x", now=NOW)
    ward.say(EVERYTHING)
    ward.see(*range(10))
    ward.look(hours=3)
    ward.see(*range(9))

    assert ward.look(minutes=5)["remedies"] == 0
    assert ward.conditions() == {"m-09": "missing"}
    assert ward.all_runs() == []


def test_a_limit_that_only_another_version_knows_stops_no_look(ward: Ward) -> None:
    stored = policy_json(EVERYTHING)
    ward.machines.put_policy(RACKED, {**stored, "thresholds": {"unheard_of": 3}})
    ward.see(1)
    assert ward.look()["pools"] == 1


def test_a_machine_that_no_reboot_brings_back_is_dead(ward: Ward) -> None:
    ward.see(*range(10))
    ward.now += 3 * HOUR
    ward.see(*range(9))
    ward.say(EVERYTHING)
    ward.look()
    [run] = ward.all_runs()
    claimed = ward.runs.claim("dc1", most=1, new_lease_id=lambda: "lease", now=ward.now)
    assert [one.run_id for one in claimed] == [run.run_id]
    ward.runs.begin(run.run_id, "lease", number=1, method="ssh", now=ward.now)
    ward.runs.resolve(
        run.run_id, "lease", state=RunState.FAILED, message="all rungs failed", now=ward.now
    )
    ward.look(minutes=5)

    assert ward.conditions() == {"m-09": "dead"}
    assert len(ward.all_runs()) == 1


def test_a_flaky_machine_is_put_aside_and_not_again_once_people_release_it(ward: Ward) -> None:
    ward.say(Policy(quarantine=True))
    for number in range(6):
        ward.work(number, ok=8, bad=0 if number else 6)
    ward.look()

    def held() -> bool:
        worker = ward.registry.worker(a_key(0))
        return worker is not None and worker.is_quarantined(ward.now)

    worker = ward.registry.worker(a_key(0))
    assert worker is not None
    assert (worker.quarantine_until, worker.quarantined_by) == (FOR_EVER, "worker-manager")
    assert worker.quarantine_info.startswith("auto: flaky: Its last 6 runs went wrong")
    ward.quarantines.change(a_key(0), ward.now, info="cleaned", client_id="test/root", now=ward.now)
    ward.look(minutes=5)
    assert not held()
    ward.now += DAY
    ward.see(*range(6))
    ward.work(0, ok=1, bad=5)
    ward.look()
    assert held()
    assert ward.conditions()["m-00"] == "needs-reformat"


def test_a_clouds_machine_is_put_aside_and_ended_when_it_is_idle(ward: Ward) -> None:
    ward.save(CLOUDY, heads=[a_head()], provider_id="aws")
    ward.say(Policy(replace=True), CLOUDY)
    for number in range(6):
        row = a_worker(pool_id=CLOUDY, state=State.RUNNING, provider_id="aws")
        ward.put(replace(row, key=a_key(number, CLOUDY)))
        ward.work(number, ok=8, bad=0 if number else 6, pool_id=CLOUDY)
    busy: dict[str, Any] = {"task_id": derived_slugid("busy"), "run_id": 0}
    ward.registry.observe([Observation(a_key(0, CLOUDY), Kind.CLAIM, ward.now, **busy)])
    for _ in range(2):
        ward.look(minutes=5)
    assert ward.all_runs(CLOUDY) == []
    over = Observation(a_key(0, CLOUDY), Kind.RESOLVE, ward.now, **busy, state="completed")
    ward.registry.observe([over])
    for _ in range(2):
        ward.look(minutes=5)

    [run] = ward.all_runs(CLOUDY)
    assert (run.action.operation, run.target.key) == ("kill", a_key(0, CLOUDY))


def test_nothing_is_written_while_nothing_changes(ward: Ward) -> None:
    ward.see(*range(6))
    ward.now += 3 * HOUR
    ward.see(*range(5))
    ward.look()
    before, known = ward.records(), ward.machines.watch(RACKED)
    ward.look(minutes=5)
    assert (ward.records(), ward.machines.watch(RACKED)) == (before, known)


def test_a_calm_pool_has_no_rows_and_its_load_is_kept(ward: Ward) -> None:
    ward.see(*range(4))
    ward.quarantines.change(a_key(0), ward.now + DAY, info="", client_id="test/root", now=ward.now)
    ward.queue.set_counts(RACKED, pending=0, claimed=2)
    ward.look()
    ward.queue.fail()
    ward.look(minutes=5)

    assert (ward.records(), ward.machines.watch(RACKED)) == ({}, None)
    samples = ward.loads.of(RACKED, since=NOW - DAY, until=NOW + DAY)
    assert [tuple(one)[1:] for one in samples] == [(0, 2, 3, 1)]


def test_a_machine_is_stuck_only_while_its_queue_gives_out_tasks(ward: Ward) -> None:
    ward.see(0)
    ward.now += 2 * HOUR
    ward.queue.set_counts(RACKED, pending=3)
    ward.look()
    ward.now += 20 * MINUTE
    ward.see(0)
    ward.work(1, ok=58)
    ward.look()
    assert ward.conditions() == {"m-00": "idle-stuck"}
    closed = Downtime(ward.now + DAY)
    ward.queue.set_counts(RACKED, pending=3, downtime=closed)
    ward.look()
    assert ward.conditions() == {}


def test_a_machine_that_keeps_an_old_launch_config_for_a_week_is_shown(ward: Ward) -> None:
    ward.save(RACKED, heads=[a_head("lc-b", location=NOWHERE)], provider_id="static")
    for number, config in enumerate(("lc-a", "lc-b", "lc-b")):
        row = a_worker(pool_id=RACKED, provider_id="static", launch_config_id=config)
        ward.put(replace(row, key=a_key(number), state=State.RUNNING, location=NOWHERE))
    for day in range(9):
        ward.see(0, 1, 2)
        ward.look(minutes=1)
        assert ward.conditions() == ({"m-00": "stale-config"} if day >= 7 else {})
        ward.now += DAY


def test_a_machine_that_registers_time_and_again_is_put_aside_and_told_of(ward: Ward) -> None:
    ward.save(RACKED, heads=[a_head(location=NOWHERE)], provider_id="static")
    ward.say(Policy(quarantine=True))
    for number in range(6):
        often = tuple(NOW + turn * 9 * MINUTE for turn in range(1 if number else 6))
        row = a_worker(pool_id=RACKED, provider_id="static", registered=often[-1])
        row = replace(row, key=a_key(number), state=State.RUNNING, location=NOWHERE)
        ward.put(replace(row, registrations=often))
    ward.look(minutes=50)

    assert ward.conditions() == {"m-00": "reboot-loop"}
    assert [one.kind for one in ward.errors.newest_first(RACKED)] == ["machine-reboot-loop"]
    worker = ward.registry.worker(a_key(0))
    assert worker is not None
    assert worker.is_quarantined(ward.now)


def test_a_machine_that_is_gone_is_forgotten_without_a_word(ward: Ward) -> None:
    ward.see(0, 1, 2)
    ward.now += 3 * HOUR
    ward.see(0, 1)
    ward.look()
    told = list(ward.bus.names)
    ward.registry.delete_worker(a_key(2))
    ward.look(minutes=5)

    assert (ward.conditions(), ward.bus.names) == ({}, told)


def test_of_a_pool_that_is_gone_nothing_is_remembered(ward: Ward) -> None:
    ward.see(0, 1, 2, pool_id="hw/other")
    ward.declarations.worker_type("hw/other", {"is_hardware": True}, by="test/root", now=NOW)
    ward.now += 3 * HOUR
    ward.see(0, 1, pool_id="hw/other")
    ward.look()
    assert ward.conditions("hw/other") == {"m-02": "missing"}
    for number in range(3):
        ward.registry.delete_worker(a_key(number, "hw/other"))
    ward.registry.deletions.remove_type("hw/other")
    for _ in range(2):
        ward.look(minutes=5)

    assert ward.conditions("hw/other") == {}
    assert ward.machines.watched() == []


def test_what_somebody_says_of_a_machine_while_we_look_is_left_as_it_is(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    ward.say(Policy(quarantine=True))
    for number in range(6):
        ward.work(number, ok=8, bad=0 if number else 6)
    write, until = ward.machines.write_verdicts, ward.now + DAY

    def write_late(*of: Any, **more: Any) -> None:
        ward.quarantines.change(
            a_key(0), until, info="a new disk", client_id="test/root", now=ward.now
        )
        write(*of, **more)

    monkeypatch.setattr(ward.machines, "write_verdicts", write_late)
    assert ward.look()["remedies"] == 0

    worker = ward.registry.worker(a_key(0))
    assert worker is not None
    assert (worker.quarantine_until, worker.quarantine_info) == (until, "a new disk")


def test_one_pool_that_fails_stops_no_other_and_a_late_call_leaves_some_to_the_next(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hw/a", "hw/b", "hw/c"):
        ward.declarations.worker_type(name, {"is_hardware": True}, by="test/root", now=NOW)
        ward.see(1, pool_id=name)
    verdicts = ward.machines.verdicts
    monkeypatch.setattr(
        ward.machines,
        "verdicts",
        lambda name, **more: 1 / 0 if name == "hw/b" else verdicts(name, **more),
    )
    report = ward.look()
    assert (report["pools"], report["failed"], report["left"]) == (3, 1, 0)
    late = examine(ward.deps, Deadline.after(MINUTE / 60))
    assert (late["pools"], late["left"]) == (0, 4)
