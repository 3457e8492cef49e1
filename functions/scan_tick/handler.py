"""Once a minute, split into ticks: list each location once, tell every pool of its part."""

from __future__ import annotations

from time import monotonic
from typing import Any

from worker_manager.metrics import meter
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.ticks import ticks_in
from worker_manager.wiring import loops


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], _context: object) -> None:
    """Take a schedule's event, or the records of the queue ``ticks``."""
    deps = loops.loop()
    for tick in ticks_in(event, deps.timing.scan, deps):
        started = monotonic()
        report = scan_tick(tick, deps)
        meter.scan_ticked(deps.provider_id, report, seconds=monotonic() - started)
