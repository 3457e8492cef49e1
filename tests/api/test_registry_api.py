"""The registry's methods: what is shown, for how long, who may say what of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest

from tests.api.registry_world import BASE, POOL, TYPE, WORKER, RegistryApi
from tests.api.world import TOKEN
from tests.factories import NOW
from worker_manager.api.registry import ROUTES
from worker_manager.api.routing import Route
from worker_manager.core.ids import derived_slugid
from worker_manager.core.moments import to_wire
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

DAY = timedelta(days=1)
TASK = derived_slugid("task")


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    return RegistryApi(
        tables,
        clients=[
            Client("test/x", TOKEN, ("queue:*:proj-x/*", "queue:quarantine-worker:proj-x/*")),
            Client("test/describes", TOKEN, (f"queue:declare-worker-type:{POOL}#description",)),
            Client("test/observes", TOKEN, ("worker-registry:observe:proj-x/*",)),
        ],
    )


def shown(api: RegistryApi, what: str = f"{TYPE}/workers", **query: str) -> list[str]:
    """Names of what a list has, over all its pages."""
    names: list[str] = []
    while True:
        answer = api.ok("GET", f"{BASE}{what}", query=urlencode(query))
        (items,) = (value for value in answer.values() if isinstance(value, list))
        for item in items:
            for key in ("workerId", "taskQueueId", "provisionerId", "workerGroup"):
                if key in item:
                    names.append(item[key])
                    break
        if "continuationToken" not in answer:
            return names
        query["continuationToken"] = answer["continuationToken"]


def test_what_called_is_listed_at_every_level(api: RegistryApi) -> None:
    api.see()
    api.see("m-2", pool="proj-y/testers", group="rack-2")

    assert shown(api, "/provisioners") == ["proj-x", "proj-y"]
    assert shown(api, "/provisioners/proj-x/worker-types") == [POOL]
    assert shown(api, "/task-queues") == [POOL, "proj-y/testers"]
    assert shown(api) == ["m-1"]
    groups = api.ok("GET", f"{BASE}/task-queues/{quote(POOL, safe='')}/groups")
    assert [group["workerGroup"] for group in groups["workerGroups"]] == ["rack-1"]
    assert api.ok("GET", f"{BASE}/provisioners/proj-x") == {
        "provisionerId": "proj-x",
        "actions": [],
        "stability": "experimental",
        "description": "",
        "lastDateActive": to_wire(api.clock.now),
        "expires": to_wire(api.clock.now + 5 * DAY),
    }
    assert api.ok("GET", f"{BASE}{WORKER}")["expires"] == to_wire(api.clock.now + DAY)
    assert shown(api, "/provisioners/nobody/worker-types") == []


def test_metadata_makes_a_type_stick_for_thirty_days_and_no_longer(api: RegistryApi) -> None:
    api.see()
    metadata = {"payloadSchema": {"type": "object", "x": 1.0}, "documentation": "# Builders"}
    moment = timedelta(milliseconds=1)
    began = api.clock.now

    def at(age: timedelta) -> tuple[list[str], list[str]]:
        api.clock.now = began + age
        return shown(api, "/task-queues"), shown(api, "/provisioners")

    assert at(5 * DAY - moment) == ([POOL], ["proj-x"])
    assert at(5 * DAY) == ([], [])
    api.ok("PUT", f"{BASE}{TYPE}/metadata", metadata)
    assert at(5 * DAY) == ([POOL], ["proj-x"])
    assert api.ok("GET", f"{BASE}{TYPE}/metadata") == {
        **metadata,
        "updated": to_wire(began + 5 * DAY),
        "updatedBy": "test/root",
    }
    api.ok("DELETE", f"{BASE}{TYPE}/metadata")
    assert at(6 * DAY) == ([], [])
    api.ok("PUT", f"{BASE}{TYPE}/metadata", metadata)
    assert at(30 * DAY - moment) == ([POOL], ["proj-x"])
    assert at(30 * DAY) == ([], [])
    # It is not gone: it comes back with the next sighting, metadata and all.
    assert api.ok("GET", f"{BASE}{TYPE}")["workerType"] == "builders"
    api.see()
    assert at(59 * DAY) == ([POOL], ["proj-x"])
    assert api.ok("GET", f"{BASE}{TYPE}/metadata")["documentation"] == "# Builders"


def test_metadata_of_a_type_nobody_has_seen_waits_for_it(api: RegistryApi) -> None:
    api.ok("PUT", f"{BASE}{TYPE}/metadata", {"documentation": "soon"})

    assert shown(api, "/task-queues") == []
    assert shown(api, "/task-queues", includeInactive="true") == [POOL]
    assert "lastDateActive" not in api.ok("GET", f"{BASE}{TYPE}")
    assert "lastDateActive" not in api.ok("GET", f"{BASE}/provisioners/proj-x")
    api.see()
    api.clock.advance(days=29)
    assert shown(api, "/task-queues") == [POOL]
    assert api("GET", f"{BASE}/provisioners/other/worker-types/no/metadata").status == 404
    assert api("DELETE", f"{BASE}/provisioners/other/worker-types/no/metadata").status == 404


def test_a_declared_window_counts_from_each_sighting(api: RegistryApi) -> None:
    expires = to_wire(api.clock.now + timedelta(hours=2))
    said = {"expires": expires, "description": "for tests", "stability": "stable"}
    api.ok("PUT", f"{BASE}{TYPE}", said)
    assert shown(api, "/task-queues") == []
    assert shown(api, "/provisioners") == []
    assert shown(api, "/provisioners", includeInactive="true") == ["proj-x"]
    api.see()
    api.clock.advance(hours=1.9)
    assert shown(api, "/task-queues") == [POOL]
    api.see()
    api.clock.advance(hours=1.9)
    assert shown(api, "/task-queues") == [POOL]
    api.clock.advance(hours=0.1)
    assert shown(api, "/task-queues") == []
    found = api.ok("GET", f"{BASE}{TYPE}")
    assert (found["description"], found["stability"]) == ("for tests", "stable")
    assert api.ok("PUT", f"{BASE}{TYPE}", {"description": ""})["description"] == ""
    assert api.ok("GET", f"{BASE}{TYPE}")["stability"] == "stable"
    api.ok("PUT", f"{BASE}{TYPE}", {"expires": None})
    assert shown(api, "/task-queues") == [POOL]


def test_a_provisioner_that_was_declared_is_shown_for_thirty_days(api: RegistryApi) -> None:
    api.see()
    said = {"description": "ours", "expires": to_wire(api.clock.now + 90 * DAY)}
    found = api.ok("PUT", f"{BASE}/provisioners/proj-x", said)
    assert found["expires"] == to_wire(api.clock.now + 30 * DAY)
    api.clock.advance(days=29)

    assert shown(api, "/provisioners") == ["proj-x"]
    api.clock.advance(days=1)
    assert shown(api, "/provisioners") == []


def test_machines_that_stay_may_be_silent_for_two_weeks(api: RegistryApi) -> None:
    api.see()
    api.clock.advance(days=2)
    assert shown(api) == []
    assert api.ok("PUT", f"{BASE}{TYPE}", {"hardware": True})["hardware"] is True
    assert shown(api) == ["m-1"]
    api.clock.advance(days=12)
    assert shown(api) == []


def test_a_worker_can_be_declared_and_its_end_never_moves_backward(api: RegistryApi) -> None:
    path = f"{BASE}{TYPE}/rack-1/m-1"
    later, earlier = (to_wire(api.clock.now + days * DAY) for days in (3, 2))
    said = {"expires": later, "bootTime": to_wire(api.clock.now), "extra": {"rack": 7}}
    found = api.ok("PUT", path, said)

    assert found["expires"] == later
    assert found["extra"] == {"rack": 7}
    assert "firstClaim" not in found
    assert api.ok("PUT", path, {"expires": earlier, "capacity": 4})["expires"] == later
    found = api.ok("GET", f"{BASE}{WORKER}")
    assert (found["capacity"], found["bootTime"]) == (4, said["bootTime"])
    assert shown(api, "/task-queues") == [POOL]
    found = api.ok("PUT", path, {"expires": None, "bootTime": None, "capacity": None})
    assert found["expires"] == later
    assert not found.keys() & {"bootTime", "capacity"}
    assert found["extra"] == {"rack": 7}


def test_pages_lead_to_everything_while_things_come_and_go(api: RegistryApi) -> None:
    for number in range(7):
        api.see(f"m-{number}")
        api.see("w", pool=f"proj-{number}/builders")
        api.see("w", pool="proj-0/builders", group=f"rack-{number}")

    groups = "/task-queues/proj-0%2Fbuilders/groups"
    for what in ("/task-queues", "/provisioners", f"{TYPE}/workers", groups):
        everything = shown(api, what)
        assert shown(api, what, limit="2") == everything
        assert len(everything) >= 7
    first = api.ok("GET", f"{BASE}{TYPE}/workers", query=urlencode({"limit": "3"}))
    api.ok("DELETE", f"{BASE}{TYPE}/workers/rack-1/m-2")
    rest = shown(api, limit="3", continuationToken=first["continuationToken"])
    assert rest == ["m-3", "m-4", "m-5", "m-6"]
    assert (
        api("GET", f"{BASE}{TYPE}/workers", query=urlencode({"continuationToken": "x"})).status
        == 400
    )


def test_those_in_quarantine_are_found_before_a_page_is_cut(api: RegistryApi) -> None:
    for number in range(9):
        api.see(f"m-{number}")
    for number in (2, 7):
        worker = f"{BASE}{TYPE}/workers/rack-1/m-{number}"
        api.ok("PUT", worker, {"quarantined": True, "quarantineInfo": "noisy"})

    page = api.ok(
        "GET", f"{BASE}{TYPE}/workers", query=urlencode({"quarantined": "true", "limit": "2"})
    )
    assert [worker["workerId"] for worker in page["workers"]] == ["m-2", "m-7"]
    assert len(shown(api, quarantined="false", limit="2")) == 7


def test_a_quarantine_is_put_explained_lifted_and_told(api: RegistryApi) -> None:
    until = to_wire(api.clock.now + DAY)
    api.ok("PUT", f"{BASE}{WORKER}", {"quarantineUntil": until})
    api.clock.advance(minutes=1)
    api.ok("PUT", f"{BASE}{WORKER}", {"quarantined": False, "quarantineInfo": "mended"})

    found = api.ok("GET", f"{BASE}{WORKER}")
    first, second = found["quarantineDetails"]
    assert (first["quarantineUntil"], first["quarantineInfo"]) == (until, "[unspecified]")
    assert (second["clientId"], second["quarantineInfo"]) == ("test/root", "mended")
    listed = api.ok("GET", f"{BASE}{WORKER}/quarantines")["quarantines"]
    assert listed == [second, first]
    assert api.bus.names() == ["worker-quarantined", "worker-released"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"quarantined": True, "quarantineUntil": "2027-01-01T00:00:00.000Z"},
        {"quarantined": "yes"},
        {"quarantineUntil": "tomorrow"},
        {"quarantineUntil": 1795953600},
        {"quarantineUntil": "9999-12-31T23:59:59.999Z"},
        {"quarantined": True, "quarantineInfo": "x" * 4001},
        {"quarantined": True, "other": 1},
    ],
)
def test_a_quarantine_that_makes_no_sense_names_what_is_wrong(api: RegistryApi, body: Any) -> None:
    answer = api("PUT", f"{BASE}{WORKER}", body)

    assert answer.status == 400
    assert "uarantin" in answer.message or "other" in answer.message
    assert api("GET", f"{BASE}{WORKER}").status == 404


def test_a_whole_type_is_closed_and_opened(api: RegistryApi) -> None:
    path = f"{BASE}/task-queues/{quote(POOL, safe='')}/quarantine"
    closed = {
        "closedUntil": to_wire(api.clock.now + DAY),
        "closedAt": to_wire(api.clock.now),
        "closedBy": "test/root",
        "closedInfo": "power",
    }
    body = {"quarantineUntil": closed["closedUntil"], "quarantineInfo": "power"}
    assert api("PUT", path, {"quarantined": False}).status == 404
    answers = [
        api.ok("PUT", path, body),
        api.ok("GET", f"{BASE}{TYPE}"),
        api.ok("GET", path.replace("quarantine", "stats")),
    ]
    for answer in answers:
        assert closed.items() <= answer.items()
    opened = api.ok("PUT", path, {"quarantined": False})
    assert not opened.keys() & closed.keys()
    refused = api("PUT", path, {"quarantined": True}, client="test/poor")
    assert refused.status == 403
    assert api.bus.names() == ["task-queue-closed", "task-queue-opened"]


def observation(**fields: Any) -> dict[str, Any]:
    return {
        "taskQueueId": POOL,
        "workerGroup": "rack-1",
        "workerId": "m-1",
        "kind": "claim",
        "taskId": TASK,
        "runId": 0,
        **fields,
    }


def test_what_another_queue_saw_is_taken_in_once(api: RegistryApi) -> None:
    at = to_wire(api.clock.now)
    seen = [
        observation(kind="resolve", state="failed", reason="failed", at=at),
        observation(at=at),
    ]
    for _ in range(2):
        assert api.ok("POST", f"{BASE}/observations", {"observations": seen}) == {"observed": 2}

    (task,) = api.ok("GET", f"{BASE}{WORKER}")["recentTasks"]
    assert task == {
        "taskId": TASK,
        "runId": 0,
        "claimed": at,
        "state": "failed",
        "reasonResolved": "failed",
        "resolved": at,
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kind": "claim", "taskId": None}, "observations[0].taskId: is missing"),
        ({"kind": "resolve"}, "observations[0].state: is missing"),
        ({"kind": "idle"}, "observations[0].taskId: is not for idle"),
        ({"kind": "reclaim", "state": "failed"}, "observations[0].state: is not for reclaim"),
        ({"kind": "sleeps"}, "kind"),
        ({"runId": -1}, "runId"),
        ({"workerId": "a/b"}, "workerId"),
        ({"taskQueueId": "proj-x"}, "taskQueueId"),
        ({"at": to_wire(NOW - 31 * DAY)}, "observations[0].at: is more than 30 days ago"),
        ({"at": to_wire(NOW + DAY / 24)}, "observations[0].at: is in the future"),
    ],
)
def test_an_observation_that_cannot_be_is_refused_by_name(
    api: RegistryApi, fields: dict[str, Any], named: str
) -> None:
    one = {"at": to_wire(api.clock.now), **observation(**fields)}
    one = {name: value for name, value in one.items() if value is not None}
    answer = api("POST", f"{BASE}/observations", {"observations": [one]})

    assert answer.status == 400
    assert named in answer.message


def test_who_tells_of_a_queue_may_tell_of_no_other(api: RegistryApi) -> None:
    at = to_wire(api.clock.now)
    ours, others = observation(at=at), observation(at=at, taskQueueId="proj-y/testers")
    told = {"observations": [ours, others]}

    refused = api("POST", f"{BASE}/observations", told, client="test/observes")
    assert refused.status == 403
    assert "worker-registry:observe:proj-y/testers" in refused.message
    assert shown(api, "/task-queues") == []
    told = {"observations": [ours]}
    assert api("POST", f"{BASE}/observations", told, client="test/observes").status == 200


OURS = [
    (route.method, route.path.replace("<workerGroup>", "rack-1").replace("<workerId>", "m-1"))
    for route in ROUTES
    if route.service == "worker-registry"
    and not route.is_public
    and route.is_published
    # What a run takes is known once it is found: see ``test_action_runs``.
    and "<actionRunId>" not in route.path
]
BODIES: dict[str, Any] = {
    "/quarantine": {"quarantined": True},
    "/metadata": {"documentation": "x"},
    "/observations": {"observations": [{"at": "2026-11-30T12:00:00.000Z", **observation()}]},
    "/workers/rack-1/m-1": {"quarantined": True},
}


def _body(path: str) -> Any:
    bodies = [body for end, body in BODIES.items() if path.endswith(end)]
    return bodies[0] if bodies else {"description": "x"}


@pytest.mark.parametrize(("method", "path"), OURS)
def test_nobody_may_do_anything_without_its_scope(api: RegistryApi, method: str, path: str) -> None:
    for name, value in (
        ("provisionerId", "proj-x"),
        ("workerType", "builders"),
        ("taskQueueId", "proj-x%2Fbuilders"),
    ):
        path = path.replace(f"<{name}>", value)
    body = _body(path) if method in ("PUT", "POST") else None
    if path.endswith("builders/rack-1/m-1"):
        body = {"capacity": 1}
    for client in ("test/poor", None):
        assert api(method, f"{BASE}{path}", body, client=client).status == 403, path


def test_other_peoples_pools_are_not_ones_own(api: RegistryApi) -> None:
    theirs = "/provisioners/proj-y/worker-types/testers"
    for method, path, body in (
        ("PUT", f"{theirs}/workers/rack-1/m-1", {"quarantined": True}),
        ("PUT", theirs, {"description": "mine now"}),
        ("PUT", f"{theirs}/metadata", {"documentation": "mine now"}),
        ("PUT", f"{theirs}/rack-1/m-1", {"capacity": 2}),
        ("DELETE", theirs, None),
        ("GET", f"{theirs}/workers", None),
    ):
        assert api(method, f"{BASE}{path}", body, client="test/x").status == 403, path
    assert api.ok("GET", f"{BASE}/task-queues", query=urlencode({"includeInactive": "true"})) == {
        "taskQueues": []
    }


def test_each_property_has_a_scope_of_its_own(api: RegistryApi) -> None:
    def declare(**said: Any) -> int:
        return int(api("PUT", f"{BASE}{TYPE}", said, client="test/describes").status)

    assert declare(description="ours") == 200
    assert declare(description="ours", stability="stable") == 403
    assert declare(hardware=True) == 403
    assert declare() == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{TYPE}/metadata", {"documentation": "x" * 65_537}),
        (f"{TYPE}/metadata", {"documentation": "\u20ac" * 21_846}),
        (f"{TYPE}/metadata", {"payloadSchema": {"x": "y" * 65_537}}),
        (f"{TYPE}/metadata", {"documentation": "\x01", "payloadSchema": {}}),
        (f"{TYPE}/metadata", {"payloadSchema": []}),
        (f"{TYPE}/metadata", {}),
        (f"{TYPE}/rack-1/m-1", {"extra": {"x": "y" * 16_385}}),
        (f"{TYPE}/rack-1/m-1", {}),
        (f"{TYPE}/rack-1/m-1", {"capacity": 0}),
        (f"{TYPE}/rack-1/m-1", {"expires": to_wire(NOW)}),
        (f"{TYPE}/rack-1/m-1", {"bootTime": to_wire(NOW + timedelta(minutes=6))}),
        (WORKER, {"quarantineUntil": to_wire(NOW)}),
        (WORKER, {"quarantined": False}),
        (TYPE, {"expires": "2020-01-01T00:00:00.000Z"}),
        (TYPE, {"stability": "rock"}),
        ("/provisioners/proj-x", {"description": "x" * 10_241}),
        ("/provisioners/proj-x/worker-types/BUILDERS", {"description": "x"}),
        ("/provisioners/proj-x/worker-types/BUILDERS/workers/a/b", {"quarantined": True}),
        ("/provisioners/proj-x/worker-types/b_c/metadata", {"documentation": "x"}),
    ],
)
def test_what_is_too_large_or_senseless_is_refused_and_not_kept(
    api: RegistryApi, path: str, body: Any
) -> None:
    answer = api("PUT", f"{BASE}{path}", body)
    assert answer.status == (404 if path == WORKER else 400)
    assert shown(api, includeInactive="true") == []
    assert shown(api, "/task-queues", includeInactive="true") == []
    assert shown(api, "/provisioners", includeInactive="true") == []


@pytest.mark.parametrize(
    "name", ["..", "a%2Fb", "a%23b", "%C3%A9", "x" * 39, "a%0A", "a%20b", "%00", "a:b"]
)
@pytest.mark.parametrize("where", ["provisioner", "type", "group", "worker"])
def test_hostile_names_are_refused(api: RegistryApi, name: str, where: str) -> None:
    names = {"provisioner": "proj-x", "type": "builders", "group": "rack-1", "worker": "m-1"}
    names[where] = name
    path = "/provisioners/{provisioner}/worker-types/{type}/workers/{group}/{worker}".format(
        **names
    )
    for method, body in (("PUT", {"quarantined": True}), ("GET", None), ("DELETE", None)):
        assert api(method, f"{BASE}{path}", body).status in (400, 404), path
    assert shown(api, includeInactive="true") == []


def test_every_method_is_published_under_one_name() -> None:
    names = [route.name for route in ROUTES if isinstance(route, Route) and route.is_published]

    assert len(names) == len(set(names))
