"""Shared breakers as items, in the partition of their provider.

Where to read next: ``offerings``, which changes them, ``places``, which reads all of a provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.breaker import Breaker
from worker_manager.core.health import REMEMBERED

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.store.tables import ProviderItem

OFFERING = "off#"


def to_offering(item: ProviderItem, now: datetime) -> tuple[str, Breaker] | None:
    """An offering and its breaker; ``None`` once what failed of it is too old to matter."""
    breaker = Breaker.from_json(item.breaker) if item.breaker else None
    if breaker is None or (breaker.is_closed and now - breaker.since > REMEMBERED):
        return None
    return item.worker_pool_id.removeprefix(OFFERING), breaker
