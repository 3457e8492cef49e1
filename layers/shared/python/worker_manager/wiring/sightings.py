"""Building what works on the registry besides its API and the queue, once per container.

Where to read next: ``backends`` (the registry itself), ``registry`` (what answers HTTP).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from worker_manager import settings as settings_module
from worker_manager.reconcile.worker_ends import EndDeps
from worker_manager.registry.declarations import Declarations
from worker_manager.settings import TABLE_VARIABLES
from worker_manager.wiring.backends import backend_of, downtimes_of, quarantines_of, registry_of
from worker_manager.wiring.base import Base, not_given, now

if TYPE_CHECKING:
    from worker_manager.queue.embedded import EmbeddedQueue
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.registry.downtimes import Downtimes
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry


@cache
def quarantines() -> Quarantines:
    """For the function that tells of quarantines which have ended by themselves."""
    base = Base(settings_module.load())
    return quarantines_of(base, registry_of(base))


@cache
def downtimes() -> Downtimes:
    """For the function that tells of downtimes which have ended by themselves."""
    base = Base(settings_module.load())
    return downtimes_of(base, registry_of(base))


@cache
def declarations() -> Declarations:
    """For the function that forgets what nobody has seen, or spoken of, for long."""
    return Declarations(registry_of(Base(settings_module.load())))


@cache
def backend() -> QueueBackend:
    """For the function that asks a Taskcluster queue what it saw."""
    base = Base(settings_module.load())
    return backend_of(base, registry_of(base))


@cache
def worker_ends() -> EndDeps:
    """For the function that hears of workers' ends."""
    base = Base(settings_module.load())
    registry = registry_of(base)
    return EndDeps(
        registry=registry,
        quarantines=quarantines_of(base, registry),
        queue=_queue(base, registry),
        static=base.static_providers(),
    )


def _queue(base: Base, registry: Registry) -> EmbeddedQueue | None:
    """Our own queue, where this stage has it."""
    if not base.has(TABLE_VARIABLES["queue"]):
        return None
    from worker_manager.queue.embedded import EmbeddedQueue  # noqa: PLC0415
    from worker_manager.store.queue_table import QueueTable  # noqa: PLC0415

    name = base.settings.required(TABLE_VARIABLES["queue"])
    table = QueueTable.bind(name, base.tables.connection)
    # Nobody is given credentials here.
    return EmbeddedQueue(table, registry, now, not_given("WM_AUTH_SECRET"))
