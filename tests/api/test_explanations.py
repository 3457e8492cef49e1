"""Why a pool is as it is, what would be done now, and what if."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.api.world import POOL_PATH, a_definition, a_launch_config, a_static_definition
from tests.factories import NOW, REGION, a_plan, a_worker, an_order
from worker_manager.core.activity import Downtime
from worker_manager.core.model import Location, State
from worker_manager.core.planning import decide
from worker_manager.core.plans import OrderState
from worker_manager.observing import look_around, observe

if TYPE_CHECKING:
    from tests.api.world import Api

POOL = "proj-x/pool-1"
OFFERING = "us-east-1/any/m5.large/on-demand"


def define(api: Api, *names: str, maximum: int = 10, **config: Any) -> None:
    configs = [
        a_launch_config(
            launchConfig={"ImageId": "ami-1", "InstanceType": "m5.large"},
            workerManager={"launchConfigId": name},
        )
        for name in names or ("lc-a",)
    ]
    api.ok(
        "PUT",
        POOL_PATH,
        a_definition(config={"launchConfigs": configs, "maxCapacity": maximum, **config}),
    )


def want(api: Api, pending: int, claimed: int = 0) -> None:
    api.queue.set_counts(POOL, pending=pending, claimed=claimed)


def explained(api: Api) -> Any:
    return api.ok("GET", f"{POOL_PATH}/explain")


def test_an_explanation_says_what_would_be_ordered_and_why(api: Api) -> None:
    define(api)
    want(api, 4)

    told = explained(api)

    assert told["orders"] == [
        {
            "launchConfigId": "lc-a",
            "location": "us-east-1",
            "count": 4,
            "capacity": 4,
            "isProbe": False,
        }
    ]
    assert told["orderedCapacity"] == 4
    assert told["limit"] == "none"
    assert told["facts"]["pending"] == 4
    assert told["reasons"] == ["tasks are waiting for more capacity than is running or requested"]
    assert any("4 tasks are pending" in sentence for sentence in told["summary"])


def test_one_task_is_told_as_one(api: Api) -> None:
    define(api)
    want(api, 1)

    assert explained(api)["summary"][0].startswith("1 task is pending and 0 claimed; ")


def test_an_explanation_is_what_the_planning_code_decides(api: Api) -> None:
    define(api, "lc-a", "lc-b", maximum=7)
    want(api, 20, 1)
    api.deps.stores.workers.put_new(a_worker("i-1"))
    pool, control = api.deps.stores.pools.get_with_control(POOL)
    assert pool is not None
    around = look_around(pool, api.deps.stores, timing=api.deps.timing, now=NOW)
    facts = observe(
        pool,
        control,
        around,
        stores=api.deps.stores,
        queue=api.queue,
        timing=api.deps.timing,
        now=NOW,
    )
    decision = decide(facts, Random(POOL))

    told = explained(api)

    assert [(o["launchConfigId"], o["count"]) for o in told["orders"]] == [
        (choice.head.launch_config_id, choice.count) for choice in decision.choices
    ]
    assert told["reasons"] == list(decision.reasons)
    assert told["limit"] == "pool-maximum"


def test_explaining_changes_nothing(api: Api) -> None:
    define(api)
    want(api, 4)
    before = api.deps.stores.pools.control(POOL)

    explained(api)

    assert api.deps.stores.pools.control(POOL) == before
    assert api.ok("GET", f"{POOL_PATH}/decisions")["decisions"] == []


def test_an_open_breaker_is_named_with_its_next_probe(api: Api) -> None:
    define(api)
    want(api, 4)
    api.deps.stores.health.add(POOL, "lc-a", NOW, failed="invalid-launch-config", reason="no image")
    pool, control = api.deps.stores.pools.get_with_control(POOL)
    api.deps.stores.plans.remember(
        control, probed=NOW - timedelta(seconds=20), probe_wait=timedelta(minutes=2)
    )
    assert pool is not None

    told = explained(api)

    assert told["limit"] == "launch-configs"
    assert told["orders"] == []
    assert told["nextProbe"] == "2026-01-02T03:05:45.000Z"
    assert told["launchConfigs"]["lc-a"]["breaker"]["kind"] == "invalid-launch-config"
    why = "lc-a: its breaker is open (invalid-launch-config)"
    assert why in told["reasons"]
    assert f"{why}: no image." in told["summary"]


def test_a_queue_that_does_not_answer_is_the_limit(api: Api) -> None:
    define(api)
    api.queue.fail()

    told = explained(api)

    assert told["limit"] == "unknown-demand"
    assert "pending" not in told["facts"]


def test_a_closed_queue_is_the_limit_and_what_waits_is_still_told(api: Api) -> None:
    define(api)
    downtime = Downtime(NOW + timedelta(hours=1), NOW, "ops/ann", "network down")
    api.queue.set_counts(POOL, pending=3, downtime=downtime)

    told = explained(api)
    if_more = api.ok("POST", f"{POOL_PATH}/what-if", {"pendingTasks": 9})["then"]

    assert (told["limit"], told["orders"], if_more["orders"]) == ("closed", [], [])
    assert told["summary"][0].startswith("3 tasks are pending and 0 claimed; ")
    (why,) = told["reasons"]
    assert why.startswith("the task queue is closed until 2026-01-02T04:04:05.000Z by ops/ann (net")
    assert f"{why}." in told["summary"]


def test_a_pool_that_nobody_launches_for_says_so(api: Api) -> None:
    api.ok("PUT", POOL_PATH, a_definition(providerId="null-provider", config={}))

    told = explained(api)

    assert told["limit"] == "no-provider"
    assert told["summary"][0] == "Nobody launches machines for provider null-provider."


def test_what_a_provider_without_a_cloud_would_be_given_is_not_told(api: Api) -> None:
    api.ok("PUT", POOL_PATH, a_static_definition())
    want(api, 4)
    api.deps.stores.workers.put_new(a_worker("i-1", provider_id="static"))

    told = explained(api)

    assert told["summary"] == ["Nobody launches machines for provider static."]
    assert told["orders"] == told["reasons"] == []
    assert (told["orderedCapacity"], told["letGoCapacity"]) == (0, 0)
    assert told["limit"] == "no-provider"


def test_a_quota_of_which_less_is_used_now_is_explained_as_due(api: Api) -> None:
    define(api)
    want(api, 4)
    stores = api.deps.stores
    stores.offerings.failed("aws", OFFERING, kind="quota-exceeded", reason="enough", at=NOW)
    seen = stores.offerings.get("aws", OFFERING)
    assert seen is not None
    stores.offerings.counted("aws", OFFERING, seen, replace(seen, machines=5))
    place = stores.places.place("aws", Location("us-east-1"))
    stores.places.believed("aws", place, began=NOW + timedelta(seconds=1), machines=5)
    assert explained(api)["orders"] == []

    stores.places.believed("aws", place, began=NOW + timedelta(seconds=2), machines=4)

    [order] = explained(api)["orders"]
    assert order["isProbe"] is True


def test_those_too_many_are_told(api: Api) -> None:
    define(api)
    want(api, 0, 1)
    for name in ("i-1", "i-2", "i-3"):
        api.deps.stores.workers.put_new(a_worker(name))

    assert explained(api)["letGoCapacity"] == 2


def test_what_if_there_were_more_tasks(api: Api) -> None:
    define(api)
    want(api, 2)

    told = api.ok("POST", f"{POOL_PATH}/what-if", {"pendingTasks": 50})

    assert told["now"]["orderedCapacity"] == 2
    assert told["then"]["orderedCapacity"] == 10
    assert told["then"]["limit"] == "pool-maximum"
    assert told["difference"] == {
        "toSpawn": 8,
        "target": 8,
        "orderedCapacity": 8,
        "letGoCapacity": 0,
        "launchConfigs": {"lc-a": 8},
    }


def test_what_if_the_definition_were_another(api: Api) -> None:
    define(api)
    want(api, 6)
    config = {
        **a_definition()["config"],
        "maxCapacity": 3,
        "launchConfigs": [a_launch_config(workerManager={"launchConfigId": "lc-new"})],
    }

    told = api.ok("POST", f"{POOL_PATH}/what-if", {"config": config})

    assert told["difference"]["launchConfigs"] == {"lc-a": -6, "lc-new": 3}
    assert api.ok("GET", POOL_PATH)["config"]["maxCapacity"] == 10


def test_both_sides_of_a_what_if_see_the_same_facts(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(api)
    want(api, 6)
    stores, asked = api.deps.stores, Counter[str]()

    def counting(owner: Any, name: str) -> None:
        ask = getattr(owner, name)

        def counted(*args: Any, **given: Any) -> Any:
            asked[name] += 1
            return ask(*args, **given)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (stores.pools, "get_with_control"),
        (stores.workers, "live"),
        (stores.health, "window"),
        (api.queue, "counts"),
    ):
        counting(owner, name)
    api.ok("POST", f"{POOL_PATH}/what-if", {"config": {**a_definition()["config"]}})

    assert asked == {"get_with_control": 1, "live": 1, "window": 1, "counts": 1}


def test_a_what_if_knows_what_holds_back_a_launch_config_that_would_be_new(api: Api) -> None:
    define(api)
    want(api, 6)
    there = "us-west-2/any/m5.large/on-demand"
    api.deps.stores.offerings.failed("aws", there, kind="no-capacity", reason="none", at=NOW)
    known = {"ImageId": "ami-1", "InstanceType": "m5.large"}
    added = [
        a_launch_config("us-west-2", launchConfig=known, workerManager={"launchConfigId": "lc-new"})
    ]

    told = api.ok(
        "POST",
        f"{POOL_PATH}/what-if",
        {"config": {**a_definition()["config"], "launchConfigs": added}},
    )

    assert told["then"]["launchConfigs"]["lc-new"]["breaker"]["kind"] == "no-capacity"
    assert told["difference"]["launchConfigs"] == {"lc-a": -6}


def test_what_if_a_definition_were_wrong_is_refused_as_an_update_is(api: Api) -> None:
    define(api)

    answer = api("POST", f"{POOL_PATH}/what-if", {"config": {"maxCapacity": -1}})

    assert answer.status == 400
    assert "maxCapacity" in answer.message


def test_decisions_are_listed_newest_first_in_pages(api: Api) -> None:
    define(api)
    for minute in range(5):
        control = api.deps.stores.pools.control(POOL)
        at = NOW + timedelta(minutes=minute)
        tick = f"2026-01-02T03:0{4 + minute}:00.000Z#00"
        order = an_order(f"o-{minute}", state=OrderState.SETTLED, launched=1)
        plan = replace(a_plan(tick, now=at, orders=(order,), reasons=("because",)))
        noted = api.plans.note(plan, control, reasons_hash=str(minute))
        assert noted is not None

    seen, token = [], ""
    while True:
        query = f"limit=2{token}"
        page = api.ok("GET", f"{POOL_PATH}/decisions", query=query)
        seen += [decision["decisionId"] for decision in page["decisions"]]
        if "continuationToken" not in page:
            break
        token = f"&continuationToken={page['continuationToken']}"

    assert seen == [f"2026-01-02T03:0{4 + minute}:00.000Z#00" for minute in (4, 3, 2, 1, 0)]


def test_a_worker_leads_to_the_decision_that_made_it(api: Api) -> None:
    define(api)
    tick = "2026-01-02T03:04:00.000Z#01"
    control = api.deps.stores.pools.control(POOL)
    plan = a_plan(tick, orders=(an_order(),), reasons=("tasks wait",), facts={"pending": 3})
    api.plans.note(plan, control, reasons_hash="x")
    api.deps.stores.workers.put_new(a_worker("i-1", decision=tick, state=State.REQUESTED))

    worker = api.ok("GET", "/api/worker-manager/v1/workers/proj-x%2Fpool-1/us-east-1/i-1")
    path = quote(worker["decisionId"], safe="")
    told = api.ok("GET", f"{POOL_PATH}/decisions/{path}")

    assert told["reasons"] == ["tasks wait"]
    assert told["facts"] == {"pending": 3}
    assert told["orders"][0]["launchConfigId"] == "lc-a"
    assert told["isOpen"] is True


@pytest.mark.parametrize("decision", ["2026-01-02T03%3A04%3A00.000Z%2399", "nonsense"])
def test_a_decision_that_was_never_made_is_a_404(api: Api, decision: str) -> None:
    define(api)

    assert api("GET", f"{POOL_PATH}/decisions/{decision}").status == 404


def test_decisions_of_a_pool_that_never_was_are_the_pools_404(api: Api) -> None:
    answer = api("GET", f"{POOL_PATH}/decisions/2026-01-02T03%3A04%3A00.000Z%2301")

    assert answer.status == 404
    assert "Worker pool" in answer.message


def test_a_location_that_cannot_be_listed_is_told_with_what_the_cloud_said(api: Api) -> None:
    define(api)
    want(api, 4)
    api.deps.stores.places.stale(
        "aws", REGION, since=NOW - timedelta(hours=1), reason="AuthFailure: not enabled"
    )

    told = explained(api)

    assert "us-east-1 cannot be listed: AuthFailure: not enabled" in told["summary"]
    assert told["orders"] == []


def test_who_paused_a_launch_config_and_why_is_told(api: Api) -> None:
    define(api)
    want(api, 4)
    path = f"{POOL_PATH}/launch-configs/lc-a/pause"
    api.ok("PUT", path, {"seconds": 60, "reason": "bad image"})

    assert (
        "lc-a is paused until 2026-01-02T03:05:05.000Z by test/root: bad image"
        in explained(api)["summary"]
    )
