"""Many quarantines at once: only the caller's, only so many a minute, and never half."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.registry_world import BASE, POOL, RegistryApi
from tests.api.world import TOKEN
from tests.factories import a_worker
from worker_manager.api import bulk
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.model import State, WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.store.tables import Tables

BULK = f"{BASE}/quarantines"
HERE: dict[str, Any] = {"filter": {"taskQueueId": POOL}}
ALL = {**HERE, "quarantined": True, "quarantineInfo": "bad image"}
FREE = {**HERE, "quarantined": False}
SOME = (
    "worker-registry:search",
    "queue:list-workers:*",
    f"queue:quarantine-worker:{POOL}/rack-1/m-1",
)


class Failing(BuiltinBackend):
    """A queue that answers so often only."""

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        if self.answers == 0:
            raise QueueUnavailableError("told to fail")
        self.answers -= 1


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    api = RegistryApi(tables, clients=[Client("test/some", TOKEN, SOME)])
    for number in range(4):
        api.see(f"m-{number}")
    return api


def post(api: RegistryApi, body: dict[str, Any], **how: Any) -> dict[str, Any]:
    answer: dict[str, Any] = api.ok("POST", BULK, body, **how)
    return answer


def changed(answer: dict[str, Any]) -> list[str]:
    return [one["workerId"] for one in answer["workers"] if one["changed"]]


def held(api: RegistryApi) -> list[str]:
    lines, _ = api.deps.quarantines.listed(limit=99)  # type: ignore[attr-defined]
    return sorted(line.key.worker_id for line in lines if line.until > api.clock.now)


def test_all_that_a_filter_finds_are_quarantined_and_released(api: RegistryApi) -> None:
    api.see("m-0", pool="proj-y/testers")
    assert changed(post(api, ALL)) == ["m-0", "m-1", "m-2", "m-3"]
    assert held(api) == ["m-0", "m-1", "m-2", "m-3"]
    worker = api.registry.worker(WorkerKey(POOL, "rack-1", "m-2"))
    assert worker is not None
    assert (worker.quarantine_info, worker.quarantined_by) == ("bad image", "test/root")
    freeing = {"provisionerId": "proj-x", "quarantined": True, "q": "m-2"}
    assert changed(post(api, {**FREE, "filter": freeing})) == ["m-2"]
    assert held(api) == ["m-0", "m-1", "m-3"]
    assert api.bus.names() == ["worker-quarantined"] * 4 + ["worker-released"]


PICKS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["m-0", "m-1", "m-2", "m-3", "ours"]),
    ({"q": "M-2"}, ["m-2"]),
    ({"state": "running"}, ["ours"]),
    ({"state": "stopped"}, ["over"]),
    ({"health": "gone"}, ["over"]),
    ({"providerId": "aws"}, ["ours"]),
    ({"providerId": "none", "q": "m-1"}, ["m-1"]),
    ({"launchConfigId": "lc-a"}, ["ours"]),
    ({"launchConfigId": "lc-b"}, []),
]


def test_machines_that_have_ended_are_taken_only_where_they_are_named(api: RegistryApi) -> None:
    states = {"ours": State.RUNNING, "over": State.STOPPED}
    for name, state in states.items():
        worker = a_worker(name, pool_id=POOL, group="rack-1", state=state)
        api.deps.stores.workers.put_new(worker)
    for wanted, expected in PICKS:
        body = {**ALL, "filter": {"taskQueueId": POOL, **wanted}, "dryRun": True}
        workers = post(api, body)["workers"]
        assert [one["workerId"] for one in workers] == expected, wanted
        named = {one["workerId"]: one["state"] for one in workers}
        assert named == {name: states.get(name, "standalone") for name in expected}
    post(api, {**ALL, "filter": {"taskQueueId": POOL, "state": "stopped"}})
    assert held(api) == ["over"]
    assert changed(post(api, FREE)) == ["over"]


def test_asking_again_changes_nothing(api: RegistryApi) -> None:
    until = to_wire(api.clock.now + timedelta(hours=1))
    dated = {**HERE, "quarantineUntil": until}
    for body in (dated, ALL, FREE):
        assert len(changed(post(api, body))) == 4
        api.clock.advance(seconds=1)
        told = len(api.bus.events)
        again = post(api, body)
        assert (changed(again), len(again["workers"])) == ([], 4)
        assert len(api.bus.events) == told


def test_a_dry_run_tells_who_it_would_be(api: RegistryApi) -> None:
    assert len(changed(post(api, {**ALL, "dryRun": True}))) == 4
    assert held(api) == []


def test_it_is_done_some_at_a_time_while_others_come_and_go(api: RegistryApi) -> None:
    first = post(api, {**FREE, **ALL, "limit": 2})
    assert changed(first) == ["m-0", "m-1"]
    api.registry.delete_worker(WorkerKey(POOL, "rack-1", "m-1"))
    api.see("m-00")
    rest = post(api, {**ALL, "limit": 3, "continuationToken": first["continuationToken"]})
    assert changed(rest) == ["m-2", "m-3"]
    assert "continuationToken" not in rest
    # Those that were released leave what the filter finds: nobody behind them is missed.
    freeing = {**FREE, "filter": {"taskQueueId": POOL, "quarantined": True}, "limit": 1}
    freed = []
    while True:
        answer = post(api, freeing)
        freed += changed(answer)
        if "continuationToken" not in answer:
            break
        freeing["continuationToken"] = answer["continuationToken"]
    assert freed == ["m-0", "m-2", "m-3"]


def test_only_whom_the_caller_may_quarantine_is_touched(api: RegistryApi) -> None:
    answer = post(api, ALL, client="test/some")
    assert changed(answer) == ["m-1"]
    assert answer["refused"] == 3
    assert held(api) == ["m-1"]
    assert api("POST", BULK, ALL, client="test/poor").code == "InsufficientScopes"


def test_a_minute_has_only_so_many_changes(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_A_MINUTE", 3)
    first = post(api, ALL)
    assert changed(first) == ["m-0", "m-1", "m-2"]
    assert first["retryAfter"] == 60 - api.clock.now.second
    rest = {**ALL, "continuationToken": first["continuationToken"]}
    none = post(api, rest)
    assert (none["workers"], none["retryAfter"]) == ([], first["retryAfter"])
    assert none["continuationToken"] == first["continuationToken"]
    api.clock.advance(seconds=first["retryAfter"])
    last = post(api, rest)
    assert changed(last) == ["m-3"]
    assert not {"continuationToken", "retryAfter"} & last.keys()


def test_a_queue_that_does_not_answer_stops_it_where_it_is(api: RegistryApi) -> None:
    object.__setattr__(api.deps, "backend", Failing(0))
    none = post(api, ALL)
    assert (none["workers"], none["refused"], held(api)) == ([], 0, [])
    assert none["retryAfter"] == 5
    going_on = {**ALL, "continuationToken": none["continuationToken"]}
    object.__setattr__(api.deps, "backend", Failing(2))
    some = post(api, going_on)
    assert changed(some) == held(api) == ["m-0", "m-1"]
    object.__setattr__(api.deps, "backend", BuiltinBackend())
    going_on["continuationToken"] = some["continuationToken"]
    assert changed(post(api, going_on)) == ["m-2", "m-3"]


def test_it_stops_when_its_time_is_over_but_comes_further_each_time(api: RegistryApi) -> None:
    clock = api.clock

    def hurrying() -> datetime:
        clock.advance(seconds=3)
        return clock.now

    object.__setattr__(api.deps, "clock", hurrying)
    answers = [post(api, ALL)]
    while token := answers[-1].get("continuationToken"):
        answers.append(post(api, {**ALL, "continuationToken": token}))
    assert 1 < len(answers) < 9
    names = [name for answer in answers for name in changed(answer)]
    assert names == held(api) == ["m-0", "m-1", "m-2", "m-3"]


NOT_ASKED = [
    {},
    {"quarantined": True},
    {"filter": {}, "quarantined": True},
    {"filter": {"taskQueueId": POOL, "provisionerId": "proj-x"}, "quarantined": True},
    {"filter": {"provisionerId": "proj-x/builders"}, "quarantined": True},
    {"filter": {"taskQueueId": POOL, "health": "sick"}, "quarantined": True},
    {"filter": {"taskQueueId": POOL, "everybody": True}, "quarantined": True},
    HERE,
    {**ALL, "quarantineUntil": "2026-12-01T00:00:00Z"},
    {**ALL, "quarantineInfo": "x" * 4001},
    {**ALL, "limit": 101},
    {**ALL, "limit": 0},
    {**ALL, "continuationToken": "AAAA"},
    {**ALL, "continuationToken": ""},
    {**ALL, "dryRun": "yes"},
]


def test_what_is_not_clearly_asked_for_is_not_done(api: RegistryApi) -> None:
    assert [api("POST", BULK, body).status for body in NOT_ASKED] == [400] * len(NOT_ASKED)
    assert held(api) == []
