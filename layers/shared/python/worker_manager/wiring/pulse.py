"""Building the function that publishes over AMQP, apart, as no other has that library.

Where to read next: ``base`` (what every function shares), ``worker_manager.pulse``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from worker_manager import settings as settings_module
from worker_manager.pulse import AmqpBroker
from worker_manager.queues import SqsSender
from worker_manager.secrets import login
from worker_manager.wiring.base import Base

if TYPE_CHECKING:
    from worker_manager.pulse import Broker
    from worker_manager.queues import Sender


@dataclass(frozen=True, slots=True)
class Pulse:
    """The broker, whose exchanges ours are, and where events go that do not fit into any."""

    broker: Broker
    namespace: str
    dead: Sender


@cache
def pulse() -> Pulse:
    """For the function that tells Taskcluster's other services."""
    base = Base(settings_module.load())
    url = base.settings.required("WM_PULSE_URL")
    namespace = base.settings.required("WM_PULSE_NAMESPACE")
    known = login(base.secret("WM_PULSE_SECRET"))
    broker = AmqpBroker(url, username=known.username, password=known.password)
    dead = SqsSender(base.client("sqs"), base.settings.required("WM_QUEUE_DEAD"))
    return Pulse(broker, namespace, dead)
