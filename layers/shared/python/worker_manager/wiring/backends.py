"""Building the registry, and the queue behind it.

Where to read next: ``base`` (what every function shares), ``registry`` and ``sightings``, which
use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.registry.registry import Registry
from worker_manager.settings import TABLE_VARIABLES
from worker_manager.store.registry_table import RegistryTable
from worker_manager.wiring.base import not_given

if TYPE_CHECKING:
    from worker_manager.wiring.base import Base


def registry_of(base: Base) -> Registry:
    """The registry, over the tables and the bus that a function was given."""
    table = RegistryTable.bind(base.settings.required(TABLE_VARIABLES["registry"]), base.tables)
    announce = base.outbox.send if base.has("WM_BUS") else not_given("WM_BUS")
    return Registry(table, announce=announce, interval=base.timing.sighting)
