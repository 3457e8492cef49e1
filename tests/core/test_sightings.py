from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_sighting, a_worker
from worker_manager.core.model import MachineStatus, Sighting, Worker
from worker_manager.core.sightings import Baseline, match, orphans, too_many_strays

LAG = timedelta(seconds=30)


def seconds_old(worker_id: str, seconds: int) -> Worker:
    born = NOW - timedelta(seconds=seconds)
    return a_worker(worker_id, created=born, modified=born)


@given(
    rows=st.dictionaries(st.integers(0, 12).map(lambda n: f"i-{n}"), st.integers(-60, 120)),
    listed=st.dictionaries(
        st.integers(0, 12).map(lambda n: f"i-{n}"), st.sampled_from(MachineStatus)
    ),
)
def test_matched_missing_young_and_stray_partition_the_union(
    rows: dict[str, int], listed: dict[str, MachineStatus]
) -> None:
    workers = [seconds_old(name, age) for name, age in rows.items()]
    sightings = [a_sighting(name, status=status) for name, status in listed.items()]

    found = match(workers, sightings, listed_at=NOW, list_lag=LAG)

    seen = {worker.key for worker, _ in found.seen}
    missing = {worker.key for worker in found.missing}
    young = {worker.key for worker in found.young}
    strays = {stray.key for stray in found.strays}
    remains = {
        s.key for s in sightings if s.status is MachineStatus.GONE and s.key.worker_id not in rows
    }
    parts = [seen, missing, young, strays, remains]
    everything = {w.key for w in workers} | {s.key for s in sightings}
    assert set().union(*parts) == everything
    assert sum(map(len, parts)) == len(everything)
    assert all(worker.key == sighting.key for worker, sighting in found.seen)


@pytest.mark.parametrize(
    ("created", "modified", "is_young"), [(31, 31, False), (30, 30, False), (29, 29, True)]
)
def test_only_a_row_older_than_the_list_can_show_is_missed(
    created: int, modified: int, is_young: bool
) -> None:
    worker = a_worker(
        created=NOW - timedelta(seconds=created), modified=NOW - timedelta(seconds=modified)
    )

    found = match([worker], [], listed_at=NOW, list_lag=LAG)

    assert (found.young, found.missing) == (((worker,), ()) if is_young else ((), (worker,)))


def test_a_row_changed_after_the_list_began_is_not_missed() -> None:
    worker = a_worker(created=NOW - timedelta(hours=1), modified=NOW)

    assert match([worker], [], listed_at=NOW, list_lag=LAG).young == (worker,)


def test_a_machine_the_list_shows_as_gone_settles_its_row_and_is_no_stray() -> None:
    gone = a_sighting(status=MachineStatus.GONE)

    assert match([a_worker()], [gone], listed_at=NOW, list_lag=LAG).seen == ((a_worker(), gone),)
    assert match([], [gone], listed_at=NOW, list_lag=LAG).strays == ()


def test_the_same_id_in_another_group_is_another_machine() -> None:
    elsewhere = a_sighting(group="us-west-2")

    found = match([a_worker()], [elsewhere], listed_at=NOW, list_lag=LAG)

    assert found.missing == (a_worker(),)
    assert found.strays == (elsewhere,)


def test_strays_that_an_open_plan_ordered_are_adopted() -> None:
    ordered = a_sighting("i-1", order_id="o-1")
    unknown = a_sighting("i-2", order_id="o-2")
    unnamed = a_sighting("i-3", order_id=None)

    assert orphans([ordered, unknown, unnamed], {"o-1": object()}) == (
        [ordered],
        [unknown, unnamed],
    )


@given(strays=st.lists(st.sampled_from(["o-1", "o-2", None])), ordered=st.sets(st.just("o-1")))
def test_every_stray_is_adopted_or_not(strays: list[str | None], ordered: set[str]) -> None:
    sightings: list[Sighting] = [
        a_sighting(f"i-{n}", order_id=order) for n, order in enumerate(strays)
    ]

    adopted, rest = orphans(sightings, dict.fromkeys(ordered))

    assert len(adopted) + len(rest) == len(sightings)
    assert all(stray.order_id in ordered for stray in adopted)


@pytest.mark.parametrize(
    ("before", "told", "now", "believed"),
    [
        (0, 0, 0, True),
        (0, 0, 100, True),
        (10, 0, 5, True),
        (10, 0, 4, False),
        (100, 0, 80, True),
        (100, 0, 79, False),
        (100, 50, 50, True),
        (100, 50, 40, True),
        (100, 50, 39, False),
        (5, 9, 0, True),
        (100, 0, 0, False),
    ],
)
def test_a_list_that_lost_too_many_machines_at_once_is_not_believed(
    before: int, told: int, now: int, believed: bool
) -> None:
    baseline = Baseline(machines=before, told=told)

    accepted, after = baseline.accept(now)

    assert accepted is believed
    assert after == (Baseline(now) if believed else Baseline(before, told, held=1))


def test_the_third_list_in_a_row_that_agrees_is_believed() -> None:
    baseline = Baseline(machines=100)
    answers = []
    for _ in range(3):
        accepted, baseline = baseline.accept(3)
        answers.append(accepted)

    assert answers == [False, False, True]
    assert baseline == Baseline(machines=3)


def test_a_list_that_is_right_again_ends_the_doubt() -> None:
    _, doubted = Baseline(machines=100).accept(0)

    assert doubted.accept(98) == (True, Baseline(machines=98))


@pytest.mark.parametrize(
    ("strays", "machines", "too_many"),
    [(0, 0, False), (5, 0, False), (6, 0, True), (50, 1000, False), (51, 1000, True)],
)
def test_more_strays_than_a_few_are_likelier_a_fault_of_our_rows(
    strays: int, machines: int, too_many: bool
) -> None:
    assert too_many_strays(strays, machines) is too_many
