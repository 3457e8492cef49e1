"""What handlers work with, made once per container by ``wiring`` and by tests.

Where to read next: ``app``, which hands it to handlers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    from worker_manager.actions.catalogue import Catalogue
    from worker_manager.actions.hosts import Hosts
    from worker_manager.actions.ledger import Runs
    from worker_manager.core.activity import SeenWorker
    from worker_manager.core.timing import Timing
    from worker_manager.identity.azure_certificates import AzureAnchors
    from worker_manager.identity.google_keys import GoogleKeys
    from worker_manager.outbox import Outbox
    from worker_manager.queue.embedded import EmbeddedQueue
    from worker_manager.queues import Sender
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.registry.declarations import Declarations
    from worker_manager.registry.downtimes import Downtimes
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry
    from worker_manager.settings import ProviderSettings
    from worker_manager.store.audit import AuditStore
    from worker_manager.store.pool_errors import PoolErrorStore
    from worker_manager.store.stores import Stores
    from worker_manager.taskcluster.auth import Authenticator
    from worker_manager.taskcluster.credentials import Issuer
    from worker_manager.taskcluster.memory import Memory
    from worker_manager.taskcluster.queue import QueueClient


class AnyDeps(Protocol):
    """What every API needs, whatever it is about."""

    @property
    def authenticator(self) -> Authenticator:
        """Who says who signed a request."""
        ...

    @property
    def root_url(self) -> str:
        """Where clients believe to talk to; they sign its host, port and prefix."""
        ...

    @property
    def clock(self) -> Callable[[], datetime]:
        """The time, aware and UTC."""
        ...


class RegistryAccess(AnyDeps, Protocol):
    """What the registry's own methods need, wherever they are answered."""

    @property
    def registry(self) -> Registry:
        """Who was seen where."""
        ...

    @property
    def declarations(self) -> Declarations:
        """What people say of it."""
        ...

    @property
    def quarantines(self) -> Quarantines:
        """Who gets no tasks."""
        ...

    @property
    def backend(self) -> QueueBackend:
        """Where tasks are given out."""
        ...

    @property
    def action_hosts(self) -> Hosts:
        """Which hosts ``http`` actions may call."""
        ...

    @property
    def page_bytes(self) -> int:
        """What a page of a list may take."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDeps:
    """Of the worker-manager's API.

    ``providers`` are those of this deployment by id, in its order; ``senders`` the queues
    ``provision`` and ``advance`` of each that has a loop.  ``queue`` is the task queue, which only
    the function for operators may ask.  ``new_secret`` gives 44 random
    characters, ``new_slugid`` a random slugid; ``trusted_keys`` sign EC2's identity documents,
    ``google_keys`` Google's identity tokens, and ``azure_anchors`` stand behind Azure's documents.
    """

    stores: Stores
    errors: PoolErrorStore
    audit: AuditStore
    outbox: Outbox
    authenticator: Authenticator
    root_url: str
    providers: Mapping[str, ProviderSettings]
    senders: Mapping[str, Mapping[str, Sender]]
    queue: QueueClient
    has_embedded_queue: bool
    """Whether that queue is ours, under the same root URL."""
    queue_lists: Memory[Sequence[SeenWorker]]
    """The workers of a pool, by its id, as a queue listed them that orders them by itself."""
    issuer: Issuer
    clock: Callable[[], datetime]
    new_secret: Callable[[], str]
    new_slugid: Callable[[], str]
    timing: Timing
    trusted_keys: Sequence[RSAPublicKey]
    google_keys: GoogleKeys
    azure_anchors: AzureAnchors
    page_bytes: int
    """What a page of a list may take, escaped as Lambda hands it on to the front door."""
    started: datetime
    """When this container began to serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryDeps:
    """Of the registry's API.

    ``queue`` is the task queue, asked for counts; ``backend`` is how the registry hears from it,
    and where a quarantine takes hold.  ``providers`` are those of this deployment by id.
    """

    registry: Registry
    declarations: Declarations
    quarantines: Quarantines
    downtimes: Downtimes
    backend: QueueBackend
    catalogue: Catalogue
    queue: QueueClient
    stores: Stores
    outbox: Outbox
    runs: Runs
    act: Sender
    """Where runs go that no agent does."""
    authenticator: Authenticator
    root_url: str
    providers: Mapping[str, ProviderSettings]
    issuer: Issuer
    clock: Callable[[], datetime]
    new_slugid: Callable[[], str]
    page_bytes: int
    """What a page of a list may take, escaped as Lambda hands it on to the front door."""
    started: datetime
    """When this container began to serve."""

    @property
    def action_hosts(self) -> Hosts:
        """Which hosts ``http`` actions may call."""
        return self.catalogue.hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDeps:
    """Of the embedded queue's API, which has the registry's methods as well."""

    queue: EmbeddedQueue
    registry: Registry
    declarations: Declarations
    quarantines: Quarantines
    backend: QueueBackend
    action_hosts: Hosts
    authenticator: Authenticator
    root_url: str
    clock: Callable[[], datetime]
    page_bytes: int
