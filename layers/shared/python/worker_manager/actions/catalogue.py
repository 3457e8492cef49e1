"""Which actions there are for a provisioner, worker type or worker, as declared and by itself.

Read next: ``declared``, which decides it from what is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.actions import declared
from worker_manager.actions.entities import Level
from worker_manager.core.model import State
from worker_manager.providers.registry import CLOUDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.actions.entities import Offered, Target
    from worker_manager.actions.hosts import Hosts
    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.registry.registry import Registry
    from worker_manager.settings import ProviderSettings
    from worker_manager.store.workers import WorkerStore

_UP = frozenset({State.REQUESTED, State.RUNNING})


class Catalogue:
    """The actions of a deployment."""

    def __init__(
        self,
        registry: Registry,
        workers: WorkerStore,
        providers: Mapping[str, ProviderSettings],
        hosts: Hosts,
    ) -> None:
        """``hosts`` are those that ``http`` actions may call; ``providers`` those by id."""
        self.hosts = hosts
        self._registry = registry
        self._workers = workers
        self._providers = providers

    def offered(self, target: Target) -> list[Offered]:
        """All actions of a target, known or not, as ``declared.offered``."""
        return declared.offered(
            target,
            self.declared(target),
            can_reboot=self._can_reboot(target.key),
            hosts=self.hosts,
        )

    def find(self, target: Target, name: str, level: Level | None = None) -> Offered:
        """The one action that is meant; errors as of ``declared.find``."""
        return declared.find(self.offered(target), name, level, context=target.context)

    def declared(self, target: Target) -> dict[Level, tuple[Json, ...]]:
        """What is declared at a target and above it."""
        provisioner = self._registry.provisioner(target.provisioner_id)
        found = {Level.PROVISIONER: provisioner.declaration.actions if provisioner else ()}
        if target.queue_id is not None:
            of_type = self._registry.worker_type(target.queue_id)
            found[Level.WORKER_TYPE] = of_type.declaration.actions if of_type else ()
        if target.key is not None:
            worker = self._registry.worker(target.key)
            found[Level.WORKER] = worker.actions if worker else ()
        return found

    def _can_reboot(self, key: WorkerKey | None) -> bool:
        row = self._workers.get(key) if key is not None else None
        if row is None or row.state not in _UP:
            return False
        provider = self._providers.get(row.provider_id)
        return provider is not None and provider.provider_type in CLOUDS
