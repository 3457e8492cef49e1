"""Once an hour: ends of life of static workers, launch configs, places and deleted pools."""

from __future__ import annotations

from typing import Any

from worker_manager import wiring
from worker_manager.reconcile.expire import expire


def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the schedule's event."""
    return expire(wiring.keeper())
