"""Runs over HTTP: who may ask for them, what is the same run, what agents may say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.action_tables import an_action
from tests.api.registry_world import BASE, POOL, TYPE, WORKER, RegistryApi
from tests.api.world import TOKEN
from worker_manager.actions.declared import to_json
from worker_manager.api.app import App
from worker_manager.api.registry import ROUTES
from worker_manager.core.ids import derived_slugid
from worker_manager.core.moments import to_wire
from worker_manager.queues import NotSentError
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

RUN = derived_slugid("run")
TARGET = "proj-x/builders/rack-1/m-1"
RUNS = f"{BASE}/action-runs"
REBOOT = f"{BASE}{WORKER}/actions/reboot"


def may(name: str, *scopes: str) -> Client:
    return Client(f"test/{name}", TOKEN, scopes)


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    run = "worker-registry:run-action:"
    api = RegistryApi(
        tables,
        clients=[
            may("reboots", f"{run}reboot:{TARGET}"),
            may("types", f"queue:get-worker-type:{POOL}"),
            may("reimages", f"{run}reimage:{TARGET}"),
            may("reimages-all", f"{run}reimage:{TARGET}", "hw:image:m-1"),
            may("reboots-m-2", f"{run}reboot:{TARGET[:-1]}2", "queue:get-worker:proj-y/*"),
            may("pings", f"{run}ping:*"),
            may("looks", f"queue:get-worker:{POOL}/*", f"queue:get-worker-type:{POOL}"),
            may("dc1", "worker-registry:agent:dc1"),
            may("dc2", "worker-registry:agent:dc2"),
        ],
    )
    declare(api, "reboot", "reimage", required_scopes=("hw:image:<workerId>",))
    api.see()
    return api


def declare(api: RegistryApi, *names: str, **fields: Any) -> None:
    actions = [to_json(an_action(name)) for name in names[:-1]]
    actions.append(to_json(an_action(names[-1], **fields)))
    api.ok("PUT", f"{BASE}{TYPE}", {"actions": actions})


def asks(run_id: str = RUN, **more: Any) -> dict[str, Any]:
    return {"requestId": run_id, **more}


def claim(api: RegistryApi, most: int = 1) -> list[Any]:
    found: list[Any] = api.ok(
        "POST", f"{BASE}/agents/dc1/claim", {"most": most}, client="test/dc1"
    )["runs"]
    return found


def beat(api: RegistryApi, lease: str, run_id: str = RUN, **said: Any) -> Any:
    body = {"leaseId": lease, **said}
    return api("POST", f"{RUNS}/{run_id}/heartbeat", body, client="test/dc1")


def test_a_run_is_asked_for_done_by_its_agent_and_over_when_the_worker_is_seen(
    api: RegistryApi,
) -> None:
    made = api.ok("POST", REBOOT, asks(reason="hangs"), client="test/reboots")
    assert (made["runId"], made["state"], made["requestedBy"]) == (RUN, "queued", "test/reboots")
    (claimed,) = claim(api)
    assert claimed["run"]["state"] == "claimed"
    lease = claimed["leaseId"]
    assert beat(api, lease, begin={"number": 1, "method": "ssh"}).body["state"] == "running"
    end = {"number": 1, "result": "no-change", "message": "still up"}
    assert beat(api, lease, end=end, begin={"number": 2, "method": "pdu"}).status == 200
    skipped = {"number": 3, "result": "skipped", "message": "ticket: nobody to tell"}
    assert beat(api, lease, end=skipped, log="waiting").status == 200
    done = {"leaseId": lease, "state": "succeeded", "message": "up again"}
    for _ in range(2):
        told = api.ok("POST", f"{RUNS}/{RUN}/resolve", done, client="test/dc1")
    assert (told["state"], told["verified"]) == ("running", to_wire(api.clock.now))
    assert "leaseUntil" not in told

    api.clock.advance(seconds=30)
    api.see()
    over = api.ok("GET", f"{RUNS}/{RUN}", client="test/looks")
    assert (over["state"], over["message"]) == ("succeeded", "the worker was seen again")
    assert [one["result"] for one in over["attempts"]] == ["no-change", "ok"]
    assert [line["text"] for line in over["log"]][-4:] == [
        "skipped: ticket: nobody to tell\nwaiting",
        "attempt 2 (pdu): ok",
        "done, the worker is waited for: up again",
        "succeeded: the worker was seen again",
    ]
    assert api.bus.names() == ["action-requested", "action-resolved"]
    assert beat(api, lease).code == "RequestConflict"


@pytest.mark.parametrize(
    ("client", "action", "missing"),
    [
        ("reimages", "reboot", [f"worker-registry:run-action:reboot:{TARGET}"]),
        ("reboots", "reimage", [f"worker-registry:run-action:reimage:{TARGET}"]),
        ("reimages", "reimage", ["hw:image:m-1"]),
        ("reboots-m-2", "reboot", [f"worker-registry:run-action:reboot:{TARGET}"]),
        ("pings", "reboot", [f"worker-registry:run-action:reboot:{TARGET}"]),
        ("looks", "quarantine", [f"worker-registry:run-action:quarantine:{TARGET}"]),
    ],
)
def test_one_actions_scope_allows_no_other_and_what_it_requires_is_needed_too(
    api: RegistryApi, client: str, action: str, missing: list[str]
) -> None:
    path = f"{BASE}{WORKER}/actions/{action}"
    refused = api("POST", path, asks(), client=f"test/{client}")

    assert (refused.status, refused.code) == (403, "InsufficientScopes")
    told = refused.message.split("The request needs")[0]
    assert [line[2:] for line in told.splitlines() if line.startswith("* ")] == missing
    assert api.runs.find(RUN) is None


def test_who_holds_both_has_it_done(api: RegistryApi) -> None:
    path = f"{BASE}{WORKER}/actions/reimage"
    assert api.ok("POST", path, asks(), client="test/reimages-all")["state"] == "queued"


def test_the_same_request_is_the_same_run_whatever_was_declared_meanwhile(
    api: RegistryApi,
) -> None:
    first = api.ok("POST", REBOOT, asks())
    api.ok("PUT", f"{BASE}{TYPE}", {"actions": []})

    assert api.ok("POST", REBOOT, asks()) == first
    assert api("POST", REBOOT, asks(derived_slugid("other"))).status == 404
    for path, body, client in (
        (REBOOT, asks(params={"x": 1}), "test/root"),
        (REBOOT, asks(), "test/reboots"),
        (f"{BASE}{WORKER}/actions/quarantine", asks(), "test/root"),
        (f"{BASE}{TYPE}/workers/rack-1/m-2/actions/quarantine", asks(), "test/root"),
    ):
        assert api("POST", path, body, client=client).code == "RequestConflict"


def test_a_name_that_means_two_actions_needs_a_level(api: RegistryApi) -> None:
    api.ok("PUT", f"{BASE}/provisioners/proj-x", {"actions": [to_json(an_action())]})

    assert api("POST", REBOOT, asks()).code == "RequestConflict"
    assert api.ok("POST", REBOOT, asks(level="provisioner"))["declaredAt"] == "provisioner"
    again = api.ok("POST", REBOOT, asks(level="provisioner"))
    assert again["runId"] == RUN
    assert api("POST", REBOOT, asks(level="worker-type")).code == "RequestConflict"


def test_what_is_done_to_workers_is_not_done_to_their_type(api: RegistryApi) -> None:
    refused = api("POST", f"{BASE}{TYPE}/actions/reboot", asks())
    assert (refused.status, refused.code) == (400, "InputError")


def test_only_its_own_agent_may_speak_of_a_run(api: RegistryApi) -> None:
    api.ok("POST", REBOOT, asks())
    (claimed,) = claim(api)
    body = {"leaseId": claimed["leaseId"]}

    for path, more in (("heartbeat", {}), ("resolve", {"state": "failed"})):
        refused = api("POST", f"{RUNS}/{RUN}/{path}", body | more, client="test/dc2")
        assert (refused.status, refused.code) == (403, "InsufficientScopes")
    assert api("POST", f"{BASE}/agents/dc1/claim", {}, client="test/dc2").status == 403
    nobody = api("POST", f"{RUNS}/{RUN}/heartbeat", body, client=None)
    assert nobody.status in (401, 403)
    assert api("GET", f"{RUNS}/{RUN}", client="test/dc1").status == 403
    missing = f"{RUNS}/{derived_slugid('none')}"
    assert api("POST", f"{missing}/heartbeat", body).status == 404


def test_our_own_actions_are_handed_on_and_no_agents(api: RegistryApi) -> None:
    for _ in range(2):
        api.ok("POST", f"{BASE}{WORKER}/actions/quarantine", asks())

    assert [message.body for message in api.act.messages] == [{"kind": "act", "run": RUN}] * 2
    assert api("POST", f"{RUNS}/{RUN}/heartbeat", asks_lease(), client="test/dc1").status == 403


def asks_lease() -> dict[str, str]:
    return {"leaseId": derived_slugid("lease")}


def test_a_queue_that_takes_nothing_delays_a_run_and_does_not_lose_it(api: RegistryApi) -> None:
    api.act.error = NotSentError("down")
    assert api.ok("POST", f"{BASE}{WORKER}/actions/quarantine", asks())["state"] == "queued"


def test_a_cancelled_run_is_over_at_once_and_its_agent_is_told(api: RegistryApi) -> None:
    api.ok("POST", REBOOT, asks())
    (claimed,) = claim(api)
    cancel = f"{RUNS}/{RUN}/cancel"

    assert api("POST", cancel, {}, client="test/looks").status == 403
    over = api.ok("POST", cancel, {"reason": "wrong one"}, client="test/reboots")
    assert (over["state"], over["message"]) == (
        "cancelled",
        "cancelled by test/reboots: wrong one",
    )
    begin = {"number": 1, "method": "ssh"}
    assert beat(api, claimed["leaseId"], begin=begin).code == "RequestConflict"
    assert api.ok("POST", cancel, {})["state"] == "cancelled"


def test_runs_are_listed_by_worker_and_by_queue(api: RegistryApi) -> None:
    for number in range(3):
        api.clock.advance(seconds=1)
        run_id = derived_slugid("run", number)
        api.ok("POST", REBOOT, asks(run_id, reason="x" * 3000))
        api.ok("POST", f"{RUNS}/{run_id}/cancel", {})
    deps: Any = replace(api.deps, page_bytes=8_000)
    routes: Any = ROUTES
    api.app = App(routes, deps)

    for path in (
        f"{BASE}{WORKER}/action-runs",
        f"{BASE}/task-queues/{quote(POOL, safe='')}/action-runs",
    ):
        found, query = [], "limit=2"
        while query:
            page = api.ok("GET", path, query=query, client="test/looks")
            assert len(page["runs"]) == 1
            found += [run["runId"] for run in page["runs"]]
            token = page.get("continuationToken")
            query = f"limit=2&continuationToken={token}" if token else ""
        assert found == [derived_slugid("run", number) for number in (2, 1, 0)]
        assert api("GET", path, query="continuationToken=abc").status == 400
        assert api("GET", path, client="test/reboots").status == 403
        assert api("GET", path, client="test/types").status == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"requestId": "short"},
        asks(level="somewhere"),
        asks(params=[]),
        asks(params={"x": "y" * 5000}),
        asks(reason="x" * 4001),
        asks(reason="\x00"),
        asks(unknown=1),
    ],
)
def test_a_request_that_is_not_right_is_refused(api: RegistryApi, body: Any) -> None:
    assert api("POST", REBOOT, body).status == 400
    assert api.runs.find(RUN) is None
