"""Every event against the message schemas of Taskcluster's worker-manager, ours against our own."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_worker
from worker_manager.core import events
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import PoolError, State

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Json

WORKER = {"workerPoolId", "providerId", "workerId", "workerGroup", "capacity", "timestamp"}
LAUNCH_CONFIG = {"launchConfigId", "workerPoolId", "providerId"}
REQUIRED = {
    events.POOL_CREATED: {"workerPoolId", "providerId"},
    events.POOL_UPDATED: {"workerPoolId", "providerId"},
    events.POOL_ERROR: {"workerPoolId", "providerId", "errorId", "kind", "title", "timestamp"},
    events.WORKER_REQUESTED: WORKER,
    events.WORKER_RUNNING: WORKER,
    events.WORKER_STOPPED: WORKER,
    events.WORKER_REMOVED: WORKER | {"reason"},
    events.LAUNCH_CONFIG_CREATED: LAUNCH_CONFIG,
    events.LAUNCH_CONFIG_UPDATED: LAUNCH_CONFIG,
    events.LAUNCH_CONFIG_ARCHIVED: LAUNCH_CONFIG,
}
OURS = {
    events.WORKER_STOPPING: WORKER,
    events.WORKER_ERROR: {
        *("workerPoolId", "providerId", "workerGroup", "workerId"),
        *("errorId", "kind", "title", "timestamp"),
    },
    events.LAUNCH_CONFIG_PAUSED: LAUNCH_CONFIG | {"timestamp", "until"},
    events.LAUNCH_CONFIG_RESUMED: LAUNCH_CONFIG | {"timestamp"},
}
"""Events that the reference does not have."""
ALL = REQUIRED | OURS
OPTIONAL = {
    events.POOL_UPDATED: {"previousProviderId"},
    events.POOL_ERROR: {"workerId", "workerGroup", "launchConfigId"},
    events.WORKER_REQUESTED: {"launchConfigId"},
    events.WORKER_RUNNING: {"launchConfigId"},
    events.WORKER_STOPPED: {"launchConfigId"},
    events.WORKER_REMOVED: {"launchConfigId"},
    events.WORKER_STOPPING: {"launchConfigId"},
    events.WORKER_ERROR: {"launchConfigId"},
}
BEYOND = {"reason"}
"""What we tell beyond the reference, in every event."""
OF_A_DECISION = {
    events.WORKER_REQUESTED,
    events.WORKER_RUNNING,
    events.WORKER_STOPPED,
    events.WORKER_REMOVED,
    events.WORKER_STOPPING,
}


def an_error(**overrides: Any) -> PoolError:
    values: dict[str, Any] = {
        "error_id": derived_slugid("e"),
        "pool_id": POOL_ID,
        "reported": NOW,
        "kind": "no-capacity",
        "title": "Instance Creation Error",
        "description": "secret details",
        "extra": {"workerGroup": "us-east-1", "workerId": "i-1", "code": "X"},
        "launch_config_id": "lc-a",
    }
    return PoolError(**(values | overrides))


def all_events() -> dict[str, Json]:
    made = [
        *(
            events.worker_event(name, a_worker(decision="t-1"), at=NOW, reason="because")
            for name in OF_A_DECISION
        ),
        events.pool_event(events.POOL_CREATED, POOL_ID, "aws", created=NOW, version=1),
        events.pool_event(
            events.POOL_UPDATED, POOL_ID, "aws", created=NOW, version=2, previous="google"
        ),
        *(
            events.launch_config_event(name, POOL_ID, "aws", "lc-a", created=NOW, version=1)
            for name in (
                events.LAUNCH_CONFIG_CREATED,
                events.LAUNCH_CONFIG_UPDATED,
                events.LAUNCH_CONFIG_ARCHIVED,
            )
        ),
        events.pause_event(
            events.LAUNCH_CONFIG_PAUSED, POOL_ID, "aws", "lc-a", at=NOW, reason="x", until=NOW
        ),
        events.pause_event(
            events.LAUNCH_CONFIG_RESUMED, POOL_ID, "aws", "lc-a", at=NOW, reason="x"
        ),
        *events.error_events(an_error(), "aws"),
    ]
    return {event["name"]: event for event in made}


def test_there_are_the_ten_events_of_the_reference_and_four_of_our_own() -> None:
    assert len(REQUIRED) == 10
    assert all_events().keys() == ALL.keys()


@pytest.mark.parametrize("name", ALL)
def test_an_event_says_what_its_schema_asks_and_no_more_than_a_reason_beyond(name: str) -> None:
    detail = all_events()[name]["detail"]

    decision = {"decisionId"} if name in OF_A_DECISION else set()
    assert ALL[name] | decision <= detail.keys()
    assert detail.keys() <= ALL[name] | OPTIONAL.get(name, set()) | BEYOND | decision
    assert None not in detail.values()
    assert detail["reason"]
    json.dumps(detail)


@pytest.mark.parametrize("name", ALL)
def test_values_have_the_types_of_the_schema(name: str) -> None:
    detail = all_events()[name]["detail"]

    for key, value in detail.items():
        assert isinstance(value, int if key == "capacity" else str), key
    assert detail.get("timestamp", "2026-01-02T03:04:05.000Z") == "2026-01-02T03:04:05.000Z"


def test_what_is_unknown_is_left_out_and_never_null() -> None:
    worker = events.worker_event(
        events.WORKER_RUNNING, a_worker(launch_config_id=None), at=NOW, reason="registered"
    )
    (error,) = events.error_events(an_error(launch_config_id=None, extra={}), "aws")
    pool = events.pool_event(events.POOL_UPDATED, POOL_ID, "aws", created=NOW, version=1)

    assert not {"launchConfigId", "decisionId"} & worker["detail"].keys()
    assert not {"launchConfigId", "workerGroup", "workerId"} & error["detail"].keys()
    assert "previousProviderId" not in pool["detail"]


def test_descriptions_of_errors_are_not_told() -> None:
    """Report B35 (bug 1631824): secrets and whole launch configs went out with errors."""
    assert "secret details" not in json.dumps(events.error_events(an_error(), "aws"))


def test_an_error_of_one_worker_is_told_under_two_names() -> None:
    told = events.error_events(an_error(), "aws")

    assert [event["name"] for event in told] == [events.POOL_ERROR, events.WORKER_ERROR]
    assert len({event["id"] for event in told}) == 2
    of_a_launch = an_error(extra={"workerGroup": "us-east-1"})
    (event,) = events.error_events(of_a_launch, "aws")
    assert event["name"] == events.POOL_ERROR


def test_each_pause_and_its_end_are_events_of_their_own() -> None:
    def event(name: str = events.LAUNCH_CONFIG_PAUSED, at: datetime = NOW) -> str:
        return str(events.pause_event(name, POOL_ID, "aws", "lc-a", at=at, reason="x")["id"])

    again = event(at=NOW + timedelta(hours=1))
    assert event() == event()
    assert len({event(), again, event(events.LAUNCH_CONFIG_RESUMED)}) == 3


def test_several_events_of_one_transition_differ_and_agree() -> None:
    changes = events.with_event(
        a_worker(), events.WORKER_REMOVED, events.WORKER_STOPPING, at=NOW, reason="because"
    )

    removed, stopping = changes["unsent"]
    assert (removed["name"], stopping["name"]) == (events.WORKER_REMOVED, events.WORKER_STOPPING)
    assert removed["detail"] == stopping["detail"]
    assert removed["id"] != stopping["id"]


def test_the_same_transition_is_the_same_event_and_the_next_one_another() -> None:
    def event(name: str = events.WORKER_RUNNING, **overrides: Any) -> str:
        later = NOW + timedelta(seconds=5)
        told = events.worker_event(name, a_worker(**overrides), at=later, reason="x")
        return str(told["id"])

    assert event() == event()
    others = {
        event(),
        event(version=2),
        event(worker_id="i-2"),
        event(pool_id="other/pool"),
        event(events.WORKER_STOPPED),
    }
    assert len(others) == 5


def test_events_of_each_version_and_launch_config_differ() -> None:
    ids = {
        events.launch_config_event(
            events.LAUNCH_CONFIG_UPDATED, POOL_ID, "aws", name, created=NOW, version=version
        )["id"]
        for name in ("lc-a", "lc-b")
        for version in (1, 2)
    }

    assert len(ids) == 4


def test_a_pool_made_anew_has_events_of_its_own() -> None:
    def ids(created: datetime) -> set[str]:
        pool = events.pool_event(events.POOL_CREATED, POOL_ID, "aws", created=created, version=1)
        config = events.launch_config_event(
            events.LAUNCH_CONFIG_CREATED, POOL_ID, "aws", "lc-a", created=created, version=1
        )
        return {pool["id"], config["id"]}

    assert ids(NOW) == ids(NOW)
    assert not ids(NOW) & ids(NOW + timedelta(minutes=1))


def test_a_transition_carries_its_event_beside_those_not_yet_told() -> None:
    before = a_worker(unsent=({"id": "e-1"},))

    changes = events.with_event(
        before, events.WORKER_STOPPED, at=NOW, reason="gone", state=State.STOPPED
    )

    after = replace(before, state=State.STOPPED, version=before.version + 1)
    told = events.worker_event(events.WORKER_STOPPED, after, at=NOW, reason="gone")
    assert changes == {
        "state": State.STOPPED,
        "modified": NOW,
        "unsent": ({"id": "e-1"}, told),
    }
