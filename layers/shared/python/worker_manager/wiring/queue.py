"""Building the function of the embedded queue, apart, as no other loads what it needs.

Where to read next: ``api`` (its twin), ``api.queue``.
"""

from __future__ import annotations

from functools import cache

from worker_manager import settings as settings_module
from worker_manager.api.app import App
from worker_manager.api.deps import QueueDeps
from worker_manager.api.queue import ROUTES
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.registry.declarations import Declarations
from worker_manager.store.queue_table import QueueTable
from worker_manager.wiring.actions import hosts_of
from worker_manager.wiring.api import Api
from worker_manager.wiring.backends import backend_of, quarantines_of, registry_of
from worker_manager.wiring.base import later, now


@cache
def queue_api() -> App[QueueDeps]:
    """For whoever has work, or wants some."""
    settings = settings_module.load()
    api = Api(settings)
    name = settings.required(settings_module.TABLE_VARIABLES["queue"])
    table = QueueTable.bind(name, api.tables.connection)
    registry = registry_of(api)
    deps = QueueDeps(
        queue=EmbeddedQueue(table, registry, now, api.clients.issuer, hold=settings.claim_hold),
        registry=registry,
        declarations=Declarations(registry),
        quarantines=quarantines_of(api, registry),
        backend=later(lambda: backend_of(api, registry)),
        action_hosts=hosts_of(api),
        authenticator=api.authenticator,
        root_url=settings.root_url,
        clock=now,
        page_bytes=settings.page_bytes,
    )
    return App(ROUTES, deps)
