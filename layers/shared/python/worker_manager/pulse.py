"""Publishing messages over AMQP, each confirmed by the broker before it counts as sent.

One connection is kept as long as its container lives and works; whatever goes wrong with it, it is
given up, and the next attempt makes another.  No wait is without an end: connecting, a broker that
blocks publishers, one that has gone silent (its heartbeat) all have their limit.
Where to read next: ``core.pulse`` (what a message says); ``bus`` is its twin.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import pika  # type: ignore[import-untyped]
from pika.exceptions import (  # type: ignore[import-untyped]
    AMQPConnectionError,
    AMQPError,
    NackError,
)

from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.pulse import PulseMessage

CONNECT_SECONDS = 5
"""For a TCP connection, and again for TLS and AMQP on top of it."""
BLOCKED_SECONDS = 10
"""How long a broker that is short of memory or disk may keep a publisher waiting."""
HEARTBEAT_SECONDS = 10
"""A broker that is silent for so long is taken for gone, also while it owes a confirmation."""


class Broker(Protocol):
    """Where messages go."""

    def publish(self, messages: Mapping[str, PulseMessage]) -> set[str]:
        """Publish; returns the names of those that were confirmed.  Never raises for the others."""
        ...

    def close(self) -> None:
        """Give up whatever is kept open."""
        ...


class AmqpBroker:
    """An AMQP 0-9-1 broker, such as RabbitMQ."""

    def __init__(self, url: str, *, username: str, password: str) -> None:
        """``url`` is ``amqps://host[:port]/<virtual host, percent-encoded>``."""
        parameters = pika.URLParameters(url)
        parameters.credentials = pika.PlainCredentials(username, password, erase_on_connect=False)
        parameters.socket_timeout = CONNECT_SECONDS
        parameters.stack_timeout = 2 * CONNECT_SECONDS
        parameters.blocked_connection_timeout = BLOCKED_SECONDS
        parameters.heartbeat = HEARTBEAT_SECONDS
        parameters.connection_attempts = 1
        self._parameters = parameters
        self._connection: Any = None
        self._channel: Any = None
        self._declared: set[str] = set()

    def publish(self, messages: Mapping[str, PulseMessage]) -> set[str]:
        """Publish one after the other; one that is refused stops no other, a lost broker does."""
        confirmed: set[str] = set()
        for name, message in messages.items():
            try:
                self._publish(message)
                confirmed.add(name)
            except (AMQPConnectionError, OSError) as error:
                left = len(messages) - len(confirmed)
                logger.warning("the broker was not reached", error=repr(error), left=left)
                break
            except AMQPError as error:
                logger.warning(
                    "a message was refused", exchange=message.exchange, error=repr(error)
                )
        return confirmed

    def close(self) -> None:
        """Give up the connection, if there is one; it may be broken already."""
        connection, self._connection, self._channel = self._connection, None, None
        self._declared.clear()
        try:
            if connection is not None and connection.is_open:
                connection.close()
        except (AMQPError, OSError) as error:
            logger.info("a connection broke as it was closed", error=repr(error))

    def _publish(self, message: PulseMessage) -> None:
        """Send one message; a kept connection that turns out to be dead is replaced once.

        It may have died while its container slept, and an exchange may have been deleted since.
        """
        for is_last in (self._connection is None, True):
            try:
                self._send(message)
                return
            except NackError:
                raise
            except (AMQPError, OSError):
                self.close()
                if is_last:
                    raise

    def _connect(self) -> None:
        if self._connection is None:
            try:
                self._connection = pika.BlockingConnection(self._parameters)
            except Exception as error:
                # Some of what it raises then has no ancestor in common with the rest.
                raise ConnectionError(repr(error)) from None
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()

    def _send(self, message: PulseMessage) -> None:
        """Hand one message over and wait until the broker has it.

        A message that nobody is subscribed to is confirmed as well, and gone: that is AMQP.
        """
        self._connect()
        if message.exchange not in self._declared:
            self._channel.exchange_declare(message.exchange, exchange_type="topic", durable=True)
            self._declared.add(message.exchange)
        self._channel.basic_publish(
            exchange=message.exchange,
            routing_key=message.routing_key,
            body=json.dumps(message.body, separators=(",", ":")).encode(),
            properties=pika.BasicProperties(
                content_type="application/json",
                content_encoding="utf-8",
                delivery_mode=pika.DeliveryMode.Persistent.value,
                message_id=message.event_id,
            ),
        )
