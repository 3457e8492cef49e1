from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import NAMES, workers
from tests.factories import NOW, a_worker
from worker_manager.core import surplus
from worker_manager.core.activity import QueueCounts
from worker_manager.core.estimator import Limits, estimate
from worker_manager.core.model import State, Surplus, Worker, WorkerKey
from worker_manager.core.surplus import (
    ARCHIVED,
    NEEDED,
    OVER_CAPACITY,
    SPOT_INTERRUPTION,
    decide_static,
    weigh,
)
from worker_manager.core.tally import Counts, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable

HOUR = timedelta(hours=1)
ACTIVE = {"lc-a"}


def hours_old(worker_id: str, hours: int, **overrides: Any) -> Worker:
    return a_worker(worker_id, registered=NOW - hours * HOUR, **overrides)


def decide(
    given_workers: Iterable[Worker],
    active: set[str],
    *,
    target: int,
    busy: set[WorkerKey] | None = None,
) -> list[tuple[Worker, Surplus]]:
    standing = weigh(given_workers, active, target=target, now=NOW)
    return surplus.decide(standing, busy=busy or set(), now=NOW)


def told_to_go(
    *given_workers: Worker, target: int, busy: set[WorkerKey] | None = None
) -> list[str]:
    changes = decide(given_workers, ACTIVE, target=target, busy=busy)
    return [worker.key.worker_id for worker, answer in changes if answer.terminate]


def target(*, minimum: int = 0, pending: int = 0, claimed: int = 0, running: int = 0) -> int:
    return estimate(
        QueueCounts(pending=pending, claimed=claimed),
        Tally(Counts(running=running)),
        Limits(minimum, 100),
    ).target


def test_all_idle_workers_go_when_the_minimum_falls_to_zero() -> None:
    """Report B12 (#8328): ten ran with nothing to do, minimum ten to zero, and none went."""
    ten = [hours_old(f"i-{n}", n) for n in range(10)]

    assert len(told_to_go(*ten, target=target(minimum=0, running=10))) == 10


def test_the_minimum_stays_however_idle_it_is() -> None:
    """Report B23 (#3072, #8326): the minimum shut down idle and was started again, endlessly."""
    ten = [hours_old(f"i-{n}", n) for n in range(10)]

    assert told_to_go(*ten, target=target(minimum=10, running=10)) == []


def test_a_pool_of_large_machines_scales_to_zero() -> None:
    """Report B42 (gitlab-runner#37643): never down to zero with several slots a machine."""
    machines = [hours_old(f"i-{n}", n, capacity=5) for n in range(3)]

    assert len(told_to_go(*machines, target=0)) == 3


def test_the_ones_alive_for_longest_stay() -> None:
    """Report S10: the newest were kept and warm caches thrown away."""
    old, new, newest = hours_old("old", 48), hours_old("new", 2), hours_old("newest", 1)

    assert told_to_go(old, newest, new, target=1) == ["newest", "new"]


def test_idle_workers_go_before_busy_ones_however_old_they_are() -> None:
    """Report B44 (gitlab-org/gitlab#552226): busy ones were killed."""
    old, new = hours_old("old", 48), hours_old("new", 1)

    assert told_to_go(old, new, target=1, busy={new.key}) == ["old"]


def test_excess_stays_where_letting_go_would_be_too_much() -> None:
    """Report B46 (ec2-fleet-plugin#157): what fits under the new maximum stays, no more."""
    large, small = hours_old("large", 1, capacity=4), hours_old("small", 2, capacity=2)

    assert told_to_go(large, small, target=4) == ["small"]
    assert told_to_go(large, target=1) == []


def test_workers_of_archived_launch_configs_go_first_and_count_for_nobody() -> None:
    archived = hours_old("archived", 48, launch_config_id="lc-old")
    current = hours_old("current", 1)

    changes = decide([archived, current], ACTIVE, target=1, busy={archived.key})

    assert changes == [(archived, Surplus(True, ARCHIVED, NOW))]
    assert weigh([archived, current], ACTIVE, target=1, now=NOW).excess == 0


def test_all_workers_of_an_archived_launch_config_are_told_at_once_however_much_waits() -> None:
    """They ask between tasks: idle ones leave now, busy ones when they are done.

    Report B44: none is killed, so none is spared either, as one that is would run on for ever
    with what was replaced.
    """
    idle = [hours_old(f"idle-{n}", n, launch_config_id="lc-old") for n in range(50)]
    busy = [hours_old(f"busy-{n}", n, launch_config_id="lc-old") for n in range(50)]

    changes = decide(
        [*idle, *busy],
        ACTIVE,
        target=target(pending=100, claimed=50, running=100),
        busy={worker.key for worker in busy},
    )

    assert {worker.key for worker, _ in changes} == {worker.key for worker in (*idle, *busy)}
    assert {answer for _, answer in changes} == {Surplus(True, ARCHIVED, NOW)}


def static_answers(*given_workers: Worker, active: set[str] | None = None) -> dict[str, bool]:
    changes = decide_static(given_workers, ACTIVE if active is None else active, now=NOW)
    assert all(answer.reason == (ARCHIVED if answer.terminate else NEEDED) for _, answer in changes)
    return {worker.key.worker_id: answer.terminate for worker, answer in changes}


