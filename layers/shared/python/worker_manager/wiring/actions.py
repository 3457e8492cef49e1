"""Building what knows of actions, and what calls other services for them.

Where to read next: ``registry`` and ``loops``, which use it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from worker_manager.actions.catalogue import Catalogue
from worker_manager.actions.hosts import Hosts
from worker_manager.actions.ledger import Runs
from worker_manager.core.ids import derived_slugid
from worker_manager.settings import TABLE_VARIABLES
from worker_manager.store.action_table import ActionTable

if TYPE_CHECKING:
    from worker_manager.actions.calls import HttpCaller
    from worker_manager.registry.registry import Registry
    from worker_manager.wiring.base import Base


def hosts_of(base: Base) -> Hosts:
    """The hosts that ``http`` actions may call."""
    return Hosts.of(base.settings.action_hosts)


def catalogue_of(base: Base, registry: Registry) -> Catalogue:
    """Which actions there are."""
    return Catalogue(registry, base.stores.workers, base.settings.providers, hosts_of(base))


def caller_of(base: Base) -> HttpCaller:
    """Calls the services of ``http`` actions in the issuer's name."""
    # Only one function calls, and it seldom.
    from worker_manager.actions.calls import HttpCaller  # noqa: PLC0415
    from worker_manager.taskcluster.signed_http import SignedHttp  # noqa: PLC0415

    return HttpCaller(SignedHttp(base.issuer_credentials), hosts_of(base))


def runs_of(base: Base, registry: Registry) -> Runs:
    """The runs, which end where the registry saw that a worker is back."""
    name = base.settings.required(TABLE_VARIABLES["actions"])
    return Runs(
        ActionTable.bind(name, base.tables),
        registry,
        announce=base.outbox.send,
        comes_back=base.timing.comes_back,
    )


def new_lease_id() -> str:
    """A random slugid."""
    return derived_slugid(secrets.token_hex(16))
