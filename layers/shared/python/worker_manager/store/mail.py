"""What owners of pools are still to be told by e-mail, and what they were told.

An error that is recorded puts an item of its own into ``#mail-due``, in the same transaction and
contended by nobody.  Whoever sends mail moves those items into their pool's digest: each is
deleted in the transaction that counts it, so that none is lost or counted twice.

Where to read next: ``core.digests`` (what a digest is), ``reconcile.mailing`` (who sends).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from pynamodb.exceptions import DeleteError, UpdateError

from worker_manager.core.digests import EXCERPT, Digest, Topic
from worker_manager.core.error_groups import Likeness, likeness_of
from worker_manager.core.errors import ConflictError
from worker_manager.core.model import PoolError
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.transactions import LARGEST, commit, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action
    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json
    from worker_manager.store.tables import ProviderItem, Tables

DUE = "#mail-due"
DIGESTS = "#mail"
KEPT = timedelta(days=7)
"""How long anything stays here that nobody works off, as where a stage stopped sending mail."""

AT_ONCE = LARGEST - 1
"""Errors that one transaction moves; its last item is the digest's."""

_TOPIC_MOMENTS = ("first", "last", "told")
_MOMENTS = ("failing_since", "not_before", "leased_until")


@dataclass(frozen=True, slots=True)
class Due:
    """An error that no mail told of yet.  Of the error there is only what a mail needs."""

    key: str
    error: PoolError


class MailStore:
    """Partitions ``#mail-due`` and ``#mail`` of table ``providers``."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._tables = tables
        self._model = tables.providers

    def due(self, *, limit: int) -> list[Due]:
        """Errors that no mail told of yet, oldest first, at most ``limit``."""
        found = self._model.query(DUE, limit=limit, consistent_read=True)
        return [_to_due(item) for item in found]

    def digests(self) -> dict[str, Digest]:
        """Every pool's digest, by pool."""
        found = self._model.query(DIGESTS, consistent_read=True)
        return {item.worker_pool_id: _to_digest(item) for item in found}

    def collect(self, before: Digest, after: Digest, due: Sequence[Due]) -> Digest:
        """Replace a digest by one that counts ``due``, at most ``AT_ONCE`` of them.

        Raises ``ConflictError``, and changes nothing, if somebody else changed the digest or
        counted one of them.
        """
        after = replace(after, version=before.version + 1)
        model = self._model

        def fill(transaction: TransactWrite) -> None:
            actions, condition = self._change(before, after)
            transaction.update(
                model(DIGESTS, before.pool_id),
                actions,
                condition=condition,
                add_version_condition=False,
            )
            for one in due:
                transaction.delete(
                    model(DUE, one.key),
                    condition=model.worker_pool_id.exists(),
                    add_version_condition=False,
                )

        commit(self._tables.connection, fill)
        return after

    def change(self, before: Digest, after: Digest) -> Digest:
        """Replace a digest; raises ``ConflictError`` if somebody else changed it meanwhile."""
        after = replace(after, version=before.version + 1)
        actions, condition = self._change(before, after)
        try:
            self._model(DIGESTS, before.pool_id).update(
                actions, condition=condition, add_version_condition=False
            )
        except UpdateError as error:
            if not is_condition_failure(error):
                raise
            raise ConflictError(f"the digest of {before.pool_id} was changed") from error
        return after

    def remove(self, digest: Digest) -> None:
        """Forget a digest, unless somebody changed it meanwhile."""
        if digest.version == 0:
            return
        try:
            self._model(DIGESTS, digest.pool_id).delete(
                condition=self._unchanged(digest), add_version_condition=False
            )
        except DeleteError as error:
            if not is_condition_failure(error):
                raise

    def drop(self, due: Iterable[Due]) -> None:
        """Take out errors that nobody is to be mailed of."""
        due = list(due)
        if not due:
            return
        with self._model.batch_write() as batch:
            for one in due:
                batch.delete(self._model(DUE, one.key))

    def _change(self, before: Digest, after: Digest) -> tuple[list[Action], Condition]:
        model = self._model
        newest = max([topic.last for topic in after.topics] + list(after.mailed), default=None)
        actions: list[Action] = [
            model.version.set(after.version),
            model.mail.set(_from_digest(after)),
        ]
        if newest is not None:
            actions.append(model.ttl.set(int((newest + KEPT).timestamp())))
        return actions, self._unchanged(before)

    def _unchanged(self, digest: Digest) -> Condition:
        if digest.version == 0:
            return self._model.worker_pool_id.does_not_exist()
        return self._model.version == digest.version


def due_item(model: type[ProviderItem], error: PoolError) -> ProviderItem:
    """What makes an error one that its pool's owner may have to be mailed of."""
    told = {
        "pool": error.pool_id,
        "id": error.error_id,
        "alike": likeness_of(error),
        "description": error.description[:EXCERPT],
    }
    return model(
        DUE,
        f"{error.reported.timestamp():.3f}#{error.error_id}",
        created=error.reported,
        ttl=int((error.reported + KEPT).timestamp()),
        mail=told,
    )


def in_parts(due: Iterable[Due]) -> Iterator[list[Due]]:
    """So many at once as one transaction can move."""
    rest = iter(due)
    while part := list(islice(rest, AT_ONCE)):
        yield part


def _to_due(item: ProviderItem) -> Due:
    mail: Json = item.mail or {}
    assert item.created is not None
    alike = Likeness(*mail["alike"])
    error = PoolError(
        error_id=mail["id"],
        pool_id=mail["pool"],
        reported=item.created,
        kind=alike.kind,
        title=alike.title,
        description=mail["description"],
        extra={"code": alike.code},
        launch_config_id=alike.launch_config_id,
    )
    return Due(item.worker_pool_id, error)


def _from_digest(digest: Digest) -> dict[str, Any]:
    return {
        "topics": [_from_topic(topic) for topic in digest.topics],
        "mailed": [to_wire(moment) for moment in digest.mailed],
        "failures": digest.failures,
        **_from_moments(digest, _MOMENTS),
    }


def _to_digest(item: ProviderItem) -> Digest:
    mail: Json = item.mail or {}
    return Digest(
        pool_id=item.worker_pool_id,
        topics=tuple(_to_topic(topic) for topic in mail["topics"]),
        mailed=tuple(from_wire(text) for text in mail["mailed"]),
        failures=mail["failures"],
        version=int(item.version or 0),
        **_to_moments(mail, _MOMENTS),
    )


def _from_topic(topic: Topic) -> dict[str, Any]:
    return {
        "alike": topic.alike,
        "waiting": topic.waiting,
        "mails": topic.mails,
        "description": topic.description,
        "error_id": topic.error_id,
        **_from_moments(topic, _TOPIC_MOMENTS),
    }


def _to_topic(stored: Json) -> Topic:
    alike = Likeness(*stored["alike"])
    return Topic(**{**stored, "alike": alike, **_to_moments(stored, _TOPIC_MOMENTS)})


def _from_moments(value: object, names: Iterable[str]) -> dict[str, str | None]:
    moments: dict[str, datetime | None] = {name: getattr(value, name) for name in names}
    return {name: to_wire(moment) if moment else None for name, moment in moments.items()}


def _to_moments(stored: Json, names: Iterable[str]) -> dict[str, Any]:
    return {name: from_wire(stored[name]) if stored[name] else None for name in names}
