"""The rules by which machines are judged, as a table, and what holds for any facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.machines.facts import Machine, PoolFacts
from worker_manager.machines.policy import Thresholds
from worker_manager.machines.verdicts import Condition, Verdict, judge
from worker_manager.registry.figures import ENOUGH

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LAG = 30 * MINUTE
KEY = WorkerKey("proj-x/racked", "rack-1", "m-1")
OTHER = WorkerKey("proj-x/racked", "rack-1", "m-2")
USUAL = PoolFacts(
    pending_since=NOON - HOUR, rates=(0.0, 0.05, 0.1), claims=((NOON - MINUTE, OTHER),)
)


def a_machine(**facts: Any) -> Machine:
    usual: dict[str, Any] = {
        "key": KEY,
        "is_fixed": True,
        "entered": NOON - 90 * DAY,
        "heard": NOON - MINUTE,
        "last_claim": NOON - 5 * MINUTE,
    }
    return Machine(**{**usual, **facts})


def verdict(machine: Machine, others: PoolFacts = USUAL, **limits: Any) -> Verdict:
    """Of a machine among these."""
    its = (machine.bad_rate,) if machine.runs >= ENOUGH else ()
    pool = replace(others, rates=(*its, *others.rates))
    return judge(machine, pool, Thresholds(**limits), NOON, lag=LAG)


LOOPING = tuple(NOON - minutes * MINUTE for minutes in (59, 50, 40, 30, 20, 10))
FAILING = {"runs": 12, "bad_runs": 6, "bad_in_a_row": 5}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "healthy"),
        ({"heard": NOON - 2 * HOUR}, "healthy"),
        ({"heard": NOON - 2 * HOUR - MINUTE}, "missing"),
        ({"heard": None, "entered": NOON - 3 * HOUR}, "missing"),
        ({"heard": NOON - DAY}, "missing"),
        ({"heard": NOON - DAY - MINUTE}, "dead"),
        ({"heard": NOON - 3 * HOUR, "reboot_failed": NOON - HOUR}, "dead"),
        ({"heard": NOON - 3 * HOUR, "reboot_failed": NOON - 4 * HOUR}, "missing"),
        ({"heard": NOON - HOUR, "reboot_failed": NOON - MINUTE}, "healthy"),
        ({"running": 1, "heard": NOON - 50 * MINUTE}, "healthy"),
        ({"running": 1, "heard": NOON - 51 * MINUTE}, "busy-silent"),
        ({"last_claim": NOON - 30 * MINUTE}, "healthy"),
        ({"last_claim": NOON - 31 * MINUTE}, "idle-stuck"),
        ({"last_claim": None}, "idle-stuck"),
        ({"last_claim": None, "entered": NOON - 20 * MINUTE}, "healthy"),
        ({"last_claim": None, "registrations": (NOON - 20 * MINUTE,)}, "healthy"),
        ({"last_claim": NOON - HOUR, "running": 1}, "healthy"),
        ({"last_claim": NOON - HOUR, "is_quarantined": True}, "healthy"),
        (FAILING, "flaky"),
        ({**FAILING, "bad_in_a_row": 4}, "healthy"),
        ({**FAILING, "runs": 9}, "healthy"),
        ({**FAILING, "runs": 120, "bad_runs": 6}, "healthy"),
        ({**FAILING, "was_flaky": (NOON - 13 * DAY, NOON)}, "needs-reformat"),
        ({**FAILING, "was_flaky": (NOON - 15 * DAY, NOON)}, "flaky"),
        ({"was_flaky": (NOON - 13 * DAY, NOON - DAY)}, "needs-reformat"),
        ({"registrations": LOOPING, "last_claim": None}, "reboot-loop"),
        ({"registrations": LOOPING, "last_claim": NOON - 2 * HOUR}, "reboot-loop"),
        ({"registrations": LOOPING}, "healthy"),
        ({"registrations": LOOPING[1:], "last_claim": NOON - 20 * MINUTE}, "healthy"),
        ({"stale_since": NOON - 7 * DAY - MINUTE, "launch_config_id": "lc-a"}, "stale-config"),
        ({"stale_since": NOON - 7 * DAY, "launch_config_id": "lc-a"}, "healthy"),
        # Of what a cloud's scan looks after nothing is said here.
        ({"is_fixed": False, "heard": NOON - 2 * DAY}, "healthy"),
        ({"is_fixed": False, "last_claim": None}, "healthy"),
        ({"is_fixed": False, **FAILING}, "flaky"),
    ],
)
def test_the_first_rule_that_fits_is_the_verdict(facts: dict[str, Any], expected: str) -> None:
    assert verdict(a_machine(**facts)).condition == expected


@pytest.mark.parametrize(
    ("pool", "facts"),
    [
        (PoolFacts(None, (), ((NOON, OTHER),)), {"last_claim": None}),
        (PoolFacts(NOON - 15 * MINUTE, (), ((NOON, OTHER),)), {"last_claim": None}),
        (PoolFacts(NOON - HOUR, (), ((NOON - 31 * MINUTE, OTHER),)), {"last_claim": None}),
        (PoolFacts(NOON - HOUR, (), ((NOON, KEY),)), {"last_claim": NOON - HOUR}),
        (PoolFacts(NOON - HOUR, (0.5,)), FAILING),
        (PoolFacts(NOON - HOUR, (0.2, 0.3, 0.4, 0.5)), FAILING),
    ],
    ids=["no task", "not for long", "nobody claims", "alone", "no siblings", "all fail"],
)
def test_what_its_siblings_do_as_well_is_not_held_against_a_machine(
    pool: PoolFacts, facts: dict[str, Any]
) -> None:
    assert verdict(a_machine(**facts), pool).condition is Condition.HEALTHY


def test_a_sighting_that_is_told_late_makes_nobody_missing() -> None:
    machine = a_machine(heard=NOON - 80 * MINUTE)
    assert verdict(machine, missing=10 * MINUTE).condition is Condition.HEALTHY
    at_once = judge(machine, USUAL, Thresholds(missing=10 * MINUTE), NOON, lag=MINUTE)
    assert at_once.condition is Condition.MISSING


def test_a_verdict_says_why_in_a_sentence_and_what_it_rests_on() -> None:
    found = verdict(a_machine(heard=NOON - 3 * HOUR))
    assert found.reason == "It was last heard of at 2026-11-30 09:00 UTC, longer than 2 hours ago."
    assert found.since == NOON - 3 * HOUR
    assert found.facts["lastHeard"] == to_wire(NOON - 3 * HOUR)
    flaky = verdict(a_machine(**FAILING))
    assert flaky.reason == (
        "Its last 5 runs went wrong, and 6 of 12 within a week, "
        "while 5% is usual among its siblings."
    )
    assert (flaky.facts["badRuns"], flaky.facts["usualRate"]) == (6, 0.05)


_MOMENTS = st.integers(0, 40 * 1440).map(lambda minutes: NOON - minutes * MINUTE)
_MAYBE = st.none() | _MOMENTS
_MACHINES = st.builds(
    Machine,
    key=st.sampled_from([KEY, OTHER]),
    is_fixed=st.booleans(),
    entered=_MOMENTS,
    heard=_MAYBE,
    last_claim=_MAYBE,
    running=st.integers(0, 3),
    runs=st.integers(0, 50),
    bad_runs=st.integers(0, 50),
    bad_in_a_row=st.integers(0, 20),
    registrations=st.lists(_MOMENTS, max_size=12).map(lambda found: tuple(sorted(found))),
    launch_config_id=st.none() | st.just("lc-a"),
    stale_since=_MAYBE,
    is_quarantined=st.booleans(),
    reboot_failed=_MAYBE,
    was_flaky=st.lists(_MOMENTS, max_size=3).map(lambda found: tuple(sorted(found))),
)


@given(machines=st.lists(_MACHINES, min_size=1, max_size=6), pending=_MAYBE, lag=st.integers(0, 60))
def test_every_verdict_has_a_reason_facts_and_a_beginning_that_is_not_to_come(
    machines: list[Machine], pending: datetime | None, lag: int
) -> None:
    pool = PoolFacts.of(machines, pending_since=pending)
    for machine in machines:
        found = judge(machine, pool, Thresholds(), NOON, lag=lag * MINUTE)
        assert found.reason.endswith(".")
        assert found.reason[0].isupper()
        assert {"runs", "badRuns", "running"} <= found.facts.keys()
        assert found.since <= NOON


def test_the_median_is_that_of_the_others() -> None:
    machines = [
        replace(a_machine(runs=10, bad_runs=bad), key=WorkerKey("p/q", "g", f"m-{number}"))
        for number, bad in enumerate((1, 2, 9))
    ]
    pool = PoolFacts.of([*machines, a_machine(runs=4, bad_runs=4)], pending_since=None)
    medians = [pool.median_without(machine) for machine in machines]
    assert medians == [pytest.approx(0.55), 0.5, pytest.approx(0.15)]
    assert pool.median_without(a_machine()) == pytest.approx(0.2)
