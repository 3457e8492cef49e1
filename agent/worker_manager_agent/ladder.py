"""Which rung comes next.  Pure.

A rung is climbed once a run, also by different agents one after the other: what was begun is not
begun again, even if nobody knows whether it was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager_agent.inventory import Rung

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager_agent.inventory import Host
    from worker_manager_agent.messages import Attempt


def left(host: Host, attempts: Sequence[Attempt]) -> list[Rung]:
    """The rungs above the highest that was tried, lowest first; also those without facts."""
    tried = {attempt.method for attempt in attempts}
    highest = max((at for at, rung in enumerate(host.ladder) if rung in tried), default=-1)
    return host.ladder[highest + 1 :]


def summary(attempts: Sequence[Attempt]) -> str:
    """What was tried and what came of it, in one line."""
    if not attempts:
        return "nothing could be tried"
    return "; ".join(_told(attempt) for attempt in attempts)


def is_told(attempts: Sequence[Attempt]) -> bool:
    """Whether people were told of it."""
    return any(each.method == Rung.TICKET and each.result == "ok" for each in attempts)


def _told(attempt: Attempt) -> str:
    words = f"{attempt.method}: {attempt.result or 'not ended'}"
    return f"{words} ({attempt.message})" if attempt.message else words
