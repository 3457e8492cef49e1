"""The stores that functions share, as one value.  Where to read next: ``tables``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker_manager.store.health import HealthStore
    from worker_manager.store.offerings import OfferingStore
    from worker_manager.store.pauses import PauseStore
    from worker_manager.store.places import PlaceStore
    from worker_manager.store.plans import PlanStore
    from worker_manager.store.pools import PoolStore
    from worker_manager.store.provider_status import ProviderStatusStore
    from worker_manager.store.slots import SlotStore
    from worker_manager.store.workers import WorkerStore


@dataclass(frozen=True, slots=True)
class Stores:
    """The tables, by what is done with them."""

    pools: PoolStore
    workers: WorkerStore
    plans: PlanStore
    places: PlaceStore
    health: HealthStore
    statuses: ProviderStatusStore
    offerings: OfferingStore
    pauses: PauseStore
    slots: SlotStore
