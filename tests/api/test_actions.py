"""Actions over HTTP: who may declare which, what is told of them, and to whom they are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.registry_world import BASE, POOL, TYPE, WORKER, RegistryApi
from tests.api.world import TOKEN
from tests.factories import a_worker
from worker_manager.api.action_schemas import MOST_ACTIONS
from worker_manager.core.model import State
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

PROVISIONER = "/provisioners/proj-x"
DECLARED_WORKER = f"{TYPE}/rack-1/m-1"
SIX: dict[str, Any] = {
    "name": "reimage",
    "title": "Reimage",
    "context": "worker",
    "url": "https://allowed.example/jobs/<workerGroup>/<workerId>",
    "method": "POST",
    "description": "Takes an hour.",
}
AGENT: dict[str, Any] = {
    "name": "reboot",
    "title": "Reboot",
    "context": "worker",
    "kind": "agent",
    "agentId": "dc1",
    "operation": "reboot",
    "params": {"rungs": ["ssh", None]},
    "requiredScopes": ["rack:reboot:<workerId>"],
    "bulk": True,
    "cooldownSeconds": 0,
}
SWEEP: dict[str, Any] = {**AGENT, "name": "sweep", "context": "worker-type", "bulk": False,
                         "requiredScopes": []}  # fmt: skip
AUDIT: dict[str, Any] = {**SWEEP, "name": "audit", "context": "provisioner"}


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    return RegistryApi(
        tables,
        clients=[
            Client("test/acts", TOKEN, (f"queue:declare-worker:{POOL}/rack-1/m-1#actions",)),
            Client("test/describes", TOKEN, ("queue:declare-provisioner:proj-x#description",)),
            Client(
                "test/reboots",
                TOKEN,
                ("queue:get-worker:*", f"worker-registry:run-action:reboot:{POOL}/*"),
            ),
        ],
    )


def declare(api: RegistryApi, where: str, *actions: dict[str, Any]) -> Any:
    return api.ok("PUT", f"{BASE}{where}", {"actions": list(actions)})


def listed(api: RegistryApi, where: str, **options: Any) -> dict[tuple[str, str], Any]:
    found = api.ok("GET", f"{BASE}{where}/actions", **options)["actions"]
    return {(one["declaredAt"], one["name"]): one for one in found}


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["actions"]]


def test_an_entry_of_six_fields_is_told_as_the_http_action_it_is(api: RegistryApi) -> None:
    assert declare(api, PROVISIONER, SIX)["actions"] == [
        {
            **SIX,
            "kind": "http",
            "declaredAt": "provisioner",
            "requiredScopes": [],
            "confirm": True,
            "bulk": False,
            "cooldownSeconds": 600,
            "timeoutSeconds": 600,
            "mostAtOnce": 5,
        }
    ]


def test_each_entity_tells_the_actions_of_its_context_that_are_declared_there_or_above(
    api: RegistryApi,
) -> None:
    api.see()
    declare(api, PROVISIONER, AUDIT, SWEEP, AGENT)
    declare(api, TYPE, {**SWEEP, "name": "drain"}, SIX)
    answer = declare(api, DECLARED_WORKER, {**AGENT, "name": "blink"})

    assert names(answer) == ["reboot", "reimage", "blink"]
    assert names(api.ok("GET", f"{BASE}{WORKER}")) == ["reboot", "reimage", "blink"]
    assert names(api.ok("GET", f"{BASE}{TYPE}")) == ["sweep", "drain"]
    for where in (PROVISIONER, "/provisioners"):
        told = api.ok("GET", f"{BASE}{where}")
        (told,) = told.get("provisioners", [told])
        assert names(told) == ["audit", "sweep", "reboot"]
    (in_list,) = api.ok("GET", f"{BASE}{PROVISIONER}/worker-types")["workerTypes"]
    assert "actions" not in in_list


def test_a_list_replaces_the_one_before_and_what_is_not_said_stays(api: RegistryApi) -> None:
    for where in (PROVISIONER, TYPE, DECLARED_WORKER):
        own = {PROVISIONER: AUDIT, TYPE: SWEEP}.get(where, AGENT)
        declare(api, where, own, {**own, "name": "other"})
        assert names(declare(api, where, own)) == [own["name"]]
        body = {"capacity": 2} if where == DECLARED_WORKER else {"description": "x"}
        assert names(api.ok("PUT", f"{BASE}{where}", body)) == [own["name"]]
        assert names(declare(api, where)) == []


def test_a_worker_lists_all_that_may_be_done_to_it_and_why_some_may_not(api: RegistryApi) -> None:
    api.see()
    declare(api, PROVISIONER, AUDIT)
    declare(api, TYPE, SIX, AGENT)

    found = listed(api, WORKER)
    assert list(found) == [
        ("deployment", "kill"),
        ("deployment", "quarantine"),
        ("deployment", "release"),
        ("provisioner", "audit"),
        ("worker-type", "reimage"),
        ("worker-type", "reboot"),
    ]
    reimage, audit = found["worker-type", "reimage"], found["provisioner", "audit"]
    assert reimage["url"] == "https://allowed.example/jobs/rack-1/m-1"
    assert (reimage["runnable"], reimage["missingScopes"]) == (True, [])
    assert found["worker-type", "reboot"]["params"] == AGENT["params"]
    assert audit["runnable"] is False
    assert audit["refusal"] == "it is done to a provisioner, not to a worker"
    assert "missingScopes" not in audit
    assert list(listed(api, TYPE)) == [
        ("provisioner", "audit"), ("worker-type", "reimage"), ("worker-type", "reboot")
    ]  # fmt: skip
    assert list(listed(api, PROVISIONER)) == [("provisioner", "audit")]


def test_a_list_tells_what_the_caller_lacks(api: RegistryApi) -> None:
    declare(api, TYPE, AGENT)
    found = listed(api, WORKER, client="test/reboots")
    assert found["worker-type", "reboot"]["missingScopes"] == ["rack:reboot:m-1"]
    assert found["deployment", "kill"]["missingScopes"] == [
        f"worker-registry:run-action:kill:{POOL}/rack-1/m-1"
    ]


@pytest.mark.parametrize(
    ("provider_id", "state", "is_there"),
    [
        ("aws", State.RUNNING, True),
        ("aws", State.STOPPING, False),
        ("static", State.RUNNING, False),
        ("gone", State.RUNNING, False),
    ],
)
def test_only_what_runs_in_a_cloud_is_rebooted_by_it(
    api: RegistryApi, provider_id: str, state: State, is_there: bool
) -> None:
    row = a_worker("m-1", pool_id=POOL, group="rack-1", provider_id=provider_id, state=state)
    api.deps.stores.workers.put_new(row)
    assert (("deployment", "reboot") in listed(api, WORKER)) is is_there


@pytest.mark.parametrize(
    ("where", "action", "field"),
    [
        (TYPE, {**SIX, "url": "https://evil.example/<workerId>"}, "url"),
        (TYPE, {**SIX, "url": "https://allowed.example@evil.example/"}, "url"),
        (TYPE, {**SIX, "url": "http://allowed.example/"}, "url"),
        (TYPE, {**SIX, "url": "https://allowed.example/<taskId>"}, "url"),
        (TYPE, {**SIX, "url": "https://allowed.example/<workerId>", "context": "worker-type"},
         "url"),
        (TYPE, AUDIT, "context"),
        (DECLARED_WORKER, SWEEP, "context"),
        (TYPE, {**SIX, "method": "GET"}, "method"),
        (TYPE, {**SIX, "name": "Reimage it"}, "name"),
        (TYPE, {**SIX, "title": ""}, "title"),
        (TYPE, {**SIX, "confirm": "no"}, "confirm"),
        (TYPE, {**SIX, "extra": 1}, "extra"),
        (TYPE, {**SIX, "operation": "kill"}, "operation"),
        (TYPE, {**AGENT, "agentId": "a/b"}, "agentId"),
        (TYPE, {**AGENT, "agentId": None}, "agentId"),
        (TYPE, {**AGENT, "params": {"x": "y" * 5000}}, "params"),
        (TYPE, {**AGENT, "requiredScopes": ["rack:<taskId>"]}, "requiredScopes"),
        (TYPE, {**AGENT, "requiredScopes": ["r\u00e4ck"]}, "requiredScopes"),
        (TYPE, {**AGENT, "timeoutSeconds": 59}, "timeoutSeconds"),
        (TYPE, {**AGENT, "cooldownSeconds": True}, "cooldownSeconds"),
        (TYPE, {**AGENT, "mostAtOnce": 0}, "mostAtOnce"),
        (TYPE, {**AGENT, "kind": "builtin", "agentId": None, "params": {}}, None),
    ],
)  # fmt: skip
def test_an_action_that_must_not_be_is_refused_by_its_field(
    api: RegistryApi, where: str, action: dict[str, Any], field: str | None
) -> None:
    answer = api("PUT", f"{BASE}{where}", {"actions": [action]})
    if field is None:
        assert answer.status == 200
        return
    assert answer.status == 400
    assert f"actions[0].{field}" in answer.body["message"]


@pytest.mark.parametrize(
    "actions",
    [
        None,
        {},
        [SIX, SIX],
        [{**SIX, "name": f"a-{number}", "description": "x"} for number in range(MOST_ACTIONS + 1)],
        [{**SIX, "name": f"a-{number}", "description": "x" * 3500} for number in range(5)],
    ],
)
def test_too_many_too_long_and_twice_the_same_are_refused(api: RegistryApi, actions: Any) -> None:
    answer = api("PUT", f"{BASE}{TYPE}", {"actions": actions})
    assert answer.status == 400
    assert "actions" in answer.body["message"]


def test_actions_are_declared_by_whoever_may_declare_them_there(api: RegistryApi) -> None:
    body = {"actions": [AGENT]}
    assert api("PUT", f"{BASE}{DECLARED_WORKER}", body, client="test/acts").status == 200
    for where, client in (
        (PROVISIONER, "test/acts"),
        (TYPE, "test/acts"),
        (PROVISIONER, "test/describes"),
        (DECLARED_WORKER, "test/poor"),
    ):
        assert api("PUT", f"{BASE}{where}", body, client=client).status == 403


def test_lists_of_actions_are_for_who_may_read_what_they_are_of(api: RegistryApi) -> None:
    for where in (PROVISIONER, TYPE):
        assert api("GET", f"{BASE}{where}/actions", client="test/reboots").status == 403
    assert api("GET", f"{BASE}{WORKER}/actions", client="test/poor").status == 403


def test_what_a_worker_was_declared_is_there_after_it_calls_for_work(api: RegistryApi) -> None:
    declare(api, DECLARED_WORKER, AGENT)
    api.see()
    assert names(api.ok("GET", f"{BASE}{WORKER}")) == ["reboot"]
