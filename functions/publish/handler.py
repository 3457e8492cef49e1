"""Once a minute: tell of what ended by itself, publish late events, and send mail."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.reconcile.mailing import send_mail
from worker_manager.reconcile.publish import publish
from worker_manager.wiring import loops, sightings
from worker_manager.wiring.base import now


@meter.written
def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the schedule's event."""
    keeper = loops.keeper(mails=True)
    report = {**publish(keeper), "mail": send_mail(keeper)}
    return report | {
        "released": sightings.quarantines().release_due(now=now()),
        "opened": sightings.downtimes().open_due(now=now()),
    }
