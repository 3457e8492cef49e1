"""What the reconciling functions work with; built once per container by ``wiring``."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.actions.ledger import Runs
    from worker_manager.core.model import Json
    from worker_manager.core.timing import Timing
    from worker_manager.outbox import Outbox
    from worker_manager.providers.protocol import CloudProvider
    from worker_manager.queues import Sender
    from worker_manager.store.stores import Stores
    from worker_manager.taskcluster.queue import QueueClient


class Blobs(Protocol):
    """Where a message goes that is too large for a queue."""

    def put(self, key: str, text: str) -> None:
        """Store ``text`` under ``key``; it may vanish after a day.  Raises ``NotStoredError``."""
        ...

    def get(self, key: str) -> str | None:
        """The text under ``key``; ``None`` if it has vanished."""
        ...


@dataclass(frozen=True, slots=True)
class Ledger:
    """The runs of actions, and how a lease of one is named."""

    runs: Runs
    new_lease_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Deps:
    """Everything outside that provision, scan and advance touch.

    ``planners`` are the ids of providers with a provision loop; ``inputs`` go into every request
    to the cloud (``rootUrl``, ``deployment``); ``senders`` are by queue: ``ticks``, ``provision``,
    ``scan``, ``advance``.  Only ``advance`` has the ``ledger``.
    """

    provider_id: str
    stores: Stores
    outbox: Outbox
    provider: CloudProvider
    queue: QueueClient
    senders: Mapping[str, Sender]
    clock: Callable[[], datetime]
    timing: Timing
    inputs: Json
    planners: frozenset[str]
    blobs: Blobs | None = None
    ledger: Ledger | None = None
    parallel: int = 8
    call_limit: timedelta = field(default=timedelta(seconds=25))
    """Longest that one cloud call may take; none is begun with less time left."""
