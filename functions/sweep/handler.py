"""Every few minutes: take away what no machine uses and nobody would miss."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.reconcile.sweep import sweep
from worker_manager.wiring import loops


@meter.written
@loops.when_ready
def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the schedule's event."""
    return sweep(loops.loop())
