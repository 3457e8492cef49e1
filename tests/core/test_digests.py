"""Who is told what, and when: few mails, nothing lost, and news is news again after a day."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, POOL_ID
from worker_manager.core.digests import (
    AT_ONCE,
    DAY,
    EXCERPT,
    FURTHER,
    LEASE,
    LONGEST_PAUSE,
    LONGEST_QUIET,
    MOST_TOPICS,
    SPACING,
    Digest,
    Topic,
    claimed,
    collected,
    refused,
    to_tell,
    told,
)
from worker_manager.core.error_groups import OTHER, Likeness
from worker_manager.core.model import PoolError

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def an_error(number: int = 1, *, at: datetime = NOW, **overrides: Any) -> PoolError:
    values: dict[str, Any] = {
        "error_id": f"e-{number}",
        "pool_id": POOL_ID,
        "reported": at,
        "kind": "no-capacity",
        "title": "Instance Creation Error",
        "description": f"none left, says {number}",
        "launch_config_id": "lc-a",
    }
    return PoolError(**(values | overrides))


class Owner:
    """A pool's owner and whoever mails them, minute by minute."""

    def __init__(self) -> None:
        self.now = NOW
        self.digest = Digest(POOL_ID)
        self.mails: list[tuple[datetime, tuple[Topic, ...]]] = []
        self._recorded: list[PoolError] = []

    def meets(self, *errors: PoolError) -> None:
        self._recorded += errors

    def waits(self, duration: timedelta, *, step: timedelta = MINUTE) -> None:
        end = self.now + duration
        while self.now < end:
            self.minute()
            self.now += step

    def minute(self) -> None:
        self.digest = collected(self.digest, self._recorded, self.now)
        self._recorded = []
        topics = to_tell(self.digest, self.now)
        if topics:
            self.mails.append((self.now, topics))
            self.digest = told(claimed(self.digest, self.now), topics, self.now)

    @property
    def times(self) -> list[timedelta]:
        return [moment - NOW for moment, _ in self.mails]

    @property
    def counts(self) -> list[int]:
        return [sum(topic.waiting for topic in topics) for _, topics in self.mails]


@pytest.fixture
def owner() -> Owner:
    return Owner()


def test_a_first_error_is_told_at_once(owner: Owner) -> None:
    owner.meets(an_error())
    owner.waits(DAY)

    assert (owner.times, owner.counts) == ([timedelta(0)], [1])


def test_five_hundred_equal_errors_are_two_mails(owner: Owner) -> None:
    for number in range(500):
        owner.meets(an_error(number, at=owner.now))
        owner.waits(timedelta(seconds=2), step=timedelta(seconds=2))
    owner.waits(DAY)

    assert owner.times[0] == timedelta(0)
    assert HOUR <= owner.times[1] < HOUR + MINUTE
    assert owner.counts == [1, 499]
    (topic,) = owner.mails[1][1]
    assert (topic.first, topic.last) == (
        NOW + timedelta(seconds=2),
        NOW + timedelta(seconds=998),
    )
    assert (topic.error_id, topic.told) == ("e-499", NOW)


def test_an_equal_error_after_a_day_without_any_is_told_at_once(owner: Owner) -> None:
    for number in range(500):
        owner.meets(an_error(number))
    owner.waits(DAY + MINUTE)
    assert owner.counts == [500]

    owner.meets(an_error(501, at=owner.now))
    owner.waits(DAY)

    assert owner.times == [timedelta(0), DAY + MINUTE]
    assert owner.counts == [500, 1]
    (topic,) = owner.mails[1][1]
    assert (topic.mails, topic.told) == (0, None)


def test_what_goes_on_for_days_is_told_ever_more_rarely_and_then_daily(owner: Owner) -> None:
    for _ in range(5 * 24 * 12):
        owner.meets(an_error(at=owner.now))
        owner.waits(timedelta(minutes=5))

    hours = [0, 1, 3, 7, 15, 31, 55, 79, 103]
    assert [round(time / HOUR, 2) for time in owner.times] == hours


def test_another_kind_title_code_or_launch_config_is_another_topic(owner: Owner) -> None:
    owner.meets(an_error())
    owner.minute()
    owner.now += MINUTE
    owner.meets(
        an_error(),
        an_error(kind="quota-exceeded"),
        an_error(title="Other"),
        an_error(launch_config_id="lc-b"),
        an_error(launch_config_id=None),
        an_error(extra={"code": "InsufficientInstanceCapacity"}),
    )
    owner.minute()

    assert owner.counts == [1, 5]
    assert len(owner.mails[1][1]) == 5


def test_many_new_topics_at_once_are_one_mail(owner: Owner) -> None:
    owner.meets(*(an_error(number, title=f"title {number}") for number in range(30)))
    owner.waits(DAY)

    assert owner.counts == [30]


