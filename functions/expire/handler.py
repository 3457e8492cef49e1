"""Once an hour: ends of life of static workers, launch configs, places, pools, and sightings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from worker_manager.metrics import meter
from worker_manager.reconcile.expire import expire
from worker_manager.wiring import loops, sightings


@meter.written
def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the schedule's event."""
    return expire(replace(loops.keeper(), declarations=sightings.declarations()))
