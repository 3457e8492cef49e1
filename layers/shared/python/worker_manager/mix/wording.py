"""What a proposal says in words.

Where to read next: ``recommender``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

    from worker_manager.mix.entities import Line, Machine, Pool, Waits


def in_words(duration: timedelta) -> str:
    """A duration in the unit that suits it."""
    seconds = duration.total_seconds()
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def about_pool(line: Line, pool: Pool, *, enough: int) -> Line:
    """A line with why it is as it is."""
    return replace(line, reason=_reason(line, pool, enough))


def _reason(line: Line, pool: Pool, enough: int) -> str:
    wishes = pool.wishes
    if line.service is None:
        return "keeps its machines: no task has ended yet, so nobody knows how long they take"
    if line.before is None or line.after is None:
        known = len(pool.samples)
        return f"keeps its machines: of {enough} samples that are needed there are {known}"
    if line.now < min(wishes.minimum, line.proposed):
        return f"has fewer machines than its minimum of {wishes.minimum}"
    if wishes.maximum is not None and line.now > max(wishes.maximum, line.proposed):
        return f"has more machines than its maximum of {wishes.maximum}"
    return _about_waits(line, _worst(line.before), _worst(line.after))


def _about_waits(line: Line, before: str, after: str) -> str:
    if line.proposed == line.now:
        return f"95 of 100 tasks wait up to {before}"
    if line.proposed > line.now:
        return f"95 of 100 tasks wait up to {before}; with {line.proposed} machines, up to {after}"
    needed = f"{line.demand or 0:.1f} machines are enough 95 % of the time"
    return f"{needed}; with {line.proposed}, 95 of 100 tasks wait up to {after}"


def _worst(waits: Waits) -> str:
    return "for ever" if waits.worst is None else in_words(waits.worst)


def because_of(machine: Machine, target: Line) -> str:
    """Why this machine, and where to."""
    if machine.is_busy:
        doing = "at work, as are all that are left"
    elif machine.last_claim is None:
        doing = "never had a task"
    else:
        doing = f"idle, last task taken {machine.last_claim:%Y-%m-%d %H:%M}"
    return f"{doing}; of {target.queue_id}, {target.reason}"
