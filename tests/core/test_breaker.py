from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_head, a_worker
from worker_manager.core.breaker import (
    BACK_OFF,
    BOOT_PATIENCE,
    CALM,
    LONGEST_REASON,
    REFUSAL_PATIENCE,
    Breaker,
    BreakerState,
    judge,
    judge_all,
    probe,
    recover,
    trip,
)
from worker_manager.core.health import FAILURE_KINDS, REMEMBERED, Health
from worker_manager.core.model import State
from worker_manager.core.moments import whole_milliseconds

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
moments = st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(whole_milliseconds)
breakers = st.builds(
    Breaker,
    state=st.sampled_from(BreakerState),
    kind=st.sampled_from(FAILURE_KINDS),
    reason=st.text(),
    since=moments,
    next_try=st.none() | moments,
    step=st.integers(0, 20),
    machines=st.none() | st.integers(0, 10**6),
)


def an_open(kind: str = "invalid-launch-config", at: datetime = NOW) -> Breaker:
    return trip(None, kind, "why", at)


def failed(kind: str, at: datetime = NOW, count: int = 1, **outcomes: Any) -> Health:
    return Health(
        failed={kind: count}, failed_at=at, failed_kind=kind, failed_reason="why", **outcomes
    )


def judged(
    before: Breaker | None, health: Health, *, running: int = 0, now: datetime = NOW
) -> Breaker | None:
    return judge(before, health, running=running, now=now)


def minutes_between(breaker: Breaker) -> float:
    assert breaker.next_try is not None
    return (breaker.next_try - breaker.since) / MINUTE


@given(before=breakers)
def test_a_breaker_comes_back_as_it_was_stored(before: Breaker) -> None:
    assert Breaker.from_json(before.to_json()) == before


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        ("no-capacity", [2, 4, 8, 16, 30, 30]),
        ("quota-exceeded", [10, 20, 30, 30, 30]),
        ("invalid-launch-config", [30, 60, 120, 240, 240]),
        ("not-authorized", [2, 4, 8, 16, 30, 30]),
        ("never-registered", [10, 20, 40, 60, 60]),
        ("never-claimed", [10, 20, 40, 60, 60]),
        ("lost", [1, 2, 4, 8, 15, 15]),
        ("other", [1, 2, 4, 8, 15, 15]),
        ("surprise", [1, 2, 4, 8, 15, 15]),
    ],
)
def test_each_failed_probe_doubles_the_wait_up_to_the_limit_of_its_kind(
    kind: str, waits: list[int]
) -> None:
    """Report B50 (scylla-cluster-tests PR#14383): all errors were waited for alike."""
    breaker, now = an_open(kind), NOW
    found = [minutes_between(breaker)]
    for _ in waits[1:]:
        assert breaker.next_try is not None
        now = breaker.next_try
        assert breaker.is_due(now)
        assert not breaker.is_due(now - SECOND)
        breaker = trip(probe(breaker, now), kind, "why", now)
        found.append(minutes_between(breaker))

    assert found == waits


def test_every_kind_of_failure_has_its_back_off() -> None:
    assert BACK_OFF.keys() == set(FAILURE_KINDS)


def test_a_wait_stays_at_its_limit_however_often_it_fails() -> None:
    breaker = replace(an_open("lost"), state=BreakerState.HALF_OPEN, step=10**6)

    assert minutes_between(trip(breaker, "lost", "", NOW)) == 15


def test_an_open_breaker_learns_nothing_from_what_was_under_way_when_it_opened() -> None:
    breaker = an_open()

    assert trip(breaker, breaker.kind, "again", NOW + MINUTE) is breaker
    assert trip(breaker, "lost", "in another way", NOW + MINUTE) is breaker


@pytest.mark.parametrize(
    ("kind", "other", "step", "wait"),
    [
        ("lost", "invalid-launch-config", 0, 30),
        ("no-capacity", "lost", 0, 1),
        ("no-capacity", "quota-exceeded", 2, 30),
        ("quota-exceeded", "no-capacity", 2, 8),
    ],
)
def test_a_probe_that_fails_in_another_way_begins_anew_unless_the_place_has_nothing_still(
    kind: str, other: str, step: int, wait: int
) -> None:
    half_open = probe(replace(an_open(kind), step=1, next_try=NOW), NOW + MINUTE)

    after = trip(half_open, other, "x", NOW + 2 * MINUTE)

    assert (after.kind, after.step, minutes_between(after)) == (other, step, wait)


@pytest.mark.parametrize(("calm", "wait"), [(MINUTE, 8), (CALM, 8), (CALM + SECOND, 2)])
def test_one_that_opens_again_soon_waits_as_long_as_it_did(calm: timedelta, wait: int) -> None:
    closed = recover(replace(an_open("no-capacity"), step=2), NOW)

    assert minutes_between(trip(closed, "no-capacity", "", NOW + calm)) == wait


def test_reasons_are_cut() -> None:
    assert len(trip(None, "lost", "x" * 1000, NOW).reason) == LONGEST_REASON


