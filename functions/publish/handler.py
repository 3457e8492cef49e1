"""Once a minute: publish the events that their writers did not get to."""

from __future__ import annotations

from typing import Any

from worker_manager import wiring
from worker_manager.reconcile.publish import publish


def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the schedule's event."""
    return publish(wiring.keeper())
