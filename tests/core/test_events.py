"""Every event against the message schemas of Taskcluster's worker-manager."""

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
OPTIONAL = {
    events.POOL_UPDATED: {"previousProviderId"},
    events.POOL_ERROR: {"workerId", "workerGroup", "launchConfigId"},
    events.WORKER_REQUESTED: {"launchConfigId"},
    events.WORKER_RUNNING: {"launchConfigId"},
    events.WORKER_STOPPED: {"launchConfigId"},
    events.WORKER_REMOVED: {"launchConfigId"},
}
OURS = {"reason"}
"""What we tell beyond the reference, in every event."""


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
            events.worker_event(name, a_worker(), at=NOW, reason="because")
            for name in (
                events.WORKER_REQUESTED,
                events.WORKER_RUNNING,
                events.WORKER_STOPPED,
                events.WORKER_REMOVED,
            )
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
        events.error_event(an_error(), "aws"),
    ]
    return {event["name"]: event for event in made}


def test_there_are_the_ten_events_of_the_reference() -> None:
    assert all_events().keys() == REQUIRED.keys()


@pytest.mark.parametrize("name", REQUIRED)
def test_an_event_says_what_its_schema_asks_and_no_more_than_a_reason_beyond(name: str) -> None:
    detail = all_events()[name]["detail"]

    assert REQUIRED[name] <= detail.keys()
    assert detail.keys() <= REQUIRED[name] | OPTIONAL.get(name, set()) | OURS
    assert None not in detail.values()
    assert detail["reason"]
    json.dumps(detail)


@pytest.mark.parametrize("name", REQUIRED)
def test_values_have_the_types_of_the_schema(name: str) -> None:
    detail = all_events()[name]["detail"]

    for key, value in detail.items():
        assert isinstance(value, int if key == "capacity" else str), key
    assert detail.get("timestamp", "2026-01-02T03:04:05.000Z") == "2026-01-02T03:04:05.000Z"


def test_what_is_unknown_is_left_out_and_never_null() -> None:
    worker = events.worker_event(
        events.WORKER_RUNNING, a_worker(launch_config_id=None), at=NOW, reason="registered"
    )
    error = events.error_event(an_error(launch_config_id=None, extra={}), "aws")
    pool = events.pool_event(events.POOL_UPDATED, POOL_ID, "aws", created=NOW, version=1)

    assert "launchConfigId" not in worker["detail"]
    assert not {"launchConfigId", "workerGroup", "workerId"} & error["detail"].keys()
    assert "previousProviderId" not in pool["detail"]


def test_descriptions_of_errors_are_not_told() -> None:
    """Report B35 (bug 1631824): secrets and whole launch configs went out with errors."""
    assert "secret details" not in json.dumps(events.error_event(an_error(), "aws"))


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
