"""Machines of orders that are not settled, so that a repeated order asks for the others only.

An order that the cloud slows down is sent again and again; if each send began with what is there
already, a rate quota might be used up before the first missing machine.  This is a saving and no
more: a container that knows nothing asks for all, with the same names and request ids.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import LaunchOrder, Sighting
    from worker_manager.providers.protocol import Launched

MOST_ORDERS = 200
"""Orders that are remembered; the oldest are forgotten first."""


class Accepted:
    """What was accepted of the orders that this container sent and that are still open."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._orders: dict[str, dict[str, Sighting]] = {}

    def of(self, order: LaunchOrder) -> Mapping[str, Sighting]:
        """Machines of an order that are there already, by name, as far as they are wanted."""
        with self._lock:
            known = self._orders.get(order.order_id, {})
        return {
            name: machine
            for name, machine in known.items()
            if order.only is None or name in order.only
        }

    def keep(self, order: LaunchOrder, launched: Launched) -> Launched:
        """Remember what an order brought if it will be sent again, else forget it."""
        with self._lock:
            self._orders.pop(order.order_id, None)
            if launched.unanswered is not None:
                self._orders[order.order_id] = {
                    str(machine.identity["name"]): machine for machine in launched.machines
                }
            while len(self._orders) > MOST_ORDERS:
                del self._orders[next(iter(self._orders))]
        return launched
