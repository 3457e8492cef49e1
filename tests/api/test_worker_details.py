"""All that is known of one worker, and task queues and workers in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.registry_world import BASE, POOL, TYPE, WORKER, RegistryApi
from tests.api.world import TOKEN
from tests.factories import NOW, a_worker
from worker_manager.api import worker_stats
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import State, Surplus, WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.observations import Kind, Observation
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

HOUR = timedelta(hours=1)
KEY = WorkerKey(POOL, "rack-1", "m-1")
DETAILS = f"{BASE}/workers/proj-x%2Fbuilders/rack-1/m-1"
STATS = f"{BASE}/task-queues/proj-x%2Fbuilders/stats"
RUNS = [derived_slugid("run", number) for number in range(30)]


@dataclass
class TellingBackend(BuiltinBackend):
    """A queue that tells how runs ended when it is asked, as one elsewhere does."""

    ends: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    answers: int = 1000

    def outcome(self, key: WorkerKey, task_id: str, run_id: int) -> Observation | None:
        self.asked.append(task_id)
        if len(self.asked) > self.answers:
            raise QueueUnavailableError("told to fail")
        if task_id not in self.ends:
            return None
        state = self.ends[task_id]
        return Observation(
            key, Kind.RESOLVE, NOW, task_id=task_id, run_id=run_id, state=state, reason=state
        )


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    scopes = ("queue:get-worker:proj-x/builders/*", "queue:list-task-queues")
    return RegistryApi(tables, clients=[Client("test/x", TOKEN, scopes)])


def tells(api: RegistryApi, **how: Any) -> TellingBackend:
    backend = TellingBackend(**how)
    object.__setattr__(api.deps, "backend", backend)
    return backend


def claim(api: RegistryApi, *tasks: str, key: WorkerKey = KEY) -> None:
    api.registry.observe(
        Observation(key, Kind.CLAIM, api.clock.now, task_id=task, run_id=0) for task in tasks
    )


def end(api: RegistryApi, task: str, state: str, *, key: WorkerKey = KEY) -> None:
    now = api.clock.now
    api.registry.observe(
        [Observation(key, Kind.RESOLVE, now, task_id=task, run_id=0, state=state, reason=state)]
    )


def test_every_part_says_whose_word_it_is(api: RegistryApi) -> None:
    surplus = Surplus(terminate=False, reason="needed", decided=NOW)
    mine = {"decision": "t-1", "surplus": surplus, "registered": NOW - HOUR / 2}
    api.deps.stores.workers.put_new(
        a_worker("m-1", pool_id=POOL, group="rack-1", boot_time=NOW - HOUR, **mine)
    )
    claim(api, RUNS[0], RUNS[1])
    end(api, RUNS[0], "completed")
    api.ok("PUT", f"{BASE}{TYPE}", {"hardware": True})
    said = {"extra": {"slot": 7}, "capacity": 2, "bootTime": to_wire(NOW - HOUR / 4)}
    api.ok("PUT", f"{BASE}{TYPE}/rack-1/m-1", said)
    api.ok("PUT", f"{BASE}{WORKER}", {"quarantined": True, "quarantineInfo": "noisy"})
    found = api.ok("GET", DETAILS)
    now = to_wire(NOW)
    run = {"taskId": RUNS[1], "runId": 0}
    assert found["workerManager"] == {
        "source": "worker-manager",
        "asOf": to_wire(NOW - HOUR),
        "state": "running",
        "providerId": "aws",
        "providerType": "aws",
        "launchConfigId": "lc-a",
        "capacity": 1,
        "created": to_wire(NOW - HOUR),
        "lastModified": to_wire(NOW - HOUR),
        "lastChecked": to_wire(NOW - HOUR),
        "registered": to_wire(NOW - HOUR / 2),
        "registrations": [to_wire(NOW - HOUR / 2)],
        "bootTime": to_wire(NOW - HOUR),
        "decisionId": "t-1",
        "shouldTerminate": {"terminate": False, "reason": "needed", "decided": now},
    }
    ended = {"claimed": now, "state": "completed", "reasonResolved": "completed", "resolved": now}
    observed = found["observed"]
    assert observed.pop("recentTasks") == sorted(
        [{"taskId": RUNS[0], "runId": 0, **ended}, {**run, "claimed": now}],
        key=lambda one: str(one["taskId"]),
    )
    assert observed == {
        "source": "observed",
        "asOf": now,
        "firstDateActive": now,
        "lastDateActive": now,
        "firstClaim": now,
        "expires": "3026-01-01T00:00:00.000Z",
        "running": [run],
        "queueAnswers": True,
    }
    assert found["declared"] == {"source": "declared", "asOf": now, **said}
    quarantine = found["quarantine"]
    assert [change["quarantineInfo"] for change in quarantine.pop("history")] == ["noisy"]
    assert quarantine.pop("quarantineUntil") == "3026-01-01T00:00:00.000Z"
    assert quarantine == {
        "source": "declared",
        "asOf": now,
        "inForce": True,
        "quarantineInfo": "noisy",
        "quarantinedBy": "test/root",
    }
    assert found["group"]["lastDateActive"] == now
    assert found["taskQueue"]["hardware"] is True
    assert found["figures"] == {
        "health": "ok",
        "lastClaim": now,
        "upSince": to_wire(NOW - HOUR / 4),
        "uptimeSeconds": 900,
        "uptimeIsApproximate": False,
        "runs": 1,
    }


def test_whoever_alone_knows_a_worker_is_enough(api: RegistryApi) -> None:
    assert api("GET", DETAILS).code == "ResourceNotFound"
    worker = a_worker("m-1", pool_id=POOL, group="rack-1", state=State.STOPPED)
    api.deps.stores.workers.put_new(worker)
    assert {"observed", "declared", "quarantine", "group", "taskQueue"}.isdisjoint(
        api.ok("GET", DETAILS)
    )
    api.clock.advance(days=9)
    assert api("GET", DETAILS).status == 404
    api.ok("PUT", f"{BASE}{WORKER}", {"quarantined": True})
    found = api.ok("GET", DETAILS)
    assert found["quarantine"]["inForce"] is True
    assert {"workerManager", "observed", "declared"}.isdisjoint(found)
    assert found["figures"] == {"health": "unknown", "runs": 0}


def test_who_was_only_declared_was_observed_by_nobody(api: RegistryApi) -> None:
    api.ok("PUT", f"{BASE}{TYPE}/rack-1/m-1", {"capacity": 2})
    found = api.ok("GET", DETAILS)
    assert found["declared"] == {"source": "declared", "asOf": to_wire(NOW), "capacity": 2}
    assert "observed" not in found
    assert found["figures"] == {"health": "unknown", "runs": 0}
    api.ok("PUT", f"{BASE}{TYPE}/rack-1/m-1", {"bootTime": to_wire(NOW - HOUR)})
    assert api.ok("GET", DETAILS)["figures"]["uptimeSeconds"] == 3600
    api.see()
    found = api.ok("GET", DETAILS)
    assert found["observed"]["firstDateActive"] == to_wire(NOW)
    assert found["figures"]["health"] == "ok"


def test_ends_that_nobody_told_of_are_asked_for_once(api: RegistryApi) -> None:
    backend = tells(api, ends={RUNS[0]: "completed", RUNS[1]: "failed"})
    claim(api, *RUNS[:3])
    observed = api.ok("GET", DETAILS)["observed"]
    assert observed["running"] == [{"taskId": RUNS[2], "runId": 0}]
    assert {one.get("state") for one in observed["recentTasks"]} == {"completed", "failed", None}
    assert sorted(backend.asked) == sorted(RUNS[:3])
    backend.asked.clear()
    assert api.ok("GET", DETAILS)["observed"] == observed
    assert backend.asked == [RUNS[2]]


def test_no_more_than_twenty_ends_are_asked_for_at_once(api: RegistryApi) -> None:
    backend = tells(api)
    claim(api, *RUNS)
    assert len(api.ok("GET", DETAILS)["observed"]["running"]) == 30
    assert len(backend.asked) == 20


def test_a_queue_that_does_not_answer_leaves_the_rest_to_be_told(api: RegistryApi) -> None:
    backend = tells(api, ends=dict.fromkeys(RUNS, "completed"), answers=1)
    claim(api, *RUNS[:3])
    observed = api.ok("GET", DETAILS)["observed"]
    assert len(observed["running"]) == 2
    assert observed["queueAnswers"] is False
    assert len(backend.asked) == 2


def test_only_who_may_get_a_worker_is_told_all(api: RegistryApi) -> None:
    api.see()
    api.see(pool="proj-y/testers")
    api.ok("GET", DETAILS, client="test/x")
    api.ok("GET", f"{BASE}{WORKER}/stats", client="test/x")
    other = f"{BASE}/workers/proj-y%2Ftesters/rack-1/m-1"
    assert api("GET", other, client="test/x").code == "InsufficientScopes"
    assert api("GET", STATS, client="test/x").code == "InsufficientScopes"
    assert api("GET", f"{BASE}/workers/proj-x/rack-1/m-1").status == 400


def test_a_worker_in_numbers(api: RegistryApi) -> None:
    api.see()
    for task in RUNS[:4]:
        end(api, task, "failed")
    end(api, RUNS[4], "completed")
    api.clock.advance(hours=1)
    assert api.ok("GET", f"{BASE}{WORKER}/stats") == {
        "taskQueueId": POOL,
        "workerGroup": "rack-1",
        "workerId": "m-1",
        "health": "failing",
        "lastClaim": to_wire(NOW),
        "upSince": to_wire(NOW),
        "uptimeSeconds": 3600,
        "uptimeIsApproximate": True,
        "runs": 5,
        "failureRate": 0.8,
        "exceptionRate": 0.0,
    }
    assert api("GET", f"{BASE}{WORKER}2/stats").status == 404


def a_busy_queue(api: RegistryApi) -> None:
    """Five workers: one holds a task, one is in quarantine, one is gone."""
    for number in range(5):
        api.see(f"m-{number}")
    claim(api, RUNS[0])
    for task in RUNS[1:6]:
        end(api, task, "completed", key=WorkerKey(POOL, "rack-1", "m-2"))
    api.ok("PUT", f"{BASE}{TYPE}/workers/rack-1/m-3", {"quarantined": True})
    api.registry.gone(WorkerKey(POOL, "rack-1", "m-4"), at=NOW + HOUR)
    api.queue.set_counts(POOL, pending=7, claimed=1)


QUEUE_STATS = {
    "workers": {"total": 4, "idle": 2, "quarantined": 1, "claimed": 1},
    "pendingTasks": 7,
    "claimedTasks": 1,
    "runs": 5,
    "failureRate": 0.0,
    "exceptionRate": 0.0,
    "lastDateActive": to_wire(NOW),
}


def test_a_task_queue_in_numbers(api: RegistryApi) -> None:
    assert api("GET", STATS).status == 404
    a_busy_queue(api)
    assert api.ok("GET", STATS) == {"taskQueueId": POOL, **QUEUE_STATS}
    api.queue.set_counts(POOL, pending=0, claimed=0)
    told = api.ok("GET", STATS)
    assert (told["claimedTasks"], told["workers"]["claimed"]) == (0, 1), "another queue's task"
    api.queue.fail()
    silent = api.ok("GET", STATS)
    assert silent["unavailable"]
    assert not {"pendingTasks", "claimedTasks"} & silent.keys()


def test_task_queues_are_listed_with_their_numbers_if_so_asked(api: RegistryApi) -> None:
    a_busy_queue(api)
    for number in range(9):
        api.see(pool=f"proj-y/queue-{number}")
    plain = api.ok("GET", f"{BASE}/task-queues")
    counted = api.ok("GET", f"{BASE}/task-queues", query="stats=true")
    stats = [one.pop("stats") for one in counted["taskQueues"]]
    assert counted == plain
    assert stats[0] == QUEUE_STATS
    page = api.ok("GET", f"{BASE}/task-queues", query="stats=true&limit=3")
    assert len(page["taskQueues"]) == 3
    token = f"stats=true&continuationToken={page['continuationToken']}"
    assert len(api.ok("GET", f"{BASE}/task-queues", query=token)["taskQueues"]) == 7
    poor = api.ok("GET", f"{BASE}/task-queues", query="stats=true", client="test/x")
    assert all("stats" not in one for one in poor["taskQueues"])


def test_a_page_with_numbers_ends_when_its_time_is_over(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(11):
        api.see(pool=f"proj-y/queue-{number:02}")
    monkeypatch.setattr(worker_stats, "PATIENCE", timedelta())
    page = api.ok("GET", f"{BASE}/task-queues", query="stats=true")
    assert len(page["taskQueues"]) == 8
    token = f"stats=true&continuationToken={page['continuationToken']}"
    rest = api.ok("GET", f"{BASE}/task-queues", query=token)
    assert [one["taskQueueId"] for one in rest["taskQueues"]] == [
        f"proj-y/queue-{number:02}" for number in range(8, 11)
    ]
    assert "continuationToken" not in rest
