"""Once a minute, split into ticks: one message for each pool of this provider."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.reconcile.ticks import provision_tick, ticks_in
from worker_manager.wiring import loops


@meter.written
def handle(event: dict[str, Any], _context: object) -> None:
    """Take a schedule's event, or the records of the queue ``ticks``."""
    deps = loops.loop()
    for tick in ticks_in(event, deps.timing.tick, deps):
        meter.provision_ticked(deps.provider_id, provision_tick(tick, deps))
