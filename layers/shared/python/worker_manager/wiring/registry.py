"""Building the function of the registry, apart, as no other loads what it needs.

Where to read next: ``backends`` (the registry and the queue behind it), ``api`` (its twin),
``api.registry``.
"""

from __future__ import annotations

from functools import cache

from worker_manager import settings as settings_module
from worker_manager.api.app import App
from worker_manager.api.deps import RegistryDeps
from worker_manager.api.registry import ROUTES
from worker_manager.registry.declarations import Declarations
from worker_manager.wiring.actions import catalogue_of, runs_of
from worker_manager.wiring.api import Api, new_slugid
from worker_manager.wiring.backends import backend_of, downtimes_of, quarantines_of, registry_of
from worker_manager.wiring.base import later, now


@cache
def registry_api() -> App[RegistryDeps]:
    """For whoever looks after workers, and for whoever tells of them."""
    api = Api(settings_module.load())
    registry = registry_of(api)
    queue = later(api.queue)
    deps = RegistryDeps(
        registry=registry,
        declarations=Declarations(registry),
        quarantines=quarantines_of(api, registry),
        downtimes=downtimes_of(api, registry),
        # Most calls ask for nothing beyond the table.
        backend=later(lambda: backend_of(api, registry)),
        catalogue=catalogue_of(api, registry),
        runs=runs_of(api, registry),
        act=later(lambda: api.senders()["act"]),
        queue=queue,
        stores=api.stores,
        outbox=api.outbox,
        authenticator=api.authenticator,
        root_url=api.settings.root_url,
        providers=api.settings.providers,
        issuer=api.clients.issuer,
        clock=now,
        new_slugid=new_slugid,
        page_bytes=api.settings.page_bytes,
        started=now(),
    )
    return App(ROUTES, deps)
