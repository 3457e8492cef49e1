"""The simulated day, two hours of it with everything going wrong early."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.benchmarks import day
from tests.benchmarks.day import CAPACITY, IMAGE, MIDNIGHT, QUOTA, Incident, simulate, tasks_of
from tests.benchmarks.day_results import detail, measures, share


@pytest.fixture
def _early_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day, "PEAK", 4.0)
    monkeypatch.setattr(day, "CAPACITY", Incident(CAPACITY.name, 0.1, 0.6))
    monkeypatch.setattr(day, "IMAGE", Incident(IMAGE.name, 0.2, 1.8))
    monkeypatch.setattr(day, "QUOTA", Incident(QUOTA.name, 0.5, 0.9))


def test_every_task_is_served_when_all_is_well() -> None:
    outcome = simulate(heals=True, hours=1)
    assert outcome.unserved == 0
    assert outcome.wasted == 0
    assert outcome.waits()
    assert all(machine.has_asked_for_work for machine in outcome.cloud.ended)


def test_the_same_seed_is_the_same_day_and_without_trouble_health_changes_nothing() -> None:
    healing, again, plain = (simulate(heals=heals, hours=1) for heals in (True, True, False))
    assert healing.waits() == again.waits() == plain.waits()
    assert healing.machine_hours == plain.machine_hours


@pytest.mark.usefixtures("_early_trouble")
def test_health_spares_refused_calls_and_machines_of_a_broken_image() -> None:
    healing, plain = (simulate(heals=heals, hours=2) for heals in (True, False))
    assert 0 < healing.refused("no-capacity") < plain.refused("no-capacity") / 2
    assert 0 < healing.wasted_on_image < plain.wasted_on_image / 1.5
    assert healing.first_wave > 0
    assert healing.unserved == 0


def test_the_figures_of_both_days_stand_side_by_side() -> None:
    healing = plain = simulate(heals=False, hours=0.5)
    table = detail(healing, plain)
    assert len({line.count("|") for line in table.text.splitlines()}) == 1
    assert table.data["without"]["machines"] == len(plain.cloud.ended)
    names = {measure.name for measure in measures(healing, plain, seconds=1)}
    assert {"day_wasted", "day_wasted_in_outage", "day_broken_image", "day_waiting"} <= names


def test_a_share_of_nothing_is_nothing_or_all() -> None:
    assert share(1, 4) == 0.25
    assert share(0, 0) == 0
    assert share(3, 0) == 1


def test_tasks_come_in_order_and_mostly_by_day() -> None:
    tasks = list(tasks_of(0, seed=1, hours=24))
    assert [task.created for task in tasks] == sorted(task.created for task in tasks)
    noon, night = (
        sum(
            abs(task.created - MIDNIGHT - timedelta(hours=hour)) < timedelta(hours=2)
            for task in tasks
        )
        for hour in (13, 1)
    )
    assert noon > 4 * night