def test_a_closed_breaker_is_in_nobodys_way_and_never_due() -> None:
    closed = recover(replace(an_open("quota-exceeded"), machines=4), NOW)

    assert closed.is_closed
    assert not closed.is_due(NOW + REMEMBERED)
    assert (closed.next_try, closed.machines) == (None, None)


@pytest.mark.parametrize(
    ("kind", "patience"),
    [
        ("no-capacity", REFUSAL_PATIENCE),
        ("lost", REFUSAL_PATIENCE),
        ("never-registered", BOOT_PATIENCE),
        ("never-claimed", BOOT_PATIENCE),
    ],
)
def test_a_probe_has_as_much_time_as_its_answer_takes(kind: str, patience: timedelta) -> None:
    half_open = probe(an_open(kind), NOW)

    assert half_open.state is BreakerState.HALF_OPEN
    assert not half_open.is_due(NOW + patience - SECOND)
    assert half_open.is_due(NOW + patience)


# A launch config's own breaker


def test_without_failures_there_is_no_breaker() -> None:
    assert judged(None, Health(launched=5, launched_at=NOW, registered=5)) is None


@pytest.mark.parametrize("kind", ["invalid-launch-config", "not-authorized", "lost", "other"])
def test_a_refusal_of_its_own_opens_it_at_once(kind: str) -> None:
    after = judged(None, failed(kind, NOW - MINUTE), running=50)

    wait = BACK_OFF[kind][0]
    assert after == Breaker(BreakerState.OPEN, kind, "why", NOW, NOW + wait, step=0, opened=NOW)


@pytest.mark.parametrize("kind", ["no-capacity", "quota-exceeded"])
def test_what_others_would_meet_too_is_not_its_own(kind: str) -> None:
    assert judged(None, failed(kind, count=500)) is None


def test_a_refusal_before_the_last_launch_is_over() -> None:
    health = failed("lost", NOW - MINUTE, launched_at=NOW - SECOND)

    assert judged(None, health) is None
    assert judged(None, replace(health, launched_at=NOW - 2 * MINUTE)) is not None


@pytest.mark.parametrize("kind", ["never-registered", "never-claimed"])
@pytest.mark.parametrize(
    ("bad", "good", "running", "opens"),
    [
        (1, 0, 0, True),
        (1, 1, 0, False),
        (2, 1, 0, True),
        (2, 0, 1, False),
        (3, 0, 1, True),
        (3, 2, 9, True),
        (3, 3, 9, False),
    ],
)
def test_machines_that_do_not_come_up_open_it_once_they_are_a_trend(
    kind: str, bad: int, good: int, running: int, *, opens: bool
) -> None:
    """Report B01 (#6332): machines that boot and never claim; one of them is bad luck."""
    registered = good + (bad if kind == "never-claimed" else 0)
    health = failed(kind, count=bad, registered=registered)

    assert (judged(None, health, running=running) is not None) == opens


def test_an_open_breaker_closes_by_the_contrary_of_what_opened_it() -> None:
    later = NOW + MINUTE
    proofs = {
        "never-registered": Health(registered_at=later),
        "never-claimed": Health(claimed_at=later),
        "invalid-launch-config": Health(launched_at=later),
        "lost": Health(launched_at=later),
    }
    for kind, health in proofs.items():
        for other, breaker in ((one, an_open(one)) for one in proofs):
            after = judged(breaker, health, now=later)
            closes = health == proofs[other]
            assert after == (recover(breaker, later) if closes else breaker), (kind, other)


def test_an_old_machine_that_registers_late_closes_it() -> None:
    """Report B24 (#6492): it was slow and not broken."""
    breaker = an_open("never-registered")
    late = failed("never-registered", NOW - SECOND, 3, registered_at=NOW + MINUTE)

    after = judged(breaker, late, now=NOW + 2 * MINUTE)

    assert after == recover(breaker, NOW + MINUTE)


@pytest.mark.parametrize("state", [BreakerState.OPEN, BreakerState.HALF_OPEN])
def test_what_came_before_it_opened_proves_nothing(state: BreakerState) -> None:
    breaker = replace(an_open(), state=state)

    assert judged(breaker, Health(launched_at=NOW - SECOND)) == breaker


def test_a_probe_that_succeeds_closes_it() -> None:
    half_open = probe(an_open(), NOW)
    for answered in (NOW, NOW + SECOND):
        after = judged(half_open, Health(launched_at=answered), now=NOW + MINUTE)
        assert after == recover(half_open, answered)


@pytest.mark.parametrize("answered", [NOW, NOW + SECOND])
def test_a_probe_that_fails_doubles_the_wait(answered: datetime) -> None:
    half_open = probe(replace(an_open(), next_try=NOW), NOW)

    after = judged(half_open, failed("invalid-launch-config", answered), now=NOW + MINUTE)

    assert after is not None
    assert (after.state, after.since, after.step) == (BreakerState.OPEN, NOW + MINUTE, 1)
    assert minutes_between(after) == 60


