"""Messages for Taskcluster's other services: the reference's exchanges, keys and closed schemas."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import NOW, a_worker
from worker_manager.api.event_schemas import MESSAGES
from worker_manager.core import events
from worker_manager.core.model import PoolError
from worker_manager.core.pulse import SCHEMAS, UnfitEventError, pulse_message

NAMESPACE = "taskcluster-worker-manager"

WORKER = {
    "workerPoolId": "proj-x/pool-1",
    "providerId": "aws",
    "workerGroup": "us-east-1",
    "workerId": "i-1",
    "capacity": 1,
    "timestamp": "2026-01-02T03:04:05.000Z",
    "launchConfigId": "lc-a",
}
POOL = {"workerPoolId": "proj-x/pool-1", "providerId": "aws"}
ERROR = {
    "errorId": "e-1",
    "kind": "no-disk",
    "title": "No disk",
    "timestamp": "2026-01-02T03:04:05.000Z",
}
CONFIG = {**POOL, "launchConfigId": "lc-a"}
NOTHING_SAID = "primary._._._._._._._"


def detail_of(event: dict[str, Any]) -> dict[str, Any]:
    """As it is on the bus."""
    return {**event["detail"], "eventId": event["id"], "decisionId": "t-1"}


def worker_event(name: str, **overrides: Any) -> dict[str, Any]:
    worker = a_worker(**overrides)
    return detail_of(events.worker_event(name, worker, at=NOW, reason="because"))


@pytest.mark.parametrize(
    "name", [events.WORKER_REQUESTED, events.WORKER_RUNNING, events.WORKER_STOPPED]
)
def test_a_workers_message_has_exactly_the_references_fields(name: str) -> None:
    message = pulse_message(name, worker_event(name), namespace=NAMESPACE)

    assert message.exchange == f"exchange/taskcluster-worker-manager/v1/{name}"
    assert message.routing_key == "primary.aws.proj-x.pool-1.us-east-1.i-1.lc-a._"
    assert message.body == WORKER


def test_a_removed_workers_message_says_why() -> None:
    name = events.WORKER_REMOVED

    message = pulse_message(name, worker_event(name), namespace=NAMESPACE)

    assert message.body == {**WORKER, "reason": "because"}


def test_a_launch_config_that_is_not_known_is_left_out_and_never_null() -> None:
    name = events.WORKER_STOPPED
    detail = {**worker_event(name, launch_config_id=None), "launchConfigId": None}

    message = pulse_message(name, detail, namespace=NAMESPACE)

    assert "launchConfigId" not in message.body
    assert message.routing_key == "primary.aws.proj-x.pool-1.us-east-1.i-1._._"


@pytest.mark.parametrize("name", [events.POOL_CREATED, events.POOL_UPDATED])
def test_a_pools_message_is_routed_by_nothing(name: str) -> None:
    event = events.pool_event(name, "proj-x/pool-1", "aws", created=NOW, version=1)

    message = pulse_message(name, detail_of(event), namespace=NAMESPACE)

    assert message.routing_key == NOTHING_SAID
    assert message.body == POOL


def test_a_pool_that_changed_its_provider_says_so() -> None:
    name = events.POOL_UPDATED
    event = events.pool_event(
        name, "proj-x/pool-1", "aws", created=NOW, version=2, previous="racks"
    )

    message = pulse_message(name, detail_of(event), namespace=NAMESPACE)

    assert message.body == {**POOL, "previousProviderId": "racks"}


@pytest.mark.parametrize(
    "name",
    [
        events.LAUNCH_CONFIG_CREATED,
        events.LAUNCH_CONFIG_UPDATED,
        events.LAUNCH_CONFIG_ARCHIVED,
    ],
)
def test_a_launch_configs_message_is_routed_by_its_id(name: str) -> None:
    event = events.launch_config_event(name, "proj-x/pool-1", "aws", "lc-a", created=NOW, version=1)

    message = pulse_message(name, detail_of(event), namespace=NAMESPACE)

    assert message.routing_key == "primary.aws.proj-x.pool-1._._.lc-a._"
    assert message.body == CONFIG


@pytest.mark.parametrize(
    ("extra", "routing_key"),
    [
        ({}, "primary.aws.proj-x.pool-1._._._._"),
        (
            {"workerGroup": "us-east-1", "workerId": "i-1"},
            "primary.aws.proj-x.pool-1.us-east-1.i-1._._",
        ),
    ],
)
def test_an_errors_message_names_the_worker_if_there_is_one(
    extra: dict[str, str], routing_key: str
) -> None:
    error = PoolError("e-1", "proj-x/pool-1", NOW, "no-capacity", "No capacity", "long", extra)

    told = events.error_events(error, "aws")[0]
    message = pulse_message(told["name"], detail_of(told), namespace=NAMESPACE)

    assert message.routing_key == routing_key
    assert message.body == {
        **POOL,
        **extra,
        "errorId": "e-1",
        "kind": "no-capacity",
        "title": "No capacity",
        "timestamp": "2026-01-02T03:04:05.000Z",
    }


@pytest.mark.parametrize(
    ("name", "detail", "left_out"),
    [
        ("worker-stopping", {**WORKER, "reason": "idle"}, {}),
        (
            "worker-error",
            {**CONFIG, **ERROR, "workerGroup": "us-east-1", "workerId": "i-1", "reason": "full"},
            {"capacity": 1, "extra": {}},
        ),
        ("launch-config-paused", {**CONFIG, "reason": "broken", "until": "tomorrow"}, {}),
        ("launch-config-resumed", {**CONFIG, "reason": "mended"}, {}),
    ],
)
def test_an_event_that_the_reference_does_not_have_keeps_its_reason(
    name: str, detail: dict[str, Any], left_out: dict[str, Any]
) -> None:
    told = {**detail, **left_out, "eventId": "e", "decisionId": "t-1"}

    message = pulse_message(name, told, namespace=NAMESPACE)

    assert message.body == detail
    assert message.exchange == f"exchange/taskcluster-worker-manager/v1/{name}"


def test_exchanges_are_in_the_namespace_that_was_asked_for() -> None:
    message = pulse_message("worker-stopped", WORKER, namespace="our-wm")

    assert message.exchange == "exchange/our-wm/v1/worker-stopped"


def test_a_repeat_of_an_event_can_be_recognised() -> None:
    detail = worker_event("worker-stopped")

    message = pulse_message("worker-stopped", detail, namespace=NAMESPACE)

    assert message.event_id == detail["eventId"]


@pytest.mark.parametrize(
    ("name", "detail", "complaint"),
    [
        ("worker-danced", WORKER, "no exchange"),
        ("worker-stopped", {}, "lacks capacity, providerId, timestamp"),
        ("worker-stopped", {**WORKER, "workerId": "a.b"}, "no word"),
        ("worker-stopped", {**WORKER, "workerId": "i" * 39}, "no word"),
        ("worker-stopped", {**WORKER, "workerPoolId": "proj x/pool"}, "no word"),
    ],
)
def test_an_event_of_which_no_message_can_be_made_is_refused(
    name: str, detail: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UnfitEventError, match=complaint):
        pulse_message(name, detail, namespace=NAMESPACE)


def test_the_longest_routing_key_fits_into_amqp() -> None:
    longest = "x" * 38
    detail = {
        **WORKER,
        "workerPoolId": f"{longest}/{longest}",
        **dict.fromkeys(("providerId", "workerGroup", "workerId", "launchConfigId"), longest),
    }

    message = pulse_message("worker-stopped", detail, namespace=NAMESPACE)

    assert len(message.routing_key) <= 255


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_has_the_fields_of_its_published_schema(name: str) -> None:
    published = MESSAGES[name].model_json_schema(by_alias=True, mode="serialization")
    optional = SCHEMAS[name].optional

    assert published["properties"].keys() >= SCHEMAS[name].required | optional
    assert set(published["required"]) == SCHEMAS[name].required


def test_every_event_of_ours_has_an_exchange() -> None:
    names = {
        value
        for constant, value in vars(events).items()
        if constant.isupper() and isinstance(value, str)
    }

    assert names <= SCHEMAS.keys()
