"""Building what looks after machines, once per container.

Where to read next: ``actions`` and ``backends``, whose parts it uses; ``reconcile.examine``.
"""

from __future__ import annotations

from functools import cache

from worker_manager import settings as settings_module
from worker_manager.mix.load import Loads
from worker_manager.reconcile.examine import ExamineDeps
from worker_manager.reconcile.remedying import Cures
from worker_manager.store.load_table import LoadTable
from worker_manager.store.machine_table import MachineTable
from worker_manager.wiring.actions import catalogue_of, runs_of
from worker_manager.wiring.backends import backend_of, quarantines_of, registry_of
from worker_manager.wiring.base import Base, later, now


@cache
def examining() -> ExamineDeps:
    """For the function that looks after machines."""
    base = Base(settings_module.load())
    registry = registry_of(base)
    return ExamineDeps(
        registry=registry,
        queue=base.queue(),
        stores=base.stores,
        outbox=base.outbox,
        errors=base.errors,
        loads=Loads(LoadTable(registry.table)),
        machines=MachineTable(registry.table),
        cures=Cures(
            registry=registry,
            runs=runs_of(base, registry),
            catalogue=catalogue_of(base, registry),
            quarantines=quarantines_of(base, registry),
            # Quarantines are seldom.
            backend=later(lambda: backend_of(base, registry)),
        ),
        clock=now,
        timing=base.timing,
        static=base.static_providers(),
    )
