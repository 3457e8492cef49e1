"""How launch configs fare, and taking them out of use for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import POOL_PATH, a_definition, a_launch_config, a_static_definition
from tests.factories import NOW, a_worker
from worker_manager.api import steering
from worker_manager.core.breaker import BreakerState
from worker_manager.core.model import State

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

CONFIGS = f"{POOL_PATH}/launch-configs"
LC = f"{CONFIGS}/lc-a"
SPOT = {"ImageId": "ami-1", "InstanceType": "m5.large"}
OFFERING = "us-east-1/any/m5.large/on-demand"


@pytest.fixture
def pool(api: Api) -> str:
    configs = [
        a_launch_config(launchConfig=SPOT, workerManager={"launchConfigId": name})
        for name in ("lc-a", "lc-b")
    ]
    api.ok("PUT", POOL_PATH, a_definition(config={"launchConfigs": configs}))
    api.provision.messages.clear()
    api.bus.events.clear()
    return "proj-x/pool-1"


def pause(api: Api, **body: Any) -> Any:
    return api.ok("PUT", f"{LC}/pause", {"reason": "bad image", **body})


def test_a_pause_says_until_when_and_why_and_by_whom(api: Api, pool: str) -> None:
    """S9: the reference has neither a pause nor a way to end one."""
    told = pause(api, seconds=600)

    assert told["status"] == "paused"
    assert told["held"] == "paused"
    assert told["weight"] == 0
    assert told["pause"] == {
        "until": "2026-01-02T03:14:05.000Z",
        "reason": "bad image",
        "by": "test/root",
        "since": "2026-01-02T03:04:05.000Z",
    }
    assert api.ok("GET", LC) == told


def test_a_pause_is_told_on_the_bus_and_has_the_pool_planned(api: Api, pool: str) -> None:
    pause(api, until="2026-01-02T05:00:00.000Z")

    (event,) = api.bus.events
    assert event["name"] == "launch-config-paused"
    assert event["detail"]["reason"] == "bad image"
    assert event["detail"]["until"] == "2026-01-02T05:00:00.000Z"
    assert [m.body["pool"] for m in api.provision.messages] == [pool]


def test_a_paused_launch_config_leaves_everything_to_the_others(api: Api, pool: str) -> None:
    pause(api, seconds=600)

    listed = api.ok("GET", CONFIGS)["workerPoolLaunchConfigs"]
    assert [(c["launchConfigId"], c["status"], c["weight"]) for c in listed] == [
        ("lc-a", "paused", 0),
        ("lc-b", "active", 1),
    ]


def test_a_pause_ends_by_itself(api: Api, pool: str, clock: Clock) -> None:
    pause(api, seconds=600)
    clock.advance(minutes=10)

    told = api.ok("GET", LC)
    assert told["status"] == "active"
    assert "pause" not in told


def test_resuming_ends_a_pause_and_says_so(api: Api, pool: str) -> None:
    """S9."""
    pause(api, seconds=600)
    api.bus.events.clear()
    api.provision.messages.clear()

    assert api.ok("PUT", f"{LC}/resume")["status"] == "active"

    assert api.bus.names() == ["launch-config-resumed"]
    assert len(api.provision.messages) == 1


def test_resuming_what_is_not_paused_changes_nothing(api: Api, pool: str) -> None:
    assert api.ok("PUT", f"{LC}/resume")["status"] == "active"

    assert api.bus.events == []
    assert api.provision.messages == []


def test_a_second_pause_replaces_the_first(api: Api, pool: str) -> None:
    pause(api, seconds=600)
    told = pause(api, seconds=60, reason="shorter")

    assert told["pause"]["reason"] == "shorter"
    assert told["pause"]["until"] == "2026-01-02T03:05:05.000Z"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"reason": "x"}, "until"),
        ({"reason": "x", "seconds": 5, "until": "2026-01-02T05:00:00Z"}, "until"),
        ({"reason": "x", "seconds": 0}, "seconds"),
        ({"reason": "", "seconds": 5}, "reason"),
        ({"reason": "x" * 201, "seconds": 5}, "reason"),
        ({"seconds": 5}, "reason"),
        ({"reason": "x", "until": "2026-01-02T03:04:05Z"}, "until"),
        ({"reason": "x", "until": "2028-01-02T03:04:05Z"}, "until"),
        ({"reason": "x", "seconds": 5, "more": 1}, "more"),
    ],
)
def test_a_pause_that_makes_no_sense_is_refused(
    api: Api, pool: str, body: dict[str, Any], names: str
) -> None:
    answer = api("PUT", f"{LC}/pause", body)

    assert answer.status == 400
    assert names in answer.message


@pytest.mark.parametrize("path", [f"{CONFIGS}/lc-x/pause", f"{CONFIGS}/lc-x"])
def test_a_launch_config_that_the_pool_lacks_is_a_404(api: Api, pool: str, path: str) -> None:
    method = "PUT" if path.endswith("pause") else "GET"
    answer = api(method, path, {"reason": "x", "seconds": 5} if method == "PUT" else None)

    assert answer.status == 404


def test_an_archived_one_is_shown_and_cannot_be_paused(api: Api, pool: str) -> None:
    only_b = [a_launch_config(launchConfig=SPOT, workerManager={"launchConfigId": "lc-b"})]
    api.ok("POST", POOL_PATH, a_definition(config={"launchConfigs": only_b}))

    told = api.ok("GET", LC)
    assert (told["status"], told["isArchived"]) == ("archived", True)
    assert api("PUT", f"{LC}/pause", {"reason": "x", "seconds": 5}).status == 404


@pytest.mark.parametrize("what", ["pause", "resume"])
def test_where_nothing_is_launched_there_is_nothing_to_pause(api: Api, what: str) -> None:
    config = {"launchConfigs": [{"workerManager": {"launchConfigId": "lc-a"}}]}
    api.ok("PUT", POOL_PATH, a_static_definition(config=config))
    before = api.contents()

    answer = api("PUT", f"{LC}/{what}", {"reason": "x", "seconds": 5} if what == "pause" else None)

    assert (answer.status, answer.code) == (400, "InputError")
    assert "'static'" in answer.message
    assert api.contents() == before


@pytest.mark.parametrize(("limit", "value"), [("MOST_PAUSES", 1), ("MOST_BYTES", 150)])
def test_a_pool_has_room_for_so_many_pauses(
    api: Api, pool: str, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(steering, limit, value)
    pause(api, seconds=600)
    before = api.contents()

    answer = api("PUT", f"{CONFIGS}/lc-b/pause", {"reason": "other", "seconds": 60})

    assert (answer.status, answer.code) == (409, "RequestConflict")
    assert "at most" in answer.message
    assert api.contents() == before
    assert pause(api, seconds=60, reason="again")["status"] == "paused"


def test_steering_reads_the_pool_once(api: Api, pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = api.deps.stores.pools.get_with_control, []

    def counted(pool_id: str) -> Any:
        seen.append(pool_id)
        return read(pool_id)

    monkeypatch.setattr(api.deps.stores.pools, "get_with_control", counted)
    pause(api, seconds=600)

    assert seen == [pool]


def test_of_a_pool_that_goes_meanwhile_no_pause_is_left(
    api: Api, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, stores = api.deps.stores.pauses, api.deps.stores
    write = store.write

    def late(*args: Any, **given: Any) -> bool:
        there = stores.pools.get(pool)
        if there is not None:
            stores.pools.remove(there)
        return write(*args, **given)

    monkeypatch.setattr(store, "write", late)

    assert api("PUT", f"{LC}/pause", {"reason": "x", "seconds": 5}).status == 404
    assert api.deps.stores.pools.control(pool).pauses == {}


def test_outcomes_show_in_health_and_weight(api: Api, pool: str) -> None:
    api.deps.stores.health.add(pool, "lc-a", NOW, requested=10, launched=8, registered=6)
    api.deps.stores.health.add(pool, "lc-a", NOW, failed="never-registered", failures=2)

    told = api.ok("GET", LC)

    assert told["health"]["failed"] == {"never-registered": 2}
    assert told["health"]["factor"] == 0.75
    assert told["weight"] == pytest.approx(0.75 / 1.75, abs=1e-6)


def test_what_exists_shows_by_what_it_is_doing(api: Api, pool: str) -> None:
    api.deps.stores.workers.put_new(a_worker("i-1", capacity=2))
    api.deps.stores.workers.put_new(a_worker("i-2", state=State.REQUESTED))

    assert api.ok("GET", LC)["capacity"] == {
        "running": 2,
        "requested": 1,
        "stopping": 0,
        "quarantined": 0,
    }


def test_a_breaker_that_pools_share_is_shown_with_its_offering(api: Api, pool: str) -> None:
    api.deps.stores.offerings.failed(
        "aws", OFFERING, kind="no-capacity", reason="none left", at=NOW
    )

    told = api.ok("GET", LC)

    assert told["breaker"] == {
        "state": BreakerState.OPEN.value,
        "kind": "no-capacity",
        "reason": "none left",
        "since": "2026-01-02T03:04:05.000Z",
        "nextTry": "2026-01-02T03:06:05.000Z",
        "offering": OFFERING,
    }
    assert told["weight"] == 0


def test_a_failure_of_its_own_opens_its_own_breaker(api: Api, pool: str) -> None:
    api.deps.stores.health.add(
        pool, "lc-a", NOW, failed="invalid-launch-config", reason="no such image"
    )

    told = api.ok("GET", LC)

    assert told["breaker"]["kind"] == "invalid-launch-config"
    assert told["breaker"]["reason"] == "no such image"
    assert "offering" not in told["breaker"]
    assert api.ok("GET", f"{CONFIGS}/lc-b")["weight"] == 1


def test_steering_needs_its_scope(api: Api, pool: str) -> None:
    answer = api("PUT", f"{LC}/pause", {"reason": "x", "seconds": 5}, client="test/poor")

    assert answer.status == 403
    assert "worker-manager:pause-launch-config:proj-x/pool-1/lc-a" in answer.message


def test_of_two_that_pause_at_once_both_are_kept(api: Api, pool: str) -> None:
    store = api.deps.stores.pauses
    write = store.write
    raced: list[bool] = []

    def race(*args: Any, **given: Any) -> bool:
        if not raced:
            raced.append(True)
            api.ok("PUT", f"{CONFIGS}/lc-b/pause", {"reason": "other", "seconds": 60})
        return write(*args, **given)

    store.write = race  # type: ignore[method-assign]
    pause(api, seconds=600)

    listed = api.ok("GET", CONFIGS)["workerPoolLaunchConfigs"]
    assert [c["status"] for c in listed] == ["paused", "paused"]


def test_planners_do_not_undo_a_pause(api: Api, pool: str) -> None:
    control = api.deps.stores.pools.control(pool)
    pause(api, seconds=600)
    api.deps.stores.plans.remember(control, reasons_hash="x", probed=NOW - timedelta(minutes=1))

    assert api.ok("GET", LC)["status"] == "paused"


def test_who_steered_is_in_the_audit_trail(api: Api, pool: str) -> None:
    pause(api, seconds=600)
    api.ok("PUT", f"{LC}/resume")

    entries = api.ok("GET", f"{POOL_PATH}/audit")["auditHistory"]

    steered = [e for e in entries if e["entity"] == "launch-config"]
    assert {(e["action"], e["entityId"], e["clientId"]) for e in steered} == {
        ("paused", "lc-a", "test/root"),
        ("resumed", "lc-a", "test/root"),
    }