def test_a_probe_that_the_place_had_no_machine_for_is_made_again() -> None:
    half_open = probe(an_open("never-registered"), NOW)

    after = judged(half_open, failed("no-capacity"), now=NOW + MINUTE)

    assert after is not None
    assert (after.state, after.step) == (BreakerState.OPEN, half_open.step)
    assert after.is_due(NOW + MINUTE)


@pytest.mark.parametrize(
    ("launched", "after_minutes", "due"),
    [
        (None, 4, False),
        (None, 6, True),
        (NOW, 6, False),
        (NOW - SECOND, 6, True),
        (None, 62, False),
    ],
)
def test_a_probe_of_which_no_machine_came_is_not_waited_for(
    launched: datetime | None, after_minutes: int, *, due: bool
) -> None:
    half_open = probe(an_open("never-registered"), NOW)
    now = NOW + after_minutes * MINUTE

    after = judged(half_open, Health(launched_at=launched), now=now)

    assert after is not None
    assert after.is_due(now) == due
    assert judged(after, Health(launched_at=launched), now=now + SECOND) == after


def test_a_failure_before_it_closed_does_not_open_it_again() -> None:
    closed = recover(an_open("lost"), NOW)

    assert judged(closed, failed("lost", NOW), now=NOW + MINUTE) == closed
    again = judged(closed, failed("lost", NOW + SECOND), now=NOW + MINUTE)
    assert again is not None
    assert again.state is BreakerState.OPEN


def test_it_is_forgotten_once_no_window_shows_what_opened_it() -> None:
    closed = recover(an_open("lost"), NOW)

    assert judged(closed, Health(), now=NOW + REMEMBERED) == closed
    assert judged(closed, Health(), now=NOW + REMEMBERED + SECOND) is None


def test_only_launch_configs_of_the_pool_are_judged_each_by_its_own_outcomes() -> None:
    health = {
        "lc-a": failed("never-registered", count=2),
        "lc-b": failed("never-registered", count=2),
        "lc-gone": failed("lost"),
    }
    workers = [
        a_worker("i-1", launch_config_id="lc-a"),
        a_worker("i-2", launch_config_id="lc-b", state=State.REQUESTED),
    ]
    known = {"lc-gone": an_open(), "lc-c": an_open()}

    after = judge_all([a_head(f"lc-{n}") for n in "abc"], known, health, workers, NOW)

    assert after.keys() == {"lc-b", "lc-c"}


@given(
    before=st.none() | breakers,
    kind=st.sampled_from(FAILURE_KINDS),
    ago=st.integers(0, 3000),
    count=st.integers(1, 9),
    running=st.integers(0, 3),
)
def test_judging_again_changes_nothing_more(
    before: Breaker | None, kind: str, ago: int, count: int, running: int
) -> None:
    """A tick that finds the same writes nothing."""
    health = failed(kind, NOW - ago * SECOND, count)
    if before is not None:
        before = replace(before, since=min(before.since, NOW))

    once = judged(before, health, running=running)

    assert once is None or judged(once, health, running=running) in (once, None)


def test_a_machine_that_a_quota_has_room_for_closes_nothing() -> None:
    full = replace(trip(None, "quota-exceeded", "no more", NOW), machines=40)
    freed = replace(full, is_freed=True)

    taken = probe(freed, NOW + timedelta(minutes=1))

    assert freed.is_due(NOW)
    assert not full.is_due(NOW)
    assert taken == replace(full, since=NOW + timedelta(minutes=1))


def test_a_quota_that_is_hit_below_its_level_has_a_lower_one() -> None:
    full = replace(trip(None, "quota-exceeded", "no more", NOW), machines=40)

    lower = trip(full, "quota-exceeded", "no more", NOW + timedelta(minutes=1))

    assert lower == replace(full, machines=26, since=NOW + timedelta(minutes=1))


def test_reasons_are_cut_by_their_bytes_and_stay_text() -> None:
    opened = trip(None, "no-capacity", "é" * 500, NOW)

    assert opened.reason == "é" * 100


def test_a_probe_before_its_time_that_fails_leaves_the_wait_as_it_was() -> None:
    """A pool that is closed off as a whole probes every few minutes; that is no reason to wait."""
    opened = trip(None, "invalid-launch-config", "no image", NOW)
    breaker = opened
    for minute in (1, 3, 7):
        at = NOW + timedelta(minutes=minute)
        breaker = trip(probe(breaker, at), "invalid-launch-config", "no image", at)

    assert (breaker.next_try, breaker.step) == (opened.next_try, 0)
    assert breaker.failing_since == NOW

    due = opened.next_try
    assert due is not None
    breaker = trip(probe(breaker, due), "invalid-launch-config", "no image", due)
    assert breaker.step == 1
    assert breaker.failing_since == NOW


def test_one_that_closed_and_opens_again_fails_since_then() -> None:
    closed = recover(trip(None, "lost", "x", NOW), NOW + MINUTE)

    assert closed.failing_since == NOW + MINUTE
    assert trip(closed, "lost", "x", NOW + 5 * MINUTE).failing_since == NOW + 5 * MINUTE
