"""Messages on their way over AMQP, to a real broker where one is installed."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.children import LOOPBACK, free_port
from tests import rabbitmq
from tests.rabbitmq import RabbitMq
from worker_manager import pulse
from worker_manager.core.pulse import PulseMessage
from worker_manager.pulse import AmqpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.core.model import Json

with_a_broker = pytest.mark.skipif(
    not rabbitmq.is_installed(), reason="rabbitmq-server is not installed"
)
STOPPED = "exchange/taskcluster-worker-manager/v1/worker-stopped"
REMOVED = "exchange/taskcluster-worker-manager/v1/worker-removed"
KEY = "primary.aws.proj-x.pool-1.us-east-1.i-1.lc-a._"


def a_message(exchange: str = STOPPED, **body: Any) -> PulseMessage:
    return PulseMessage(exchange, KEY, body, event_id="e-1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMq]:
    with RabbitMq(tmp_path_factory.mktemp("rabbitmq")) as running:
        yield running


@pytest.fixture
def broker(server: RabbitMq) -> Iterator[AmqpBroker]:
    made = to(server.url)
    yield made
    made.close()


def to(url: str, password: str = rabbitmq.PASSWORD) -> AmqpBroker:
    return AmqpBroker(url, username=rabbitmq.USER, password=password)


class Subscriber:
    """A queue bound to exchanges as the reference's is: durable, made by whoever listens."""

    def __init__(self, server: RabbitMq, name: str, *exchanges: str, pattern: str = "#") -> None:
        self._server = server
        self._name = name
        with self._channel() as channel:
            channel.queue_declare(name, durable=True)
            for exchange in exchanges:
                channel.exchange_declare(exchange, exchange_type="topic", durable=True)
                channel.queue_bind(name, exchange, routing_key=pattern)

    @contextmanager
    def _channel(self) -> Iterator[Any]:
        connection = self._server.connect()
        try:
            yield connection.channel()
        finally:
            connection.close()

    def next(self) -> tuple[Any, Any, Json]:
        """The oldest message: how it came, its properties, its body."""
        with self._channel() as channel:
            method, properties, body = channel.basic_get(self._name, auto_ack=True)
            assert method is not None, "there is no message"
            return method, properties, json.loads(body)

    def bodies(self) -> list[Json]:
        with self._channel() as channel:
            found: list[Json] = []
            while (got := channel.basic_get(self._name, auto_ack=True))[0] is not None:
                found.append(json.loads(got[2]))
            return found


@with_a_broker
def test_a_queue_that_listens_as_the_references_does_hears_of_dead_workers(
    server: RabbitMq, broker: AmqpBroker
) -> None:
    resolver = Subscriber(server, "worker-removed-resolver", STOPPED, REMOVED)
    messages = {"1": a_message(workerId="i-1"), "2": a_message(REMOVED, workerId="i-2")}

    assert broker.publish(messages) == {"1", "2"}

    method, properties, body = resolver.next()
    assert (method.exchange, method.routing_key) == (STOPPED, KEY)
    assert (properties.content_type, properties.content_encoding) == ("application/json", "utf-8")
    assert properties.delivery_mode == 2
    assert properties.message_id == "e-1"
    assert body == {"workerId": "i-1"}
    assert resolver.bodies() == [{"workerId": "i-2"}]


@with_a_broker
@pytest.mark.parametrize(
    ("pattern", "heard"),
    [("primary.aws.proj-x.pool-1.#", 1), ("*.*.*.*.*.i-1.*.*", 1), ("primary.google.#", 0)],
)
def test_a_listener_chooses_by_the_words_of_the_key(
    server: RabbitMq, broker: AmqpBroker, pattern: str, heard: int
) -> None:
    listener = Subscriber(server, f"by {pattern}", STOPPED, pattern=pattern)

    broker.publish({"1": a_message()})

    assert len(listener.bodies()) == heard


