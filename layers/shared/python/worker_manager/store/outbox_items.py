"""Events that wait to be published, as items; what writes a transition writes them with it.

Where to read next: ``places`` (which lists them), ``worker_manager.outbox`` (which publishes).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.store.tables import ProviderItem

OUTBOX = "#outbox"


def outbox_item(
    model: type[ProviderItem], events: Sequence[Json], created: datetime
) -> ProviderItem:
    """Events to be published, as one item named after the first of them."""
    return model(
        OUTBOX,
        outbox_key(events, created),
        event=json.dumps(list(events), separators=(",", ":")),
        created=created,
    )


def outbox_key(events: Sequence[Json], created: datetime) -> str:
    """Key of the outbox item for these events; sorts by age."""
    return f"{created.timestamp():.3f}#{events[0]['id']}"
