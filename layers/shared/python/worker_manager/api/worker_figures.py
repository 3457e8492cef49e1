"""How workers fare, as it is told; what cannot be told is left out.

Where to read next: ``worker_manager.registry.figures``, where it is worked out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api.registry_answers import told
from worker_manager.registry import figures

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.found import Found
    from worker_manager.registry.entities import Outcomes

DIGITS = 4
"""Of a rate, behind the point."""


def worker_figures(found: Found, now: datetime) -> dict[str, Any]:
    """Fields of ``WorkerFigures``."""
    outcomes = figures.outcomes_of([found.seen] if found.seen else [], now)
    up = figures.uptime(found.seen, found.row)
    return {
        "health": figures.health(found.seen, found.row, now).value,
        **rate_figures(outcomes),
        **told(
            last_claim=found.seen and found.seen.last_claim,
            up_since=up and up.since,
            uptime_seconds=up and max(0, int((now - up.since).total_seconds())),
            uptime_is_approximate=up and up.is_approximate,
        ),
    }


def rate_figures(outcomes: Outcomes) -> dict[str, Any]:
    """Rates as far as there were runs enough."""
    rates = figures.rates(outcomes)
    failure, exception = rates.failure, rates.exception
    return {
        "runs": rates.runs,
        **told(
            failure_rate=None if failure is None else round(failure, DIGITS),
            exception_rate=None if exception is None else round(exception, DIGITS),
        ),
    }
