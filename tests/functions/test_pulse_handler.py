"""Events from our bus, by the queue, to a broker: a real one where it is installed."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from functions.pulse.handler import handle
from tests import rabbitmq
from tests.events import a_bus_event, an_sqs_event
from tests.factories import NOW, a_worker
from tests.functions.lambda_context import LambdaContext
from tests.rabbitmq import RabbitMq
from worker_manager.core import events
from worker_manager.pulse import AmqpBroker
from worker_manager.queues import NotSentError, SqsSender
from worker_manager.wiring.pulse import pulse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.functions.deployed import DeployedStage

QUEUE = "wm-local-pulse"
STOPPED = "exchange/taskcluster-worker-manager/v1/worker-stopped"


def an_event(name: str = events.WORKER_STOPPED, **overrides: Any) -> dict[str, Any]:
    event = events.worker_event(name, a_worker(**overrides), at=NOW, reason="gone")
    return a_bus_event(name, {**event["detail"], "eventId": event["id"]})


def failed(event: dict[str, Any], *numbers: int) -> dict[str, Any]:
    """The answer that these records of a batch failed."""
    names = [event["Records"][number]["messageId"] for number in numbers]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


@pytest.mark.skipif(not rabbitmq.is_installed(), reason="rabbitmq-server is not installed")
def test_a_workers_end_reaches_a_queue_that_listens_and_a_crash_of_the_broker_only_delays_it(
    deployed: DeployedStage, tmp_path: Path
) -> None:
    """B25: tasks waited up to 20 minutes although their worker was known to be dead."""
    event = an_sqs_event([an_event(), an_event(events.WORKER_RUNNING)], queue=QUEUE)
    with (
        RabbitMq(tmp_path) as server,
        deployed.container("pulse", WM_PULSE_URL=server.url),
        closing(pulse().broker),
    ):
        connection = server.connect()
        channel = connection.channel()
        channel.queue_declare("queue/worker-removed-resolver", durable=True)
        channel.exchange_declare(STOPPED, exchange_type="topic", durable=True)
        channel.queue_bind("queue/worker-removed-resolver", STOPPED, "primary.#")
        connection.close()
        server.kill()
        assert handle(event, LambdaContext()) == failed(event, 0, 1)

        server.start()
        assert handle(event, LambdaContext()) == failed(event)

        connection = server.connect()
        method, _, body = connection.channel().basic_get("queue/worker-removed-resolver")
        assert method.routing_key == "primary.aws.proj-x.pool-1.us-east-1.i-1.lc-a._"
        assert json.loads(body) == {
            "workerPoolId": "proj-x/pool-1",
            "providerId": "aws",
            "workerGroup": "us-east-1",
            "workerId": "i-1",
            "capacity": 1,
            "launchConfigId": "lc-a",
            "timestamp": "2026-01-02T03:04:05.000Z",
        }
        connection.close()


def test_an_event_that_no_exchange_knows_goes_to_the_dead_letters_at_once_and_as_it_came(
    deployed: DeployedStage,
) -> None:
    poison = a_bus_event("worker-danced", {"workerId": "i-1"})
    event = an_sqs_event([poison, an_event()], queue=QUEUE)

    assert deployed.call("pulse", event) == failed(event, 1)

    (dead,) = deployed.drain("pulse-dead")
    assert [json.loads(record["body"]) for record in dead["Records"]] == [poison]


def test_what_is_no_event_comes_again_alone_and_the_others_are_published(
    deployed: DeployedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AmqpBroker, "publish", lambda _, messages: set(messages))
    poison = a_bus_event("worker-danced", {"workerId": "i-1"})
    event = an_sqs_event([poison, "no JSON", {"detail": {}}, an_event()], queue=QUEUE)

    assert deployed.call("pulse", event) == failed(event, 1, 2)

    (dead,) = deployed.drain("pulse-dead")
    assert [json.loads(record["body"]) for record in dead["Records"]] == [poison], "and once"


def test_a_dead_letter_that_cannot_be_sent_comes_again_alone(
    deployed: DeployedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotSentError("too busy")

    monkeypatch.setattr(AmqpBroker, "publish", lambda _, messages: set(messages))
    monkeypatch.setattr(SqsSender, "send", refuse)
    poison = a_bus_event("worker-danced", {"workerId": "i-1"})
    event = an_sqs_event([poison, an_event()], queue=QUEUE)

    assert deployed.call("pulse", event) == failed(event, 0)


def test_while_the_broker_is_away_every_event_comes_again(deployed: DeployedStage) -> None:
    event = an_sqs_event([an_event(), an_event()], queue=QUEUE)

    assert deployed.call("pulse", event) == failed(event, 0, 1)
    assert deployed.drain("pulse-dead") == []
