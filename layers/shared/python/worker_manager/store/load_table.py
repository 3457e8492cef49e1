"""Samples of task queues' load, in the registry's table: a row for each hour of each queue.

Partition ``<task queue id>#load``, sort key the hour's beginning; an attribute for each five
minutes, with the figures as one short text.  A sample touches nothing but its own attribute: no
order of samples and no repeat does harm.  What samples mean is said in ``mix.load``.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.registry_items import epoch
from worker_manager.store.tables import bind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.store.registry_table import RegistryTable

Figures: TypeAlias = tuple[int, int, int, int]
"""Tasks that wait and that are held, workers that may take some and that may not."""

_SLOTS = {f"m{minute:02}": timedelta(minutes=minute) for minute in range(0, 60, 5)}


class LoadItem(Model):
    """``m00`` to ``m55`` are the samples of an hour, each its figures with spaces between."""

    class Meta:
        """Bound by ``LoadTable``."""

        table_name = "registry"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute(null=True)
    locals().update({name: UnicodeAttribute(null=True) for name in _SLOTS})


class LoadTable:
    """The verbs of samples."""

    def __init__(self, table: RegistryTable) -> None:
        """Over the registry's table."""
        self._model = bind(LoadItem, table.items.Meta.table_name, table.tables.connection)

    def note(self, queue_id: str, at: datetime, figures: Figures, *, until: datetime) -> None:
        """Keep what was counted in the five minutes from ``at``, in place of what was before."""
        model = self._model
        hour = at.replace(minute=0)
        slot = getattr(model, f"m{at.minute:02}")
        model(_partition(queue_id), to_wire(hour)).update(
            [slot.set(" ".join(map(str, figures))), model.ttl.set(epoch(until))]
        )

    def read(
        self, queue_id: str, *, since: datetime, until: datetime
    ) -> Iterator[tuple[datetime, Figures]]:
        """What was counted from ``since`` until before ``until``, in order."""
        hours = self._model.sk.between(to_wire(since.replace(minute=0)), to_wire(until))
        for item in self._model.query(_partition(queue_id), hours):
            hour, texts = from_wire(item.sk), item.attribute_values
            for name, later in _SLOTS.items():
                at = hour + later
                if name in texts and since <= at < until:
                    pending, claimed, workers, quarantined = texts[name].split()
                    yield at, (int(pending), int(claimed), int(workers), int(quarantined))


def _partition(queue_id: str) -> str:
    return f"{queue_id}#load"