@with_a_broker
def test_what_nobody_listens_to_is_published_nevertheless(broker: AmqpBroker) -> None:
    assert broker.publish({"1": a_message("exchange/x/v1/worker-danced")}) == {"1"}


@with_a_broker
def test_a_broker_that_crashed_gets_later_what_it_missed_and_has_what_it_confirmed(
    server: RabbitMq, broker: AmqpBroker
) -> None:
    listener = Subscriber(server, "before and after", STOPPED)
    assert broker.publish({"1": a_message(number=1)}) == {"1"}

    server.kill()
    assert broker.publish({"2": a_message(number=2)}) == set()

    server.start()
    assert broker.publish({"2": a_message(number=2)}) == {"2"}
    assert listener.bodies() == [{"number": 1}, {"number": 2}]


@with_a_broker
def test_a_connection_that_died_while_nobody_used_it_is_replaced_unnoticed(
    server: RabbitMq, broker: AmqpBroker
) -> None:
    listener = Subscriber(server, "patient", STOPPED)
    broker.publish({"1": a_message(number=1)})
    server.kill()
    server.start()

    assert broker.publish({"2": a_message(number=2)}) == {"2"}

    assert listener.bodies() == [{"number": 1}, {"number": 2}]


@with_a_broker
def test_a_message_that_is_refused_stops_no_other(server: RabbitMq, broker: AmqpBroker) -> None:
    connection = server.connect()
    connection.channel().exchange_declare("exchange/odd", exchange_type="fanout", durable=True)
    connection.close()
    messages = {"1": a_message(), "2": a_message("exchange/odd"), "3": a_message()}

    assert broker.publish(messages) == {"1", "3"}


@with_a_broker
def test_an_exchange_that_somebody_deleted_is_declared_again(
    server: RabbitMq, broker: AmqpBroker
) -> None:
    exchange = "exchange/x/v1/deleted"
    assert broker.publish({"1": a_message(exchange)}) == {"1"}
    connection = server.connect()
    connection.channel().exchange_delete(exchange)
    connection.close()

    assert broker.publish({"2": a_message(exchange)}) == {"2"}


@with_a_broker
def test_a_wrong_password_publishes_nothing(server: RabbitMq) -> None:
    assert to(server.url, "wrong").publish({"1": a_message()}) == set()


def test_a_broker_that_is_not_there_publishes_nothing() -> None:
    broker = to(f"amqp://{LOOPBACK}:{free_port()}/%2F")

    assert broker.publish({"1": a_message(), "2": a_message()}) == set()


def test_nothing_to_publish_needs_no_broker() -> None:
    assert to(f"amqp://{LOOPBACK}:{free_port()}/%2F").publish({}) == set()


@contextmanager
def listening(*, hangs_up: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """A port whose other side reads what comes first, which is yielded too, and never answers."""
    heard: list[bytes] = []
    with socket.create_server((LOOPBACK, 0)) as listener:

        def listen() -> None:
            peer, _ = listener.accept()
            with peer:
                heard.append(peer.recv(100))
                while not hangs_up and peer.recv(100):
                    pass

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield listener.getsockname()[1], heard
        thread.join(60)


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_a_broker_that_never_answers_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(pulse, "CONNECT_SECONDS", 0.2)
    with listening() as (port, _):
        assert to(f"{scheme}://{LOOPBACK}:{port}/%2F").publish({"1": a_message()}) == set()


@pytest.mark.parametrize(("scheme", "opening"), [("amqp", b"AMQP"), ("amqps", b"\x16\x03")])
def test_tls_comes_first_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, scheme: str, opening: bytes
) -> None:
    monkeypatch.setattr(pulse, "CONNECT_SECONDS", 60)
    with listening(hangs_up=True) as (port, heard):
        assert to(f"{scheme}://{LOOPBACK}:{port}/%2F").publish({"1": a_message()}) == set()
    assert heard[0].startswith(opening)
