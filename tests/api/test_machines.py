"""How machines are, over HTTP: found, told of with their workers, and what is to be done."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.registry_world import BASE, POOL, RegistryApi
from tests.api.world import TOKEN
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.machines.memory import Record, Watch, from_record, from_watch
from worker_manager.machines.policy import from_json
from worker_manager.machines.verdicts import Condition, Verdict
from worker_manager.store.machine_table import MachineTable
from worker_manager.store.registry_rows import StoredWorker
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

HEALTH = f"{BASE}/hardware/health"
POLICY = f"{BASE}/hardware/pools/proj-x%2Fbuilders/policy"
OTHER = "proj-y/testers"


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    return RegistryApi(
        tables,
        clients=[
            Client("test/reads", TOKEN, ("worker-registry:hardware-read",)),
            Client("test/x", TOKEN, ("worker-registry:hardware-write:proj-x/*",)),
        ],
    )


@pytest.fixture
def table(api: RegistryApi) -> MachineTable:
    return MachineTable(api.registry.table)


def get(api: RegistryApi, path: str, **how: Any) -> Any:
    path, _, query = path.partition("?")
    return api.ok("GET", path, query=query, **how)


def put(api: RegistryApi, body: Any, **how: Any) -> Any:
    return api.ok("PUT", POLICY, body, **how)


def judge(api: RegistryApi, worker_id: str, condition: str, *, pool: str = POOL) -> None:
    table, now = MachineTable(api.registry.table), api.clock.now
    verdict = Verdict(Condition(condition), "It is so.", now, {"runs": 7})
    flaky = (now,) if condition == "healthy" else ()
    row = StoredWorker(
        WorkerKey(pool, "rack-1", worker_id), from_record(Record(verdict, flaky=flaky)), now
    )
    table.write_verdicts([row], [], events=[], at=now)
    if table.watch(pool) is None:
        table.put_watch(pool, from_watch(Watch()), version=0, events=[], at=now)


def names(answer: Any) -> list[str]:
    return [one["workerId"] for one in answer["machines"]]


def test_who_is_not_well_is_listed_with_why_and_on_what_facts(api: RegistryApi) -> None:
    judge(api, "m-1", "dead")
    judge(api, "m-2", "healthy")

    [found] = get(api, HEALTH, client="test/reads")["machines"]
    assert found == {
        "taskQueueId": POOL,
        "workerGroup": "rack-1",
        "workerId": "m-1",
        "verdict": "dead",
        "since": to_wire(api.clock.now),
        "reason": "It is so.",
        "facts": {"runs": 7},
    }


def test_pages_go_through_all_pools_and_skip_or_repeat_nobody(api: RegistryApi) -> None:
    for number in range(5):
        judge(api, f"m-{number}", "dead" if number % 2 else "flaky")
        judge(api, f"w-{number}", "missing", pool=OTHER)
    everybody = [*(f"m-{n}" for n in range(5)), *(f"w-{n}" for n in range(5))]

    for size in (1, 3, 10):
        found: list[str] = []
        query = f"?limit={size}"
        while True:
            answer = get(api, HEALTH + query)
            found += names(answer)
            if "continuationToken" not in answer:
                break
            query = f"?limit={size}&continuationToken={answer['continuationToken']}"
        assert found == everybody
    assert names(get(api, f"{HEALTH}?verdict=dead")) == ["m-1", "m-3"]
    only = get(api, f"{HEALTH}?taskQueueId=proj-y%2Ftesters&limit=2")
    assert names(only) == ["w-0", "w-1"]
    token = only["continuationToken"]
    rest = get(api, f"{HEALTH}?taskQueueId=proj-y%2Ftesters&continuationToken={token}")
    assert names(rest) == ["w-2", "w-3", "w-4"]
    assert names(get(api, f"{HEALTH}?taskQueueId=proj-z%2Fnone")) == []


def test_a_verdict_is_told_with_its_worker_and_in_searches(api: RegistryApi) -> None:
    for worker_id in ("m-1", "m-2", "m-3"):
        api.see(worker_id)
    judge(api, "m-1", "flaky")
    judge(api, "m-2", "healthy")

    searched = get(api, f"{BASE}/workers")["workers"]
    assert [one.get("verdict") for one in searched] == ["flaky", None, None]
    details = [
        get(api, f"{BASE}/workers/proj-x%2Fbuilders/rack-1/{name}") for name in ("m-1", "m-2")
    ]
    assert details[0]["verdict"]["reason"] == "It is so."
    assert "verdict" not in details[1]


def test_nothing_is_done_by_itself_in_a_pool_of_which_nobody_said_anything(
    api: RegistryApi,
) -> None:
    answer = get(api, POLICY, client="test/reads")
    assert [answer[name] for name in ("reboot", "quarantine", "replace")] == [False] * 3
    assert answer["thresholds"]["missingSeconds"] == 7200
    assert answer["thresholds"]["atOnce"] == 0.05
    assert answer.keys() == {"taskQueueId", "reboot", "quarantine", "replace", "thresholds"}


def test_a_policy_is_replaced_as_a_whole(api: RegistryApi, table: MachineTable) -> None:
    first = {
        "reboot": True,
        "thresholds": {"deadSeconds": 172_800, "breakerShare": 0.1},
        "mix": {"weight": 2.5},
    }
    said = put(api, first, client="test/x")
    assert (said["reboot"], said["updatedBy"], said["mix"]["weight"]) == (True, "test/x", 2.5)
    assert said["thresholds"]["deadSeconds"] == 172_800
    known = table.policy(POOL)
    assert known is not None
    assert from_json(known).thresholds.dead == timedelta(days=2)
    assert "missing" not in known["thresholds"]

    again = put(api, {"quarantine": True})
    assert (again["reboot"], again["quarantine"]) == (False, True)
    assert again["thresholds"]["deadSeconds"] == 86_400
    assert "mix" not in get(api, POLICY)


def test_a_pool_in_which_too_much_is_bad_says_so(api: RegistryApi, table: MachineTable) -> None:
    now = api.clock.now
    table.put_watch(POOL, from_watch(Watch(outage_since=now)), version=0, events=[], at=now)

    assert get(api, POLICY)["heldSince"] == to_wire(now)
    held = [{"taskQueueId": POOL, "since": to_wire(now)}]
    assert get(api, HEALTH) == {"machines": [], "held": held}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reboot": 1}, "reboot"),
        ({"release": True}, "release"),
        ({"thresholds": {"missingSeconds": 9}}, "thresholds.missingSeconds"),
        ({"thresholds": {"breakerShare": 0.6}}, "thresholds.breakerShare"),
        ({"thresholds": {"atOnce": True}}, "thresholds.atOnce"),
        ({"mix": {"weight": 0}}, "mix.weight"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(api: RegistryApi, body: Any, field: str) -> None:
    answer = api("PUT", POLICY, body)
    assert answer.status == 400
    assert f"* {field}: " in answer.message


def test_each_call_has_its_scope(api: RegistryApi) -> None:
    elsewhere = POLICY.replace("proj-x", "proj-y")
    assert api("PUT", POLICY, {}, client="test/reads").status == 403
    assert api("PUT", elsewhere, {}, client="test/x").status == 403
    for path in (POLICY, HEALTH):
        assert api("GET", path, client="test/x").status == 403