def test_static_workers_of_another_launch_config_are_told_and_no_others() -> None:
    current, old = a_worker("current"), a_worker("old", launch_config_id="lc-old")
    none = a_worker("none", launch_config_id=None)

    assert static_answers(current, old, none) == {"old": True, "none": True}
    assert static_answers(current, old, none, active=set()) == {"current": True, "old": True}


def test_a_static_worker_is_told_once_and_no_more_when_its_launch_config_comes_back() -> None:
    told = a_worker(surplus=Surplus(True, ARCHIVED, NOW - HOUR))
    needed = a_worker(surplus=Surplus(False, NEEDED, NOW - HOUR))

    assert static_answers(told, active={"lc-new"}) == {}
    assert static_answers(told) == {"i-1": False}
    assert static_answers(needed) == {}


@pytest.mark.parametrize(
    "overrides",
    [
        {"state": State.REQUESTED},
        {"state": State.STOPPING},
        {"state": State.STOPPED},
        {"quarantine_until": NOW + HOUR},
    ],
)
def test_static_workers_that_do_not_run_or_are_quarantined_are_told_nothing(
    overrides: dict[str, Any],
) -> None:
    assert static_answers(a_worker(launch_config_id="lc-old", **overrides)) == {}


def test_a_worker_without_launch_config_is_not_archived() -> None:
    assert told_to_go(hours_old("static", 1, launch_config_id=None), target=1) == []


@pytest.mark.parametrize(
    ("overrides", "is_asked"),
    [
        ({}, True),
        ({"state": State.REQUESTED}, False),
        ({"state": State.STOPPING}, False),
        ({"state": State.STOPPED}, False),
        ({"quarantine_until": NOW + HOUR}, False),
        ({"quarantine_until": NOW - HOUR}, True),
    ],
)
def test_only_those_that_run_and_are_not_quarantined_are_let_go(
    overrides: dict[str, Any], is_asked: bool
) -> None:
    """Report B22 (#4928): a quarantined machine is kept for whoever looks into it."""
    worker = a_worker(**overrides)

    standing = weigh([worker], ACTIVE, target=0, now=NOW)
    assert bool(standing.current) is is_asked
    assert bool(told_to_go(worker, target=0)) is is_asked


@pytest.mark.parametrize("target", [0, 2])
def test_a_machine_that_its_cloud_takes_back_is_told_once_and_counts_for_nobody(
    target: int,
) -> None:
    warned = a_worker("i-1", surplus=Surplus(True, SPOT_INTERRUPTION, NOW))

    assert decide([warned], ACTIVE, target=target) == []
    assert told_to_go(warned, a_worker("i-2"), target=1) == []


def test_an_answer_is_taken_back_when_demand_returns() -> None:
    """Report B10 (#8473): the answer was stale for an hour."""
    told = hours_old("i-1", 1, surplus=Surplus(True, OVER_CAPACITY, NOW - HOUR))

    assert decide([told], ACTIVE, target=1) == [(told, Surplus(False, NEEDED, NOW))]


def test_another_reason_is_another_answer() -> None:
    told = a_worker(launch_config_id="lc-old", surplus=Surplus(True, OVER_CAPACITY, NOW - HOUR))

    assert decide([told], ACTIVE, target=5) == [(told, Surplus(True, ARCHIVED, NOW))]


def test_nothing_is_written_for_a_worker_whose_answer_stays() -> None:
    fresh = hours_old("fresh", 3)
    needed = hours_old("needed", 2, surplus=Surplus(False, NEEDED, NOW - HOUR))
    told = hours_old("told", 1, surplus=Surplus(True, OVER_CAPACITY, NOW - HOUR))

    assert decide([fresh, needed, told], ACTIVE, target=2) == []


@given(
    given_workers=workers(),
    active=st.sets(st.sampled_from(NAMES)),
    goal=st.integers(0, 60),
    working=st.sets(st.integers(0, 12)),
)
def test_letting_go_keeps_the_target_and_settles_at_once(
    given_workers: list[Worker], active: set[str], goal: int, working: set[int]
) -> None:
    busy = {w.key for w in given_workers if int(w.key.worker_id.removeprefix("i-")) in working}

    changes = decide(given_workers, active, target=goal, busy=busy)

    changed = {worker.key: answer for worker, answer in changes}
    after = [replace(w, surplus=changed.get(w.key, w.surplus)) for w in given_workers]
    current = weigh(after, active, target=goal, now=NOW).current
    going = [w for w in current if w.surplus and w.surplus.terminate]
    staying = sum(w.capacity for w in current) - sum(w.capacity for w in going)
    assert staying >= min(goal, sum(w.capacity for w in current))
    assert decide(after, active, target=goal, busy=busy) == []
    spared_idle = [w for w in current if w not in going and w.key not in busy]
    smallest_spared = min((w.capacity for w in spared_idle), default=None)
    if smallest_spared is not None and any(w.key in busy for w in going):
        assert staying - smallest_spared < goal


@given(given_workers=workers())
def test_the_order_of_rows_does_not_matter(given_workers: list[Worker]) -> None:
    backwards = list(reversed(given_workers))

    def answers(in_order: list[Worker]) -> dict[WorkerKey, bool]:
        found = decide(in_order, {"lc-a", "lc-b"}, target=5)
        return {worker.key: answer.terminate for worker, answer in found}

    assert answers(given_workers) == answers(backwards)
