"""Telling owners of pools of errors by e-mail: errors that were recorded become digests and mail.

An error is never held up by its mail: recording leaves a note, and this works the notes off, pool
by pool.  Each sender takes a pool's digest for itself before it sends, so that of two only one
does; one that dies leaves the digest to the next after a while.  A mail is sent twice only if SES
took it and the answer, or what we wrote after it, was lost.

Where to read next: ``core.digests`` (who is told what, and when), ``store.mail``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from worker_manager.core.digests import (
    EMAIL_FAILED,
    Digest,
    claimed,
    collected,
    refused,
    to_tell,
    told,
)
from worker_manager.core.errors import ConflictError, MailRefusedError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.letters import letter
from worker_manager.core.model import NULL_PROVIDER, PoolError
from worker_manager.core.moments import to_wire
from worker_manager.metrics import meter
from worker_manager.store.mail import in_parts
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.digests import Topic
    from worker_manager.core.model import Pool
    from worker_manager.mail import Mailer
    from worker_manager.reconcile.expire import Keeper
    from worker_manager.store.mail import Due, MailStore

MOST_DUE = 2000
"""Notes read in one call; the next one reads on."""
TIME = timedelta(seconds=30)
"""Nothing is begun any more so long after the call began; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Post:
    """What mail is sent with; ``root_url`` is where its reader finds more."""

    mailer: Mailer
    store: MailStore
    root_url: str


class Delivery(StrEnum):
    """What became of one pool's mail."""

    NOTHING_DUE = "nothing-due"
    LEFT_TO_ANOTHER = "left-to-another"
    UNWANTED = "unwanted"
    SENT = "sent"
    REFUSED = "refused"
    THROTTLED = "throttled"
    CRASHED = "crashed"
    OUT_OF_TIME = "out-of-time"


def send_mail(keeper: Keeper) -> dict[str, int]:
    """Send the mail that is due; how often each outcome was, by its name.  A stage may send none.

    One pool's trouble never stops the others; SES's own, or the end of our time, ends the call.
    The pools with the fewest errors come first, so that one with very many takes only its own time.
    """
    post = keeper.post
    if post is None:
        return {}
    due: defaultdict[str, list[Due]] = defaultdict(list)
    for one in post.store.due(limit=MOST_DUE):
        due[one.error.pool_id].append(one)
    digests = post.store.digests()
    until = keeper.clock() + TIME
    counted: Counter[Delivery] = Counter()
    for pool_id in sorted(due.keys() | digests.keys(), key=lambda name: (len(due[name]), name)):
        digest = digests.get(pool_id) or Digest(pool_id)
        outcome = _serve(digest, due[pool_id], until, keeper, post)
        counted[outcome] += 1
        if outcome is Delivery.THROTTLED or keeper.clock() > until:
            break
    outcomes = {outcome.value: count for outcome, count in counted.items()}
    if counted.keys() - {Delivery.NOTHING_DUE}:
        logger.info("mail", outcomes=outcomes)
    return outcomes


def _serve(
    digest: Digest, due: Sequence[Due], until: datetime, keeper: Keeper, post: Post
) -> Delivery:
    try:
        return _send_digest(digest, due, until, keeper, post)
    except ConflictError:
        return Delivery.LEFT_TO_ANOTHER
    except Exception:
        logger.exception("a pool's mail could not be worked on", pool=digest.pool_id)
        return Delivery.CRASHED


def _send_digest(
    digest: Digest, due: Sequence[Due], until: datetime, keeper: Keeper, post: Post
) -> Delivery:
    """Count what is due, then tell what is to be told."""
    if digest.is_leased(keeper.clock()):
        return Delivery.LEFT_TO_ANOTHER
    if not due and not to_tell(digest, keeper.clock()):
        _tidy(digest, keeper, post)
        return Delivery.NOTHING_DUE
    pool = keeper.stores.pools.get(digest.pool_id)
    if pool is None or not pool.email_on_error or pool.provider_id == NULL_PROVIDER:
        post.store.drop(due)
        post.store.remove(digest)
        return Delivery.UNWANTED
    for part in in_parts(due):
        if keeper.clock() > until:
            return Delivery.OUT_OF_TIME
        after = collected(digest, [one.error for one in part], keeper.clock())
        digest = post.store.collect(digest, after, part)
    topics = to_tell(digest, keeper.clock())
    if not topics:
        return Delivery.NOTHING_DUE
    mine = post.store.change(digest, claimed(digest, keeper.clock()))
    return _send(mine, topics, pool, keeper, post)


def _send(
    digest: Digest, topics: Sequence[Topic], pool: Pool, keeper: Keeper, post: Post
) -> Delivery:
    """One mail of a digest that nobody else is sending, and what came of it."""
    try:
        post.mailer.send(letter(pool, topics, root_url=post.root_url))
    except MailRefusedError as error:
        after = refused(digest, keeper.clock())
        post.store.change(digest, after)
        logger.error(
            "a mail was refused",
            pool=pool.pool_id,
            code=error.code,
            error=str(error),
            failures=after.failures,
        )
        meter.mail_failed()
        _report(after, error, pool, keeper)
        return Delivery.THROTTLED if error.throttled else Delivery.REFUSED
    post.store.change(digest, told(digest, topics, keeper.clock()))
    errors = sum(topic.waiting for topic in topics)
    logger.info("a mail was sent", pool=pool.pool_id, topics=len(topics), errors=errors)
    return Delivery.SENT


def _tidy(digest: Digest, keeper: Keeper, post: Post) -> None:
    """Throw a digest away that no longer decides anything."""
    if collected(digest, (), keeper.clock()).is_over(keeper.clock()):
        post.store.remove(digest)


def _report(digest: Digest, error: MailRefusedError, pool: Pool, keeper: Keeper) -> None:
    """Show that mail fails where its reader would look: once, from its first refusal on.

    Only the code is shown: what a mail service says may name roles and accounts.
    """
    since: Any = digest.failing_since
    keeper.outbox.report(
        PoolError(
            error_id=derived_slugid("mail", pool.pool_id, to_wire(since)),
            pool_id=pool.pool_id,
            reported=since,
            kind=EMAIL_FAILED,
            title="E-mail could not be sent",
            description=(
                f"E-mail to the pool's owner is refused ({error.code}). It is tried again, with "
                "growing pauses, and will tell of all errors since; they are listed here meanwhile."
            ),
            extra={"code": error.code},
        ),
        pool.provider_id,
    )
