"""What is done by itself, its limits, and the breaker of a pool, over any number of looks."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker_manager.core.ids import SLUGID, matches
from worker_manager.core.model import WorkerKey
from worker_manager.machines.facts import Machine
from worker_manager.machines.looks import Look, look, watched
from worker_manager.machines.memory import (
    Record,
    Watch,
    from_record,
    from_watch,
    to_record,
    to_watch,
)
from worker_manager.machines.policy import Policy, Thresholds, from_json, to_json
from worker_manager.machines.remedies import Cure, Done, most_at_once

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TICK = 5 * MINUTE
LAG = 30 * MINUTE
EVERYTHING = Policy(reboot=True, quarantine=True, replace=True)
FAILING = {"runs": 12, "bad_runs": 9, "bad_in_a_row": 9}


def a_key(number: int) -> WorkerKey:
    return WorkerKey("proj-x/racked", "rack-1", f"m-{number:03}")


Some = dict[str, dict[str, Any]]


def a_pool(size: int, now: datetime = NOON, /, **some: dict[str, Any]) -> list[Machine]:
    """Machines that are well, but for ``m0``, ``m1``, …, of which more is said."""
    return [
        Machine(
            **{
                "key": a_key(number),
                "is_fixed": True,
                "entered": now - 90 * DAY,
                "heard": now - MINUTE,
                "last_claim": now - MINUTE,
                "runs": 20,
                **some.get(f"m{number}", {}),
            }
        )
        for number in range(size)
    ]


def see(
    machines: list[Machine],
    policy: Policy = EVERYTHING,
    *,
    watch: Watch | None = None,
    records: dict[WorkerKey, Record] | None = None,
    now: datetime = NOON,
    done: tuple[Done, ...] = (),
) -> Look:
    return look(machines, records or {}, watch or Watch(), policy, now, lag=LAG, done=done)


def cures(found: Look) -> list[tuple[str, str]]:
    return [(one.cure.value, one.key.worker_id) for one in found.remedies]


MISSING: dict[str, Any] = {"heard": NOON - 3 * HOUR}


def test_nothing_is_done_unless_a_pool_wants_it() -> None:
    machines = a_pool(40, m0=MISSING, m1=FAILING)
    assert cures(see(machines, Policy())) == []
    assert cures(see(machines, Policy(reboot=True))) == [("reboot", "m-000")]
    assert cures(see(machines, Policy(quarantine=True))) == [("quarantine", "m-001")]
    assert cures(see(machines, Policy(replace=True))) == []


def test_what_people_put_into_quarantine_is_left_to_them() -> None:
    held = {"is_quarantined": True}
    assert cures(see(a_pool(40, m0={**MISSING, **held}, m1={**FAILING, **held}))) == []


def test_a_machine_that_never_came_is_not_rebooted() -> None:
    assert cures(see(a_pool(40, m0={"heard": None, "entered": NOON - 3 * HOUR}))) == []


def test_a_reboot_is_asked_for_once_and_twice_a_day_at_most() -> None:
    machines = a_pool(60, m0=MISSING)

    def done(hours: float, *, ended: bool = True) -> Done:
        at = NOON - hours * HOUR
        return Done(Cure.REBOOT, a_key(0), at, at + HOUR / 2 if ended else None)

    first, again = see(machines), see(machines, now=NOON)
    assert first.remedies == again.remedies
    assert matches(SLUGID, first.remedies[0].request_id)
    assert cures(see(machines, done=(done(1, ended=False),))) == []
    second = see(machines, done=(done(2),))
    assert cures(second) == [("reboot", "m-000")]
    assert second.remedies[0].request_id != first.remedies[0].request_id
    assert cures(see(machines, done=(done(2), done(1)))) == []


@pytest.mark.parametrize(("size", "most"), [(1, 1), (39, 1), (40, 2), (200, 10)])
def test_a_twentieth_of_a_pool_is_rebooted_at_once_but_always_one(size: int, most: int) -> None:
    assert most_at_once(size, EVERYTHING) == most
    if size >= 40:
        some: Some = {f"m{number}": MISSING for number in range(size // 8)}
        assert len(see(a_pool(size, NOON, **some)).remedies) == most


def test_those_that_wait_longest_come_first() -> None:
    machines = a_pool(40, m1={"heard": NOON - 5 * HOUR}, m2=MISSING, m3={"heard": NOON - 4 * HOUR})
    assert cures(see(machines)) == [("reboot", "m-001"), ("reboot", "m-003")]


def test_no_more_are_put_aside_by_us_than_would_be_an_outage() -> None:
    ours = {"is_quarantined": True, "is_ours": True}
    machines = a_pool(20, m0=ours, m1=ours, m2=ours, m3=FAILING, m4=FAILING)
    assert cures(see(machines)) == [("quarantine", "m-003")]


def test_a_machine_of_a_cloud_is_put_aside_first_and_ended_when_its_task_is_over() -> None:
    cloud = {"is_fixed": False}
    replacing = Policy(replace=True)
    assert cures(see(a_pool(9, m0={**cloud, **FAILING}), replacing)) == [("quarantine", "m-000")]
    aside = {**cloud, "is_quarantined": True, "is_ours": True}
    assert cures(see(a_pool(9, m0={**aside, "running": 1}), replacing)) == []
    assert cures(see(a_pool(9, m0=aside), replacing)) == [("kill", "m-000")]
    assert cures(see(a_pool(9, m0=aside), Policy(quarantine=True))) == []
    done = Done(Cure.KILL, a_key(5), NOON - HOUR / 2, NOON)
    assert cures(see(a_pool(9, m0=aside), replacing, done=(done,))) == []


def test_an_end_that_did_not_come_is_asked_for_again_but_not_on_the_same_day() -> None:
    def ends(now: datetime, *done: Done) -> list[str]:
        aside = {"is_fixed": False, "is_quarantined": True, "is_ours": True}
        return [
            one.request_id for one in see(a_pool(9, now, m0=aside), now=now, done=done).remedies
        ]

    asked = Done(Cure.KILL, a_key(0), NOON, NOON + HOUR)
    assert ends(NOON) == ends(NOON + HOUR)
    assert ends(NOON + 11 * HOUR, asked) == []
    [first], [again] = ends(NOON), ends(NOON + DAY)
    assert first != again


@pytest.mark.parametrize("size", [8, 20, 100])
def test_a_quarter_of_a_pool_that_falls_silent_at_once_is_left_alone(size: int) -> None:
    fell, watch, records = NOON, Watch(), dict[WorkerKey, Record]()
    alarms = 0
    for tick in range(60):
        now = fell + tick * TICK
        # What is told late, is told up to half an hour late.
        some = {
            f"m{number}": {"heard": fell - (number % 7) * 5 * MINUTE} for number in range(size // 4)
        }
        found = see(a_pool(size, now, **some), watch=watch, records=records, now=now)
        assert cures(found) == []
        alarms += found.watch.outage_since is not None and watch.outage_since is None
        watch = found.watch
        records = _kept(records, found)
    assert alarms == 1
    assert watch.outage_since is not None
    healed = see(a_pool(size, now), watch=watch, records=records, now=now)
    assert healed.watch.outage_since is None


def test_an_outage_lasts_until_few_are_bad_and_who_is_in_quarantine_does_not_count() -> None:
    watch = Watch(outage_since=NOON - 5 * DAY)
    scattered: Some = {f"m{number}": {"heard": NOON - number * 9 * HOUR} for number in range(1, 6)}
    assert see(a_pool(20, NOON, **scattered), watch=watch).watch.outage_since is not None
    assert see(a_pool(20, NOON, **scattered)).watch.outage_since is None
    scattered["m1"]["is_quarantined"] = True
    found = see(a_pool(20, NOON, **scattered), watch=watch)
    assert found.watch.outage_since is not None
    scattered["m2"]["is_quarantined"] = True
    assert see(a_pool(20, NOON, **scattered), watch=watch).watch.outage_since is None


def test_one_machine_alone_is_no_outage() -> None:
    assert cures(see(a_pool(2, m0=MISSING))) == [("reboot", "m-000")]


def test_what_did_not_change_is_not_written_and_keeps_its_first_words() -> None:
    first = see(a_pool(40, m0=MISSING, m1=FAILING))
    assert {change.key.worker_id for change in first.changes} == {"m-000", "m-001"}
    assert all(change.is_news for change in first.changes)
    records = _kept({}, first)
    later = NOON + 10 * MINUTE
    again = see(a_pool(40, later, m0=MISSING, m1=FAILING), records=records, now=later)
    assert again.changes == []
    assert again.judged[1].verdict == first.judged[1].verdict
    well = see(a_pool(40, later), records=records, now=later)
    [back, calm] = well.changes
    assert (back.after, back.is_news, back.previous) == (None, True, "missing")
    # That it was flaky is remembered, though it no longer is.
    assert calm.after is not None
    assert (calm.after.verdict.condition, calm.after.flaky) == ("healthy", (NOON,))
    gone = see(a_pool(1, later), records=records, now=later)
    assert [(one.key.worker_id, one.is_news) for one in gone.changes if one.found is None] == [
        ("m-001", False)
    ]


def test_who_is_flaky_a_second_time_needs_more_than_a_reboot() -> None:
    records: dict[WorkerKey, Record] = {}
    conditions = []
    for day, facts in enumerate((FAILING, FAILING, {}, FAILING, {}, *[{}] * 13)):
        now = NOON + day * DAY
        found = see(a_pool(40, now, m0=facts), records=records, now=now)
        records = _kept(records, found)
        conditions.append(found.judged[0].verdict.condition.value)
    assert conditions[:6] == ["flaky", "flaky", "healthy"] + ["needs-reformat"] * 3
    assert conditions[13:] == ["needs-reformat"] + ["healthy"] * 4
    assert records == {}


@given(data=st.data(), size=st.integers(1, 50))
@settings(max_examples=30)
def test_no_sequence_of_looks_does_more_than_its_limits(data: st.DataObject, size: int) -> None:
    watch, records, done = Watch(), dict[WorkerKey, Record](), list[Done]()
    heard = [NOON] * size
    held = set[WorkerKey]()
    silent = set[int]()
    for step in range(data.draw(st.integers(1, 14))):
        now = NOON + step * data.draw(st.sampled_from([TICK, HOUR]))
        if data.draw(st.booleans()):
            silent ^= data.draw(st.sets(st.integers(0, size - 1), max_size=max(1, size // 3)))
        for number in set(range(size)) - silent:
            heard[number] = max(heard[number], now)
        failing = data.draw(st.sets(st.integers(0, size - 1), max_size=4))
        some: Some = {
            f"m{number}": {
                "heard": heard[number],
                "is_quarantined": a_key(number) in held,
                "is_ours": a_key(number) in held,
                **(FAILING if number in failing else {}),
            }
            for number in range(size)
        }
        found = see(
            a_pool(size, now, **some), watch=watch, records=records, now=now, done=tuple(done)
        )
        watch, records = found.watch, _kept(records, found)
        if watch.outage_since is not None:
            assert found.remedies == ()
        if data.draw(st.booleans()):
            done = [Done(one.cure, one.key, one.requested, one.ended or now) for one in done]
        for one in found.remedies:
            if one.cure is Cure.QUARANTINE:
                held.add(one.key)
            else:
                done.append(Done(one.cure, one.key, now))
        under_way = [one for one in done if one.cure is Cure.REBOOT and one.ended is None]
        assert len(under_way) <= most_at_once(size, EVERYTHING)
        lately = Counter(one.key for one in done if one.requested > now - DAY)
        assert max(lately.values(), default=0) <= 2
        assert len(held) <= max(1, size // 5)


def test_tasks_wait_since_they_were_first_found_to_and_launch_configs_are_old_likewise() -> None:
    def after(before: Watch, pending: int | None, now: datetime, *current: str) -> Watch:
        return watched(before, pending=pending, used={"lc-a", "lc-b"}, current=current, now=now)

    first = after(Watch(), 3, NOON, "lc-a")
    assert (first.pending_since, first.retired) == (NOON, {"lc-b": NOON})
    assert after(first, None, NOON + HOUR, "lc-a") == first
    assert after(first, 1, NOON + HOUR, "lc-a") == first
    turned = after(first, 0, NOON + HOUR, "lc-c")
    assert turned.pending_since is None
    assert turned.retired == {"lc-a": NOON + HOUR, "lc-b": NOON}
    assert watched(first, pending=1, used={"x"}, current=None, now=NOON).retired == {}


def test_what_is_remembered_and_said_comes_back_from_storage_as_it_was() -> None:
    found = see(a_pool(40, m0=MISSING, m1=FAILING))
    for change in found.changes:
        assert change.after is not None
        assert to_record(from_record(change.after), version=0) == change.after
    watch = Watch(NOON, NOON - HOUR, {"lc-a": NOON - DAY}, version=3)
    assert to_watch(from_watch(watch), version=3) == watch
    policy = Policy(
        reboot=True,
        thresholds=Thresholds(missing=3 * HOUR, bad_in_a_row=7),
        mix={"weight": 2},
        updated=NOON,
        updated_by="test/root",
    )
    assert from_json(to_json(policy)) == policy
    assert from_json(to_json(Policy())) == Policy()


def _kept(records: dict[WorkerKey, Record], found: Look) -> dict[WorkerKey, Record]:
    after = {**records, **{change.key: change.after for change in found.changes}}
    return {key: record for key, record in after.items() if record is not None}