def test_a_pool_whose_errors_are_all_different_has_few_mails_and_is_never_silent_for_long(
    owner: Owner,
) -> None:
    total = 2 * 24 * 60
    for number in range(total):
        owner.meets(an_error(number, title=f"title {number}", at=owner.now))
        owner.waits(MINUTE)
    owner.waits(LONGEST_QUIET)

    for start in owner.times:
        assert sum(start <= time < start + DAY for time in owner.times) <= 2 * AT_ONCE
    gaps = [after - before for before, after in zip(owner.times, owner.times[1:], strict=False)]
    assert max(gaps) <= SPACING
    assert sum(owner.counts) == total


def test_topics_beyond_those_told_apart_are_one(owner: Owner) -> None:
    owner.meets(*(an_error(number, title=f"title {number}") for number in range(MOST_TOPICS + 7)))
    owner.minute()

    (mail,) = owner.mails
    further = mail[1][-1]
    assert len(mail[1]) == MOST_TOPICS + 1
    assert (further.alike, further.waiting) == (FURTHER, 7)


def test_errors_that_come_out_of_order_are_told_by_the_newest(owner: Owner) -> None:
    late, early = an_error(2, at=NOW), an_error(1, at=NOW - HOUR)
    owner.meets(late, early)
    owner.minute()

    ((_, (topic,)),) = owner.mails
    assert (topic.first, topic.last) == (NOW - HOUR, NOW)
    assert (topic.error_id, topic.description) == ("e-2", "none left, says 2")


def test_of_a_description_an_excerpt_is_kept_until_it_is_told(owner: Owner) -> None:
    owner.meets(an_error(description="x" * 10_000))
    owner.minute()

    ((_, (topic,)),) = owner.mails
    assert len(topic.description) == EXCERPT
    assert owner.digest.topics[0].description == ""


def test_nothing_is_told_while_somebody_is_telling_it() -> None:
    digest = collected(Digest(POOL_ID), [an_error()], NOW)
    taken = claimed(digest, NOW)

    assert to_tell(taken, NOW + LEASE - MINUTE) == ()
    assert to_tell(taken, NOW + LEASE) == digest.topics


def test_refused_mail_is_tried_again_after_growing_pauses_and_loses_nothing() -> None:
    digest = collected(Digest(POOL_ID), [an_error()], NOW)
    now, pauses = NOW, []
    for _ in range(12):
        digest = refused(claimed(digest, now), now)
        assert digest.not_before is not None
        assert to_tell(digest, digest.not_before - timedelta(seconds=1)) == ()
        pauses.append((digest.not_before - now) / MINUTE)
        now = digest.not_before
        digest = collected(digest, [an_error(at=now)], now)
        assert to_tell(digest, now) == digest.topics

    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, *[LONGEST_PAUSE / MINUTE] * 4]
    assert digest.topics[0].waiting == 13
    assert digest.failing_since == NOW
    after = told(claimed(digest, now), digest.topics, now)
    assert (after.failures, after.failing_since, after.not_before) == (0, None, None)
    assert (after.leased_until, after.topics[0].waiting) == (None, 0)


def test_what_came_while_a_mail_was_sent_is_not_told_as_sent() -> None:
    """A topic that was in no mail keeps what it has to tell."""
    digest = collected(Digest(POOL_ID), [an_error(), an_error(title="Other")], NOW)

    after = told(digest, digest.topics[:1], NOW)

    assert [topic.waiting for topic in after.topics] == [0, 1]


def test_a_digest_is_over_a_day_after_its_last_error_and_mail(owner: Owner) -> None:
    owner.meets(an_error())
    owner.minute()

    for after, over in ((DAY - MINUTE, False), (DAY, True)):
        assert collected(owner.digest, (), NOW + after).is_over(NOW + after) is over


def test_a_refused_digest_is_not_over_however_long_it_takes() -> None:
    digest = refused(collected(Digest(POOL_ID), [an_error()], NOW), NOW)
    late = NOW + 30 * DAY

    assert not collected(digest, (), late).is_over(late)
    assert to_tell(digest, late) == digest.topics


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=60
    )
)
def test_every_error_is_told_in_exactly_one_mail(steps: list[tuple[int, str]]) -> None:
    owner = Owner()
    for minutes, title in steps:
        owner.waits(minutes * MINUTE, step=10 * MINUTE)
        owner.meets(an_error(title=title, at=owner.now))
    owner.waits(2 * LONGEST_QUIET, step=10 * MINUTE)

    assert sum(owner.counts) == len(steps)
    assert all(
        sum(start <= time < start + DAY for time in owner.times) <= 2 * AT_ONCE
        for start in owner.times
    )


def test_the_quiet_period_never_grows_beyond_its_end() -> None:
    topic = Topic(Likeness("k", "t", OTHER, None), NOW, NOW, mails=1)

    assert [replace(topic, mails=n).quiet / HOUR for n in (0, 1, 2, 6, 99)] == [1, 1, 2, 24, 24]
