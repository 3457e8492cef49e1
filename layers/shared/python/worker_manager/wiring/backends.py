"""Building the registry, and the queue behind it.

Where to read next: ``base`` (what every function shares), ``registry`` and ``sightings``, which
use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.registry.downtimes import Downtimes
from worker_manager.registry.quarantines import Quarantines
from worker_manager.registry.registry import Registry
from worker_manager.settings import TABLE_VARIABLES, QueueKind
from worker_manager.store.registry_table import RegistryTable
from worker_manager.wiring.base import now

if TYPE_CHECKING:
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.wiring.base import Base


def registry_of(base: Base) -> Registry:
    """The registry, over its table."""
    table = RegistryTable.bind(base.settings.required(TABLE_VARIABLES["registry"]), base.tables)
    return Registry(table, interval=base.timing.sighting)


def quarantines_of(base: Base, registry: Registry) -> Quarantines:
    """Who gets no tasks, told on the bus."""
    return Quarantines(registry, announce=base.outbox.send)


def downtimes_of(base: Base, registry: Registry) -> Downtimes:
    """Which types get no tasks, told on the bus."""
    return Downtimes(registry, announce=base.outbox.send)


def backend_of(base: Base, registry: Registry) -> QueueBackend:
    """The queue that gives tasks to workers, as the registry sees it."""
    # Of each kind only what this stage has is loaded.
    match base.settings.queue_kind:
        case QueueKind.BUILTIN:
            from worker_manager.registry.backends.builtin import BuiltinBackend  # noqa: PLC0415

            return BuiltinBackend()
        case QueueKind.REMOTE:
            return _remote(base, registry)
        case QueueKind.EVENTS:
            from worker_manager.registry.backends.events import EventsBackend  # noqa: PLC0415

            return EventsBackend()


def _remote(base: Base, registry: Registry) -> QueueBackend:
    from worker_manager.registry.backends.remote import RemoteBackend  # noqa: PLC0415
    from worker_manager.taskcluster.observed_queue import ObservedQueue  # noqa: PLC0415
    from worker_manager.taskcluster.queue_http import QueueHttp  # noqa: PLC0415

    http = QueueHttp(base.settings.queue_root_url, base.issuer_credentials())
    return RemoteBackend(registry, quarantines_of(base, registry), ObservedQueue(http), now)
