"""What is to be mailed: noted with its error, counted once, taken by one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID
from worker_manager.core.digests import (
    EMAIL_FAILED,
    EXCERPT,
    MOST_TOPICS,
    Digest,
    claimed,
    collected,
    refused,
    told,
)
from worker_manager.core.errors import ConflictError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import PoolError
from worker_manager.store.mail import AT_ONCE, DIGESTS, DUE, KEPT, Due, MailStore, in_parts
from worker_manager.store.pool_errors import PoolErrorStore

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
EMPTY = Digest(POOL_ID)


@pytest.fixture
def errors(tables: Tables) -> PoolErrorStore:
    return PoolErrorStore(tables, kept=7 * DAY, mails=True)


@pytest.fixture
def store(tables: Tables) -> MailStore:
    return MailStore(tables)


def an_error(name: object = "e", **overrides: Any) -> PoolError:
    values: dict[str, Any] = {
        "error_id": derived_slugid(name),
        "pool_id": POOL_ID,
        "reported": NOW,
        "kind": "no-capacity",
        "title": "Instance Creation Error",
        "description": "none left",
        "extra": {"code": "X"},
        "launch_config_id": "lc-a",
    }
    return PoolError(**(values | overrides))


def record(errors: PoolErrorStore, error: PoolError) -> None:
    errors.record(error, [{"id": error.error_id, "name": "worker-pool-error", "detail": {}}])


def noted(errors: PoolErrorStore, store: MailStore, count: int = 1) -> list[Due]:
    for number in range(count):
        record(errors, an_error(number, reported=NOW + number * SECOND))
    return store.due(limit=1000)


def test_an_error_is_noted_with_what_a_mail_needs_of_it(
    errors: PoolErrorStore, store: MailStore
) -> None:
    long = an_error(description="x" * 20_000)
    record(errors, long)

    (due,) = store.due(limit=10)

    assert due.error == replace(long, extra={"code": "X"}, description="x" * EXCERPT)


def test_a_repeat_of_an_error_is_not_noted_again(errors: PoolErrorStore, store: MailStore) -> None:
    record(errors, an_error())
    store.drop(store.due(limit=10))
    record(errors, an_error())

    assert store.due(limit=10) == []


def test_an_error_that_tells_of_mail_is_not_mailed(
    errors: PoolErrorStore, store: MailStore
) -> None:
    record(errors, an_error(kind=EMAIL_FAILED))

    assert store.due(limit=10) == []


def test_a_stage_without_mail_notes_nothing(tables: Tables, store: MailStore) -> None:
    record(PoolErrorStore(tables, kept=DAY), an_error())

    assert store.due(limit=10) == []


def test_an_error_of_a_pool_that_is_known_to_want_no_mail_is_not_noted(
    errors: PoolErrorStore, store: MailStore
) -> None:
    errors.record(an_error(), [{"id": "e-1"}], mails=False)

    assert store.due(limit=10) == []


def test_the_oldest_are_read_first_and_no_more_than_asked_for(
    errors: PoolErrorStore, store: MailStore
) -> None:
    everything = noted(errors, store, 5)

    assert [due.error.reported for due in everything] == [NOW + n * SECOND for n in range(5)]
    assert store.due(limit=2) == everything[:2]


def test_what_is_counted_is_due_no_more(errors: PoolErrorStore, store: MailStore) -> None:
    due = noted(errors, store, 3)
    after = collected(EMPTY, [one.error for one in due[:2]], NOW)

    written = store.collect(EMPTY, after, due[:2])

    assert store.due(limit=10) == due[2:]
    assert store.digests() == {POOL_ID: written}
    assert written == replace(after, version=1)


def test_one_transaction_moves_a_hundred_less_one(errors: PoolErrorStore, store: MailStore) -> None:
    due = noted(errors, store, AT_ONCE + 3)
    parts = list(in_parts(due))
    assert [len(part) for part in parts] == [AT_ONCE, 3]

    digest = EMPTY
    for part in parts:
        digest = store.collect(digest, collected(digest, [o.error for o in part], NOW), part)

    assert digest.topics[0].waiting == AT_ONCE + 3
    assert store.due(limit=10) == []


def test_of_two_who_count_the_same_one_does(errors: PoolErrorStore, store: MailStore) -> None:
    due = noted(errors, store)
    after = collected(EMPTY, [due[0].error], NOW)
    digest = store.collect(EMPTY, after, due)

    with pytest.raises(ConflictError):
        store.collect(EMPTY, after, due)
    with pytest.raises(ConflictError):
        store.collect(digest, collected(digest, [due[0].error], NOW), due)

    assert store.digests() == {POOL_ID: digest}


def test_of_two_who_take_a_digest_one_has_it(errors: PoolErrorStore, store: MailStore) -> None:
    due = noted(errors, store)
    digest = store.collect(EMPTY, collected(EMPTY, [due[0].error], NOW), due)

    mine = store.change(digest, claimed(digest, NOW))
    with pytest.raises(ConflictError):
        store.change(digest, claimed(digest, NOW))

    assert store.digests() == {POOL_ID: mine}


def test_a_digest_comes_back_as_it_was(errors: PoolErrorStore, store: MailStore) -> None:
    due = noted(errors, store)
    first = store.collect(EMPTY, collected(EMPTY, [due[0].error], NOW), due)
    after_mail = store.change(first, told(first, first.topics, NOW + SECOND))
    again = collected(after_mail, [an_error(launch_config_id=None)], NOW)
    last = store.change(after_mail, claimed(refused(again, NOW), NOW))

    assert store.digests() == {POOL_ID: last}
    assert last.mailed == (NOW + SECOND,)
    assert last.leased_until is not None


def test_a_digest_that_changed_is_not_thrown_away(errors: PoolErrorStore, store: MailStore) -> None:
    due = noted(errors, store)
    digest = store.collect(EMPTY, collected(EMPTY, [due[0].error], NOW), due)
    changed = store.change(digest, claimed(digest, NOW))

    store.remove(EMPTY)
    store.remove(digest)
    assert store.digests() == {POOL_ID: changed}
    store.remove(changed)
    assert store.digests() == {}


def test_what_nobody_works_off_is_forgotten_after_a_week(
    errors: PoolErrorStore, store: MailStore, tables: Tables
) -> None:
    due = noted(errors, store, 2)
    store.collect(EMPTY, collected(EMPTY, [due[0].error], NOW), due[:1])

    ends = [item.ttl for name in (DUE, DIGESTS) for item in tables.providers.query(name)]

    assert ends == [
        int((NOW + SECOND + KEPT).timestamp()),
        int((NOW + KEPT).timestamp()),
    ]


def test_the_largest_digest_fits_an_item(errors: PoolErrorStore, store: MailStore) -> None:
    wide = "\U0001f4a5"
    many = [
        an_error(
            n, title=f"{n:04}" + wide * 124, description=wide * 10_000, launch_config_id="l" * 38
        )
        for n in range(MOST_TOPICS + 5)
    ]
    digest = store.change(EMPTY, collected(EMPTY, many, NOW))

    assert store.digests() == {POOL_ID: digest}
