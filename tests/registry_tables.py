"""A registry on an in-memory table, and what belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.actions.hosts import Hosts
from worker_manager.api.deps import QueueDeps
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.downtimes import Downtimes
from worker_manager.registry.quarantines import Quarantines
from worker_manager.registry.registry import Registry
from worker_manager.store.registry_items import RegistryItem
from worker_manager.store.registry_table import RegistryTable
from worker_manager.store.tables import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker_manager.core.model import Json
    from worker_manager.queue.embedded import EmbeddedQueue
    from worker_manager.store.tables import Tables


ACTION_HOSTS = Hosts.of(["allowed.example", "hooks.example.com"])
"""Which hosts actions may call."""


def a_registry(tables: Tables, name: str = "test-registry", **options: Any) -> Registry:
    """With a table of its own, made inside whatever mock is active; ``tables`` have the outbox."""
    model = bind(RegistryItem, name, tables.connection)
    model.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    return Registry(RegistryTable(model, tables), **options)


def queue_deps(
    queue: EmbeddedQueue, registry: Registry, *, authenticator: Any, root_url: str, clock: Any
) -> QueueDeps:
    """What the embedded queue's API works with, over a registry."""
    return QueueDeps(
        queue=queue,
        registry=registry,
        declarations=Declarations(registry),
        quarantines=quarantines_of(registry),
        backend=BuiltinBackend(),
        action_hosts=ACTION_HOSTS,
        authenticator=authenticator,
        root_url=root_url,
        clock=clock,
        page_bytes=4_000_000,
    )


def downtimes_of(
    registry: Registry, announce: Callable[[str, Sequence[Json]], object] | None = None
) -> Downtimes:
    """Its downtimes, told to nobody unless somebody listens."""
    return Downtimes(registry, announce=announce or (lambda _key, _events: None))


def quarantines_of(
    registry: Registry, announce: Callable[[str, Sequence[Json]], object] | None = None
) -> Quarantines:
    """Its quarantines, told to nobody unless somebody listens."""
    return Quarantines(registry, announce=announce or (lambda _key, _events: None))
