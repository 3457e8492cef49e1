"""Owners hear of errors by mail: each is counted once, mails are few, whatever crashes or fails."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID
from tests.reconcile.steps import CrashError
from worker_manager.core.digests import EMAIL_FAILED, LEASE
from worker_manager.core.errors import MailRefusedError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import NULL_PROVIDER, PoolError
from worker_manager.outbox import Outbox
from worker_manager.reconcile.mailing import MOST_DUE, TIME, Post, send_mail
from worker_manager.store.mail import MailStore, due_item
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.pools import PoolChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.steps import Fuse
    from tests.reconcile.world import World
    from worker_manager.core.letters import Letter
    from worker_manager.reconcile.expire import Keeper

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ROOT = "https://tc.example.com"
OTHER_ID = "proj-x/pool-2"


@dataclass
class MemoryMailer:
    """Takes every letter, unless an error is in its way; ``during`` happens while it is sent."""

    fuse: Fuse
    taken: list[Letter] = field(default_factory=list)
    refusing: MailRefusedError | None = None
    during: Callable[[], object] | None = None

    def send(self, letter: Letter) -> None:
        self.fuse.step("mail")
        if self.during is not None:
            self.during()
        if self.refusing is not None:
            raise self.refusing
        self.taken.append(letter)


class Mailed:
    """A world with a pool whose owner wants mail."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.mailer = MemoryMailer(world.fuse)
        self.store = MailStore(world.tables)
        self.errors = PoolErrorStore(world.tables, kept=7 * DAY, mails=True)
        self.outbox = Outbox(
            bus=world.bus,
            places=world.stores.places,
            workers=world.stores.workers,
            errors=self.errors,
        )
        post = Post(mailer=self.mailer, store=self.store, root_url=ROOT)
        self.keeper: Keeper = replace(world.keeper, outbox=self.outbox, post=post)
        self._serial = 0

    def pool(self, pool_id: str = POOL_ID, **changes: Any) -> None:
        with self.world.aside():
            pool = replace(self.world.save_pool(pool_id), email_on_error=True, **changes)
            before = self.world.stores.pools.get(pool_id)
            after = replace(pool, version=pool.version + 1)
            self.world.stores.pools.save(PoolChange(after, before, {}, events=()))

    def error(self, *, pool_id: str = POOL_ID, code: str = "") -> None:
        """One is recorded as every function does it."""
        with self.world.aside():
            self.outbox.report(replace(self._an_error(pool_id), extra={"code": code}), "aws")

    def errors_at_once(self, count: int) -> None:
        """As many are noted, without all that is beside the point here and takes long."""
        model = self.world.tables.providers
        with self.world.aside(), model.batch_write() as batch:
            for _ in range(count):
                batch.save(due_item(model, self._an_error(POOL_ID)))

    def _an_error(self, pool_id: str) -> PoolError:
        self._serial += 1
        return PoolError(
            error_id=derived_slugid("error", self._serial),
            pool_id=pool_id,
            reported=self.clock.now,
            kind="no-capacity",
            title="Instance Creation Error",
            description="none left",
        )

    def minute(self) -> dict[str, int]:
        """The schedule fires."""
        outcome = send_mail(self.keeper)
        self.clock.advance(minutes=1)
        return outcome

    def wait(self, duration: timedelta) -> None:
        for _ in range(duration // (15 * MINUTE)):
            send_mail(self.keeper)
            self.clock.advance(minutes=15)

    @property
    def subjects(self) -> list[str]:
        return [letter.subject for letter in self.mailer.taken]

    def left(self) -> int:
        """Errors that no mail told of."""
        with self.world.aside():
            waiting = [g.waiting for d in self.store.digests().values() for g in d.topics]
            return sum(waiting) + len(self.store.due(limit=10_000))

    def failures(self, pool_id: str = POOL_ID) -> list[PoolError]:
        found = self.world.pool_errors(pool_id)
        return [error for error in found if error.kind == EMAIL_FAILED]


@pytest.fixture
def mailed(world: World) -> Mailed:
    found = Mailed(world)
    found.pool()
    return found


SUBJECT = "Worker pool proj-x/pool-1: Instance Creation Error"


def test_a_first_error_is_mailed_within_the_minute(mailed: Mailed) -> None:
    mailed.error()

    assert mailed.minute() == {"sent": 1}

    (letter,) = mailed.mailer.taken
    assert (letter.to, letter.subject) == ("owner@example.com", SUBJECT)
    error_id = derived_slugid("error", 1)
    assert f"once, at 2026-01-02 03:04 UTC; error id {error_id}\n  none left" in letter.text


def test_errors_with_other_codes_are_other_news_as_they_are_in_statistics(mailed: Mailed) -> None:
    mailed.error(code="Throttled")
    mailed.error(code="Throttled")
    mailed.error(code="Broken")
    mailed.minute()

    (letter,) = mailed.mailer.taken
    assert letter.subject.endswith("(and 1 more)")
    assert letter.text.count("2 times") == letter.text.count("once, at") == 1


def test_five_hundred_equal_errors_are_two_mails_and_one_more_after_a_day(mailed: Mailed) -> None:
    """B19 (taskcluster#7129): 500 mails a day with the same text.

    S11: what was mailed was remembered in memory, so that a restart repeated it, and for ever, so
    that nothing that came back was news.  Here each minute knows only what the table says.
    """
    mailed.errors_at_once(100)
    mailed.minute()
    for _ in range(4):
        mailed.errors_at_once(100)
        mailed.minute()
    mailed.wait(2 * HOUR)
    assert [("400 times" in letter.text) for letter in mailed.mailer.taken] == [False, True]
    assert "100 times" in mailed.mailer.taken[0].text

    mailed.wait(DAY)
    assert len(mailed.mailer.taken) == 2
    mailed.error()
    mailed.wait(DAY)

    assert len(mailed.mailer.taken) == 3
    assert "once, at" in mailed.mailer.taken[2].text
    assert "since the last mail" not in mailed.mailer.taken[2].text


def test_nothing_stays_of_a_pool_that_has_had_no_errors_for_long(mailed: Mailed) -> None:
    mailed.error()
    mailed.wait(DAY + 2 * HOUR)

    assert mailed.store.digests() == {}
    assert mailed.store.due(limit=10) == []


def test_a_stage_without_mail_has_nothing_to_do(mailed: Mailed) -> None:
    mailed.error()

    assert send_mail(replace(mailed.keeper, post=None)) == {}


@pytest.mark.parametrize(
    "changes", [{"email_on_error": False}, {"provider_id": NULL_PROVIDER}], ids=str
)
def test_whoever_wants_no_mail_any_more_gets_none(mailed: Mailed, changes: Any) -> None:
    mailed.error()
    mailed.minute()
    mailed.error()
    mailed.minute()
    with mailed.world.aside():
        pool = mailed.world.stores.pools.get(POOL_ID)
        assert pool is not None
        after = replace(pool, version=pool.version + 1, **changes)
        mailed.world.stores.pools.save(PoolChange(after, pool, {}, events=()))
    mailed.error()

    assert mailed.minute() == {"unwanted": 1}
    mailed.wait(DAY)

    assert len(mailed.mailer.taken) == 1
    assert mailed.store.digests() == {}
    assert mailed.store.due(limit=10) == []


def test_errors_of_a_pool_that_is_gone_are_dropped(mailed: Mailed) -> None:
    mailed.error(pool_id="proj-x/gone")

    assert mailed.minute() == {"unwanted": 1}
    assert mailed.left() == 0


def test_the_owner_of_the_moment_is_told(mailed: Mailed) -> None:
    mailed.error()
    mailed.pool(owner="new@example.com")

    mailed.minute()

    assert [letter.to for letter in mailed.mailer.taken] == ["new@example.com"]


def test_more_errors_than_one_call_reads_are_read_by_the_next(
    mailed: Mailed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_DUE > 500
    monkeypatch.setattr("worker_manager.reconcile.mailing.MOST_DUE", 150)
    mailed.errors_at_once(200)

    mailed.minute()
    assert "150 times" in mailed.mailer.taken[0].text
    mailed.wait(2 * HOUR)

    assert "50 times" in mailed.mailer.taken[1].text


# Refused mail


def refusal(*, throttled: bool = False) -> MailRefusedError:
    return MailRefusedError("Role arn:aws:iam::1:role/x may not", code="Nope", throttled=throttled)


def test_refused_mail_is_seen_in_log_and_errors_and_is_sent_in_the_end(
    mailed: Mailed, caplog: pytest.LogCaptureFixture
) -> None:
    mailed.errors_at_once(3)
    mailed.mailer.refusing = refusal()
    with caplog.at_level(logging.ERROR):
        assert mailed.minute() == {"refused": 1}
    assert [record.getMessage() for record in caplog.records] == ["a mail was refused"]
    for _ in range(20):
        mailed.minute()

    (shown,) = mailed.failures()
    assert (shown.reported, shown.extra) == (NOW, {"code": "Nope"})
    assert "arn:" not in shown.description
    assert mailed.left() == 3

    mailed.mailer.refusing = None
    mailed.wait(HOUR)

    (letter,) = mailed.mailer.taken
    assert "3 times" in letter.text
    assert mailed.left() == 0


def test_the_next_time_that_mail_fails_is_shown_again(mailed: Mailed) -> None:
    for _ in range(2):
        mailed.mailer.refusing = refusal()
        mailed.error()
        mailed.wait(HOUR)
        mailed.mailer.refusing = None
        mailed.wait(2 * DAY)

    assert len(mailed.failures()) == 2
    assert len(mailed.mailer.taken) == 2


def test_refused_mail_is_tried_ever_more_rarely(mailed: Mailed) -> None:
    mailed.error()
    mailed.mailer.refusing = refusal()

    tried = []
    for _ in range(64):
        if mailed.minute() == {"refused": 1}:
            tried.append((mailed.clock.now - NOW) // MINUTE - 1)

    assert tried == [0, 1, 3, 7, 15, 31, 63]


def test_one_owner_whose_mail_is_refused_keeps_nobody_elses_back(mailed: Mailed) -> None:
    mailed.pool(OTHER_ID)
    mailed.error()
    mailed.error(pool_id=OTHER_ID)
    calls = iter([refusal(), None])
    mailed.mailer.during = lambda: setattr(mailed.mailer, "refusing", next(calls))

    assert mailed.minute() == {"refused": 1, "sent": 1}


def test_being_throttled_ends_the_call_for_everybody(mailed: Mailed) -> None:
    mailed.pool(OTHER_ID)
    mailed.error()
    mailed.error(pool_id=OTHER_ID)
    mailed.mailer.refusing = refusal(throttled=True)

    assert mailed.minute() == {"throttled": 1}
    mailed.mailer.refusing = None
    mailed.wait(HOUR)

    assert len(mailed.mailer.taken) == 2


def test_no_mail_is_begun_when_the_time_is_up(mailed: Mailed) -> None:
    mailed.pool(OTHER_ID)
    mailed.error()
    mailed.error(pool_id=OTHER_ID)
    mailed.mailer.during = lambda: mailed.clock.advance(seconds=TIME.total_seconds() + 1)

    assert mailed.minute() == {"sent": 1}
    assert len(mailed.mailer.taken) == 1
    mailed.minute()

    assert len(mailed.mailer.taken) == 2


def test_a_pool_with_very_many_errors_takes_no_others_time_and_is_worked_off_in_the_end(
    mailed: Mailed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker_manager.store.mail.AT_ONCE", 2)
    mailed.pool(OTHER_ID)
    mailed.errors_at_once(6)
    mailed.clock.advance(seconds=1)
    mailed.error(pool_id=OTHER_ID)
    collect = mailed.store.collect

    def slowly(*given: Any) -> Any:
        mailed.clock.advance(seconds=TIME.total_seconds() / 2)
        return collect(*given)

    monkeypatch.setattr(mailed.store, "collect", slowly)

    assert mailed.minute() == {"sent": 1, "out-of-time": 1}
    assert mailed.left() == 6
    assert mailed.minute() == {"nothing-due": 1, "sent": 1}
    assert mailed.left() == 0
    assert ["pool-2" in subject for subject in mailed.subjects] == [True, False]


def test_what_nobody_foresaw_stops_one_pool_only_and_is_tried_again(
    mailed: Mailed, caplog: pytest.LogCaptureFixture
) -> None:
    mailed.pool(OTHER_ID)
    mailed.error()
    mailed.error(pool_id=OTHER_ID)
    failures = iter([RuntimeError("what?"), None, None])

    def stumble() -> None:
        if (error := next(failures)) is not None:
            raise error

    mailed.mailer.during = stumble

    assert mailed.minute() == {"crashed": 1, "sent": 1}
    assert "a pool's mail could not be worked on" in caplog.messages
    mailed.clock.advance(seconds=LEASE.total_seconds())
    mailed.minute()

    assert len(mailed.mailer.taken) == 2


# Two at once, and crashes


def test_of_two_senders_at_once_one_sends(mailed: Mailed) -> None:
    mailed.errors_at_once(2)
    meanwhile: list[dict[str, int]] = []
    mailed.mailer.during = lambda: meanwhile.append(send_mail(mailed.keeper))

    assert mailed.minute() == {"sent": 1}

    assert meanwhile == [{"left-to-another": 1}]
    assert len(mailed.mailer.taken) == 1
    assert mailed.left() == 0


def test_of_two_who_count_the_same_errors_one_does(mailed: Mailed) -> None:
    mailed.errors_at_once(2)
    meanwhile: list[dict[str, int]] = []

    def just_before(request: str) -> None:
        if request == "TransactWriteItems" and not meanwhile:
            meanwhile.append({})
            with mailed.world.aside():
                meanwhile[0] = send_mail(mailed.keeper)

    mailed.world.fuse.on_request = just_before
    assert mailed.minute() == {"left-to-another": 1}
    mailed.world.fuse.on_request = None

    assert meanwhile == [{"sent": 1}]
    assert len(mailed.mailer.taken) == 1
    assert mailed.left() == 0


@pytest.mark.parametrize("refused", [False, True], ids=["taken", "refused"])
def test_a_crash_between_any_two_steps_loses_nothing_and_repeats_a_mail_only_right_after_it(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    monkeypatch.setattr("worker_manager.store.mail.AT_ONCE", 2)
    number, survived = 0, False
    repeated: list[str] = []
    while not survived:
        number += 1
        mailed = Mailed(new_world())
        mailed.pool()
        mailed.errors_at_once(5)
        mailed.mailer.refusing = refusal() if refused else None
        mailed.world.fuse.reset(crash_at=number)
        try:
            mailed.minute()
        except CrashError as crash:
            where = str(crash)
        survived = not mailed.world.fuse.blown
        mailed.world.fuse.reset()
        mailed.clock.now = NOW + MINUTE
        mailed.mailer.refusing = None
        mailed.wait(3 * HOUR)

        assert mailed.left() == 0
        told = [letter.text for letter in mailed.mailer.taken]
        assert all("5 times" in text for text in told)
        if len(told) > 1:
            repeated.append(where.partition(": ")[2])
        assert len(told) in (1, 2)

    # The step after the mail itself: SES had taken it, and we could not write so.
    assert repeated == ([] if refused else ["UpdateItem"])
    assert number > 5
