"""The registry's API over tables in memory, with the same client in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.action_tables import some_runs
from tests.api.world import ISSUER, ROOT_URL, TOKEN, Api, Clock, MemorySender
from tests.registry_tables import ACTION_HOSTS, a_registry
from worker_manager.actions.catalogue import Catalogue
from worker_manager.api.app import App
from worker_manager.api.deps import RegistryDeps
from worker_manager.api.registry import ROUTES
from worker_manager.core.model import WorkerKey
from worker_manager.core.roles import Roles
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.downtimes import Downtimes
from worker_manager.registry.observations import Kind, Observation
from worker_manager.registry.quarantines import Quarantines
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.store.tables import Tables

BASE = "/api/worker-registry/v1"
POOL = "proj-x/builders"
TYPE = "/provisioners/proj-x/worker-types/builders"
WORKER = f"{TYPE}/workers/rack-1/m-1"


class RegistryApi(Api):
    """Requests are signed by ``test/root``, who may do everything, or by those of ``clients``."""

    def __init__(
        self,
        tables: Tables,
        *,
        root_url: str = ROOT_URL,
        clients: Sequence[Client] = (),
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        super().__init__(tables, self.clock, root_url)
        behind = self.deps
        self.registry = a_registry(tables)
        self.act = MemorySender()
        self.runs = some_runs(tables, self.registry, announce=behind.outbox.send)
        known = [Client("test/root", TOKEN, ("*",)), Client("test/poor", TOKEN), *clients]
        deps: Any = RegistryDeps(
            registry=self.registry,
            declarations=Declarations(self.registry),
            quarantines=Quarantines(self.registry, announce=behind.outbox.send),
            downtimes=Downtimes(self.registry, announce=behind.outbox.send),
            backend=BuiltinBackend(),
            catalogue=Catalogue(
                self.registry, behind.stores.workers, behind.providers, ACTION_HOSTS
            ),
            queue=self.queue,
            stores=behind.stores,
            outbox=behind.outbox,
            runs=self.runs,
            act=self.act,
            authenticator=LocalAuthenticator(known, Roles(()), self.clock),
            root_url=root_url,
            providers=behind.providers,
            issuer=ISSUER,
            clock=self.clock,
            new_slugid=behind.new_slugid,
            page_bytes=behind.page_bytes,
            started=self.clock(),
        )
        routes: Any = ROUTES
        self.deps = deps
        self.app = App(routes, deps)

    def see(self, worker_id: str = "m-1", *, pool: str = POOL, group: str = "rack-1") -> None:
        """A worker calls for work."""
        key = WorkerKey(pool, group, worker_id)
        self.registry.observe([Observation(key, Kind.IDLE, self.clock.now)])
