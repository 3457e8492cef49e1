"""Runs as they are kept: asked for, taken up, told of, ended, listed.

A run is read, settled, decided by ``course`` and written over the version that was read, and
decided anew when somebody else was faster.  Time does nothing by itself: whoever reads a run to
change it, and ``settle`` once a minute, writes down what it did.
Read next: ``store.action_table``, what is written in one.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from worker_manager.actions import course, records
from worker_manager.actions.course import Beginning
from worker_manager.actions.entities import Lease
from worker_manager.actions.known_runs import KnownRuns
from worker_manager.actions.telling import requested_event, resolved_event
from worker_manager.core.errors import ConflictError, DuplicateError, QueueUnavailableError
from worker_manager.store.action_rows import Cooled
from worker_manager.store.outbox_items import outbox_key
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from worker_manager.actions.course import Ending
    from worker_manager.actions.entities import Run, RunState
    from worker_manager.actions.known_runs import Sightings
    from worker_manager.core.model import Json
    from worker_manager.store.action_table import ActionTable

ATTEMPTS = 8
"""How often one change of a run is decided before giving up on lost races."""
LOOKED_AT = 5000
"""Open runs of an agent that one claim looks at, where those before must wait for a place."""


class NoPlaceError(ConflictError):
    """As many runs of the action are under way there as may be at once."""


class Runs(KnownRuns):
    """All runs of a deployment; safe to use from threads and functions at once."""

    def __init__(
        self,
        table: ActionTable,
        registry: Sightings,
        *,
        announce: Callable[[str, Sequence[Json]], object],
        comes_back: timedelta = course.COMES_BACK,
    ) -> None:
        """``announce`` publishes events that were written under that key of the outbox;
        ``comes_back`` is how long a worker may take from when its machine is up."""
        super().__init__(table, registry)
        self._announce = announce
        self._comes_back = comes_back

    # Asking for one

    def request(self, run: Run) -> Run:
        """The run, new or as it has become: asking twice is asking once.

        ``DuplicateError`` if there is another one by this id; ``ConflictError`` if the worker has
        an open run, the action has to cool down or the bulk was stopped.
        """
        now = run.requested
        wanted = course.said(run, _words_of(run), now=now) if not run.log else run
        events = [requested_event(wanted)]
        for _ in range(ATTEMPTS):
            known = self.find(run.run_id)
            if known is not None:
                return same(known, run)
            try:
                self.table.create(
                    records.to_stored(wanted), cools=run.action.name, now=now, events=events
                )
            except ConflictError:
                self._refuse(run, now)
                continue
            self._announce(outbox_key(events, now), events)
            self._watch(wanted)
            return replace(wanted, version=1)
        raise _too_often(run.run_id)

    def _refuse(self, run: Run, now: datetime) -> None:
        """Say why a run could not be made, if that has not changed meanwhile."""
        if self.table.read(run.run_id) is not None:
            return
        stored = records.to_stored(run)
        if (holder := self.table.holder(stored.target, stored.lock)) is not None:
            if self.settle(holder, now=now).state.is_final:
                return
            raise ConflictError(f"{run.target} has an open run: {holder}")
        until = self.table.cooled_until(stored.target, run.action.name)
        if until is not None and until > now:
            seconds = ceil((until - now).total_seconds())
            raise ConflictError(
                f"{run.action.name!r} was done to {run.target} lately; again in {seconds} s"
            )
        if run.bulk_id is not None and self.is_stopped(run.bulk_id):
            raise ConflictError(f"bulk {run.bulk_id} was stopped")

    def _watch(self, run: Run) -> None:
        """Let it be known soon when a worker is back that is waited for.

        Where that fails it is known later, which harms nothing.
        """
        key = run.target.key
        if key is None or not (run.is_reboot or run.was_silent):
            return
        longest = course.UNTAKEN + run.action.timeout + self._comes_back
        try:
            self._registry.watch(key, until=run.requested + longest)
        except QueueUnavailableError:
            logger.warning("a worker that is waited for is not watched", run=run.run_id)

    # Doing it

    def claim(
        self, agent_id: str, *, most: int, new_lease_id: Callable[[], str], now: datetime
    ) -> list[Run]:
        """Up to so many runs that an agent is to do now, the oldest first."""
        claimed: list[Run] = []
        full: set[str] = set()
        for line in self.table.todo(records.todo_of(agent_id), limit=LOOKED_AT):
            if len(claimed) >= most:
                break
            if line.place in full and not line.is_taken:
                continue
            lease = Lease(new_lease_id(), agent_id, now + course.LEASE)
            try:
                claimed.append(self.take(line.run_id, lease, now=now))
            except NoPlaceError:
                full.add(line.place)
            except ConflictError:
                continue
            except QueueUnavailableError:
                logger.warning("a run was not taken up", run=line.run_id)
        return claimed

    def take(self, run_id: str, lease: Lease, *, now: datetime) -> Run:
        """Have a run for oneself until the lease ends.

        ``ConflictError`` if somebody else has it, it is over or its bulk was stopped;
        ``NoPlaceError`` if it must wait.
        """

        def change(run: Run) -> Run:
            after = course.take(run, lease, now=now)
            if run.bulk_id is not None and self.is_stopped(run.bulk_id):
                raise ConflictError(f"bulk {run.bulk_id} was stopped")
            if not run.is_under_way:
                stored = records.to_stored(after)
                if len(self.table.under_way(stored.place) - {run_id}) >= stored.places:
                    raise NoPlaceError(f"as many {run.action.name!r} as may be are under way")
            return after

        return self._change(run_id, change, now=now)

    def beat(
        self,
        run_id: str,
        lease_id: str,
        *,
        end: Ending | None = None,
        log: str = "",
        begin: Beginning | None = None,
        now: datetime,
    ) -> Run:
        """Keep a run for another while, and tell of it: what ended, was said, is about to begin.

        An attempt that is to ``begin`` may be made only after this.  ``ConflictError`` if the run
        is over or somebody else's: then nothing more may be done.
        """

        def change(run: Run) -> Run:
            after = course.hold(run, lease_id, now=now)
            if end is not None:
                after = course.end(after, lease_id, end, now=now)
            if log:
                after = course.said(after, log, now=now)
            if begin is not None:
                after = course.begin(after, lease_id, begin, now=now)
            return after

        return self._change(run_id, change, now=now)

    def begin(self, run_id: str, lease_id: str, *, number: int, method: str, now: datetime) -> Run:
        """Write down that an attempt is about to be made.  Errors as of ``beat``."""
        return self.beat(run_id, lease_id, begin=Beginning(number, method), now=now)

    def end(self, run_id: str, lease_id: str, ending: Ending, *, now: datetime) -> Run:
        """Write down how an attempt ended.  Errors as of ``beat``."""
        return self.beat(run_id, lease_id, end=ending, now=now)

    def resolve(
        self, run_id: str, lease_id: str, *, state: RunState, message: str, now: datetime
    ) -> Run:
        """Be done with a run, as ``course.resolve``.  Errors as of ``beat``."""

        def change(run: Run) -> Run:
            return course.resolve(run, lease_id, state=state, message=message, now=now)

        return self._change(run_id, change, now=now)

    def cancel(self, run_id: str, *, by: str, reason: str = "", now: datetime) -> Run:
        """Let nobody go on with a run.  ``ConflictError`` if it ended otherwise."""
        return self._change(
            run_id, lambda run: course.cancel(run, by=by, reason=reason, now=now), now=now
        )

    def settle(self, run_id: str, *, now: datetime, known: Run | None = None) -> Run:
        """The run, after what time and sightings did to it is written down.

        Of one that is ``known`` by its row, and to which they did nothing, no row is read.
        """
        if known is not None and self._settled(known, now) == known:
            return known
        return self._change(run_id, lambda run: run, now=now)

    # Writing

    def _change(self, run_id: str, change: Callable[[Run], Run], *, now: datetime) -> Run:
        """Settle a run, then change it; what time did is written down also where that fails."""
        for _ in range(ATTEMPTS):
            before = self.get(run_id)
            after = self._settled(before, now)
            refusal: ConflictError | None = None
            try:
                after = change(after)
            except ConflictError as error:
                refusal = error
            try:
                written = self._write(before, after, now)
            except ConflictError:
                continue
            if refusal is not None:
                raise refusal
            return written
        raise _too_often(run_id)

    def _settled(self, run: Run, now: datetime) -> Run:
        is_awaited = not run.state.is_final and (run.was_silent or run.verified is not None)
        key = run.target.key if is_awaited else None
        seen = self.seen(key) if key is not None else None
        return course.settle(run, seen=seen, now=now, comes_back=self._comes_back)

    def _write(self, before: Run, after: Run, now: datetime) -> Run:
        if after == before:
            return before
        is_over = after.state.is_final and not before.state.is_final
        events = [resolved_event(after)] if is_over else []
        cooled = None
        if is_over and after.attempts and after.action.cooldown:
            cooled = Cooled(after.action.name, now + after.action.cooldown)
        self.table.replace(
            records.to_stored(before),
            records.to_stored(after),
            cooled=cooled,
            events=events,
            now=now,
        )
        if events:
            logger.info(
                "a run is over",
                run=after.run_id,
                action=after.action.name,
                target=str(after.target),
                state=after.state,
                how=after.message,
            )
            self._announce(outbox_key(events, now), events)
        return replace(after, version=after.version + 1)


def _words_of(run: Run) -> str:
    return f"requested by {run.requested_by}" + (f": {run.reason}" if run.reason else "")


def same(known: Run, wanted: Run) -> Run:
    """What is known by this id, if it is what is asked for; else ``DuplicateError``."""
    for one in ("target", "params", "requested_by", "level", "bulk_id"):
        if getattr(known, one) != getattr(wanted, one):
            raise DuplicateError(f"run {known.run_id} is another one: its {one} differs")
    if known.action.name != wanted.action.name:
        raise DuplicateError(f"run {known.run_id} is another one: its action differs")
    return known


def _too_often(run_id: str) -> QueueUnavailableError:
    return QueueUnavailableError(f"run {run_id} is changed too often at once")
