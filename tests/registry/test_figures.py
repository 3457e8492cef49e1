"""Figures of workers: rates, health, uptime and counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import a_worker
from worker_manager.core.model import State, WorkerKey
from worker_manager.registry import figures
from worker_manager.registry.entities import Claim, Outcomes, RegistryWorker
from worker_manager.registry.figures import Health, Rates, Uptime, WorkerCounts

if TYPE_CHECKING:
    from typing import Any

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TODAY = "2026-11-30"


def a_machine(**facts: Any) -> RegistryWorker:
    seen = {"first_seen": NOON - DAY, "last_seen": NOON} | facts
    return RegistryWorker(WorkerKey("p/t", "rack", "m-1"), created=NOON - DAY, **seen)


def a_claim(state: str | None = None) -> Claim:
    return Claim("task", 0, NOON - HOUR, state=state)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (Outcomes(), Rates(0, None, None)),
        (Outcomes(completed=4), Rates(4, None, None)),
        (Outcomes(completed=4, failed=1), Rates(5, 0.2, 0.0)),
        (Outcomes(completed=3, failed=1, exceptions=1), Rates(5, None, 0.2)),
        (Outcomes(others=9), Rates(0, None, None)),
        (Outcomes(completed=5, others=95), Rates(5, 0.0, 0.0)),
    ],
)
def test_a_rate_needs_five_runs_that_say_something(outcomes: Outcomes, expected: Rates) -> None:
    assert figures.rates(outcomes) == expected


def test_runs_of_all_workers_within_a_week_are_added() -> None:
    one = a_machine(outcomes={TODAY: Outcomes(9, 1), "2026-11-24": Outcomes(0, 1)})
    old = a_machine(outcomes={"2026-11-23": Outcomes(0, 50), TODAY: Outcomes(1, 0, 2, 3)})
    assert figures.outcomes_of([one, old], NOON) == Outcomes(10, 2, 2, 3)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"first_seen": None, "last_seen": None}, Health.UNKNOWN),
        ({}, Health.OK),
        ({"last_seen": NOON - 2 * HOUR}, Health.OK),
        ({"last_seen": NOON - 2 * HOUR - HOUR / 60}, Health.SILENT),
        ({"outcomes": {TODAY: Outcomes(3, 3)}}, Health.FAILING),
        ({"outcomes": {TODAY: Outcomes(3, 2)}}, Health.OK),
        ({"outcomes": {TODAY: Outcomes(2, 0, 3)}, "last_seen": NOON - DAY}, Health.FAILING),
        ({"outcomes": {TODAY: Outcomes(0, 4)}}, Health.OK),
        ({"outcomes": {TODAY: Outcomes(3, 3)}, "gone": NOON}, Health.GONE),
        ({"first_seen": None, "last_seen": None, "gone": NOON}, Health.GONE),
    ],
)
def test_health_is_the_first_that_fits(facts: dict[str, Any], expected: Health) -> None:
    assert figures.health(a_machine(**facts), None, NOON) is expected
    assert figures.health(None, None, NOON) is Health.UNKNOWN


def test_a_machine_is_gone_when_anybody_says_so_but_not_one_made_since() -> None:
    gone = a_machine(gone=NOON)
    before, since = (a_worker("m-1", created=at) for at in (NOON - DAY, NOON + HOUR))
    stopped = a_worker("m-1", state=State.STOPPED, created=NOON + HOUR)
    cases = [
        (None, before, Health.UNKNOWN),
        (None, stopped, Health.GONE),
        (a_machine(), before, Health.OK),
        (a_machine(), stopped, Health.GONE),
        (gone, before, Health.GONE),
        (gone, since, Health.OK),
    ]
    for worker, row, expected in cases:
        assert figures.health(worker, row, NOON) is expected


def test_the_latest_boot_that_anybody_told_of_counts_else_the_latest_first_sign() -> None:
    row = a_worker("m-1", boot_time=None, registered=NOON - 2 * HOUR)
    booted = a_worker("m-1", boot_time=NOON - 3 * HOUR)
    told = a_machine(boot_time=NOON - HOUR)
    assert figures.uptime(told, booted) == Uptime(NOON - HOUR, is_approximate=False)
    assert figures.uptime(a_machine(), booted) == Uptime(NOON - 3 * HOUR, is_approximate=False)
    assert figures.uptime(a_machine(), row) == Uptime(NOON - 2 * HOUR, is_approximate=True)
    assert figures.uptime(a_machine(), None) == Uptime(NOON - DAY, is_approximate=True)


def test_what_is_gone_or_unknown_has_no_uptime() -> None:
    assert figures.uptime(None, None) is None
    assert figures.uptime(a_machine(gone=NOON), None) is None
    assert figures.uptime(None, a_worker("m-1", state=State.STOPPED)) is None


def test_workers_are_counted_once_by_what_they_do() -> None:
    until = NOON + DAY
    workers = [
        a_machine(),
        a_machine(claims=(a_claim("completed"),)),
        a_machine(claims=(a_claim(),)),
        a_machine(quarantine_until=until),
        a_machine(quarantine_until=until, claims=(a_claim(),)),
        a_machine(quarantine_until=NOON),
        a_machine(gone=NOON, quarantine_until=until),
    ]
    counts = figures.count(workers, NOON)
    assert counts == WorkerCounts(total=6, quarantined=2, claimed=1)
    assert counts.idle == 3
    assert replace(counts, claimed=9).idle == 0
