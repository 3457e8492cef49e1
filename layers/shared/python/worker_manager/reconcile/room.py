"""Room in stores of a cloud that pools share: held before a machine is asked for, until it is made.

Where to read next: ``providers.protocol.Slots`` (who has such stores), ``store.slots`` (who holds
what).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import NoRoomError
from worker_manager.providers.protocol import Slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker_manager.core.model import LaunchOrder, Sighting, Worker
    from worker_manager.reconcile.deps import Deps

PAUSE = timedelta(seconds=10)
"""How long an order waits for room."""


def make_room(request: LaunchOrder, machines: Sequence[Sighting], deps: Deps) -> None:
    """Hold the slots that an order needs; ``NoRoomError`` while there are too few."""
    if not isinstance(deps.provider, Slots):
        return
    store = deps.provider.slots(request)
    if store is None:
        return
    if not deps.stores.slots.take(
        deps.provider_id,
        store.name,
        request.order_id,
        [machine.key.worker_id for machine in machines],
        most=store.most,
        now=deps.clock(),
    ):
        raise NoRoomError(
            f"{store.name} has no room for {request.count} more", code="NoRoom", retry_after=PAUSE
        )


def give_back(workers: Iterable[Worker], deps: Deps) -> None:
    """Free what these workers' creation held, now that it is over; their rows are whole."""
    if not isinstance(deps.provider, Slots):
        return
    holders: dict[tuple[str, str], set[str]] = defaultdict(set)
    for worker in workers:
        name = deps.provider.slots_of(worker)
        if name is not None and worker.order_id is not None:
            holders[name, worker.order_id].add(worker.key.worker_id)
    for (name, order_id), names in holders.items():
        deps.stores.slots.give_back(deps.provider_id, name, order_id, names)
