"""What the embedded queue's table holds, as values: tasks, and lines in lists.

Read next: ``queue_table``, which keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class Listed(StrEnum):
    """The two lists of a queue."""

    PENDING = "pending"
    CLAIMED = "claimed"


@dataclass(frozen=True, slots=True)
class Line:
    """One run in one of its queue's lists.

    ``order`` sorts the list.  At ``until`` the line stops counting: a claim is over, a waiting
    task is past its deadline.  ``holder`` is who works on it, empty for a task that waits.
    """

    queue_id: str
    listed: Listed
    order: str
    task_id: str
    until: datetime
    deadline: datetime
    holder: str = ""


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task as two texts; ``version`` is the one to be replaced."""

    task_id: str
    definition: str
    status: str
    expires: datetime
    version: int = 0
