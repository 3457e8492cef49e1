"""What the owner of a pool is told of its errors by e-mail, and when.

Errors that are alike (``error_groups``) are one topic.  The first of a topic is told at once;
those that follow are only counted, and told in one mail when a quiet period is over, which grows
while they keep coming.  A topic of which nothing came for a day is forgotten: its next error is
news again.  Many topics that are due together are one mail, and a pool has few mails a day.

Where to read next: ``letters`` (what such a mail says), ``reconcile.mailing`` (who sends it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.core.error_groups import OTHER, Likeness, likeness_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from worker_manager.core.model import PoolError

EMAIL_FAILED = "email-failed"
"""Kind of the error that tells of mail which could not be sent; it is never mailed itself."""

QUIET = timedelta(hours=1)
"""How long equal errors are only counted after the first mail; doubled with each further one."""
LONGEST_QUIET = timedelta(hours=24)
FORGOTTEN = timedelta(hours=24)
"""An error of which no equal one came for so long is news again."""

DAY = timedelta(hours=24)
AT_ONCE = 6
"""So many mails a pool and day are sent as soon as they are due; more wait for ``SPACING``."""
SPACING = timedelta(hours=4)

LEASE = timedelta(minutes=2)
"""How long a sender has the digest for itself; longer than its function may run."""
FIRST_PAUSE = timedelta(minutes=1)
"""Before a refused mail is tried again; doubled with each further refusal."""
LONGEST_PAUSE = timedelta(hours=4)

MOST_TOPICS = 40
"""Topics of one pool that are told apart; errors beyond them are one topic."""
EXCERPT = 500
"""Characters of an error's description that go into a mail."""
FURTHER = Likeness("further-errors", "Further errors", OTHER, None)
"""What is said of errors in no topic of their own."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Errors of one pool that are alike.

    ``waiting`` of them are not yet told; ``first`` is the first of those, ``last`` the newest of
    all.  ``mails`` told of the topic so far, the last one at ``told``.  ``description`` and
    ``error_id`` are those of the newest error that is not yet told.
    """

    alike: Likeness
    first: datetime
    last: datetime
    waiting: int = 0
    mails: int = 0
    told: datetime | None = None
    description: str = ""
    error_id: str = ""

    @property
    def quiet(self) -> timedelta:
        """How long after the last mail the next one may tell of it.

        What is in no topic of its own may be news, and is not kept back for as long.
        """
        longest = SPACING if self.alike == FURTHER else LONGEST_QUIET
        return min(_doubled(QUIET, max(self.mails - 1, 0)), longest)

    def is_due(self, now: datetime) -> bool:
        """Whether there is something to tell, and its quiet period is over."""
        return self.waiting > 0 and (self.told is None or now >= self.told + self.quiet)

    def is_forgotten(self, now: datetime) -> bool:
        """Whether nothing is left to tell and nothing came for long."""
        return self.waiting == 0 and now - self.last >= FORGOTTEN


@dataclass(frozen=True, slots=True)
class Digest:
    """What the owner of one pool was told, and what is still to be told.

    ``mailed`` are the times of the last day's mails, oldest first.  Mail is refused since
    ``failing_since``, ``failures`` times in a row, and not tried again before ``not_before``.
    Whoever is sending has it until ``leased_until``.
    """

    pool_id: str
    topics: tuple[Topic, ...] = ()
    mailed: tuple[datetime, ...] = ()
    failures: int = 0
    failing_since: datetime | None = None
    not_before: datetime | None = None
    leased_until: datetime | None = None
    version: int = 0

    def is_leased(self, now: datetime) -> bool:
        """Whether somebody is sending it."""
        return self.leased_until is not None and now < self.leased_until

    def is_over(self, now: datetime) -> bool:
        """Whether it may be thrown away: nothing in it decides anything any more."""
        return not self.topics and not _of_last_day(self.mailed, now)


def collected(digest: Digest, errors: Iterable[PoolError], now: datetime) -> Digest:
    """The digest with these errors counted, each of them once, and old topics forgotten."""
    topics = {topic.alike: topic for topic in digest.topics if not topic.is_forgotten(now)}
    for error in errors:
        alike = likeness_of(error)
        if alike not in topics and len(topics) >= MOST_TOPICS:
            alike = FURTHER
        topics[alike] = _joined(topics.get(alike), alike, error)
    mailed = _of_last_day(digest.mailed, now)
    return replace(digest, topics=tuple(topics.values()), mailed=mailed)


def to_tell(digest: Digest, now: datetime) -> tuple[Topic, ...]:
    """The topics that the owner is to be told of now, in one mail; often none."""
    if digest.is_leased(now) or (digest.not_before is not None and now < digest.not_before):
        return ()
    recent = _of_last_day(digest.mailed, now)
    if len(recent) >= AT_ONCE and now - recent[-1] < SPACING:
        return ()
    return tuple(topic for topic in digest.topics if topic.is_due(now))


def claimed(digest: Digest, now: datetime) -> Digest:
    """The digest while its mail is being sent."""
    return replace(digest, leased_until=now + LEASE)


def told(digest: Digest, topics: Collection[Topic], now: datetime) -> Digest:
    """The digest after a mail told of these topics."""
    names = {topic.alike for topic in topics}
    return replace(
        digest,
        topics=tuple(_after_mail(t, now) if t.alike in names else t for t in digest.topics),
        mailed=(*_of_last_day(digest.mailed, now), now),
        failures=0,
        failing_since=None,
        not_before=None,
        leased_until=None,
    )


def refused(digest: Digest, now: datetime) -> Digest:
    """The digest after its mail was refused: nothing is told, and a growing pause begins."""
    pause = min(_doubled(FIRST_PAUSE, digest.failures), LONGEST_PAUSE)
    return replace(
        digest,
        failures=digest.failures + 1,
        failing_since=digest.failing_since or now,
        not_before=now + pause,
        leased_until=None,
    )


def _joined(topic: Topic | None, alike: Likeness, error: PoolError) -> Topic:
    """The topic with one more error; a new one if there was none, or it was long ago."""
    if topic is None or (topic.waiting == 0 and error.reported - topic.last >= FORGOTTEN):
        topic = Topic(alike, first=error.reported, last=error.reported)
    is_newest = topic.waiting == 0 or error.reported >= topic.last
    return replace(
        topic,
        first=min(topic.first, error.reported) if topic.waiting else error.reported,
        last=max(topic.last, error.reported),
        waiting=topic.waiting + 1,
        description=error.description[:EXCERPT] if is_newest else topic.description,
        error_id=error.error_id if is_newest else topic.error_id,
    )


def _after_mail(topic: Topic, now: datetime) -> Topic:
    return replace(topic, waiting=0, mails=topic.mails + 1, told=now, description="", error_id="")


def _of_last_day(moments: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    return tuple(moment for moment in moments if now - moment < DAY)


def _doubled(duration: timedelta, times: int) -> timedelta:
    """So many times the double, as far as anybody waits."""
    factor: int = 1 << min(times, 10)
    return duration * factor
