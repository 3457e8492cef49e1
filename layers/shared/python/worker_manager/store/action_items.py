"""Items of the table of actions, and which of them a run has.  Read next: ``action_table``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)
from pynamodb.models import Model

from worker_manager.core.moments import to_wire
from worker_manager.store.attributes import MomentAttribute

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from worker_manager.store.action_rows import Cooled, StoredRun

RUN = "run"
OPEN = "open"
COOLED_KEPT = timedelta(hours=1)
"""How much longer than it says the note stays that something is not done again."""


class ActionItem(Model):
    """Table ``actions``; keys and what is under them as in the docstring of ``action_table``."""

    class Meta:
        """Bound by ``ActionTable.bind``."""

        table_name = "actions"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute(null=True)
    # run, bulk
    body = UnicodeAttribute(null=True)
    version = NumberAttribute(null=True)
    stopped = BooleanAttribute(null=True)
    # lines and locks
    run_id = UnicodeAttribute(null=True)
    place = UnicodeAttribute(null=True)
    taken = BooleanAttribute(null=True)
    # cool
    until = MomentAttribute(null=True)
    # place
    runs = UnicodeSetAttribute(null=True)

    @classmethod
    def of_run(cls, run: StoredRun) -> Self:
        """A run as it is written, one version on."""
        return cls(
            f"run#{run.run_id}",
            RUN,
            body=run.body,
            ttl=epoch(run.kept),
            version=run.version + 1,
        )

    @classmethod
    def of_lock(cls, run: StoredRun) -> Self:
        """What keeps other runs from its target."""
        return cls(f"target#{run.target}", f"open#{run.lock}", run_id=run.run_id)

    @classmethod
    def of_cooled(cls, run: StoredRun, cooled: Cooled) -> Self:
        """That its action is not done to its target again for a while."""
        return cls(
            f"target#{run.target}",
            f"cool#{cooled.name}",
            until=cooled.until,
            ttl=epoch(cooled.until + COOLED_KEPT),
        )

    @classmethod
    def of_todo(cls, run: StoredRun) -> Self:
        """Its line in the list of those who may take it up."""
        return cls(
            f"todo#{run.todo}",
            _order(run),
            run_id=run.run_id,
            place=run.place,
            taken=run.is_taken,
        )

    @classmethod
    def of_open(cls, run: StoredRun) -> Self:
        """Its line among all that are not over."""
        return cls(OPEN, _order(run), run_id=run.run_id)

    @classmethod
    def of_kept_lines(cls, run: StoredRun) -> list[Self]:
        """Its lines that stay for as long as it is remembered."""
        keys = [(f"target#{run.target}", f"run#{_order(run)}")]
        if run.queue_id is not None:
            keys.append((f"queue#{run.queue_id}", _order(run)))
        if run.bulk_id is not None:
            keys.append((f"bulk#{run.bulk_id}", f"run#{run.run_id}"))
        return [cls(pk, sk, run_id=run.run_id, ttl=epoch(run.kept)) for pk, sk in keys]


def epoch(moment: datetime) -> int:
    """A moment as DynamoDB's time to live wants it."""
    return int(moment.timestamp())


def _order(run: StoredRun) -> str:
    return f"{to_wire(run.requested)}#{run.run_id}"
