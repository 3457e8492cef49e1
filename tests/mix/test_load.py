"""Samples as they are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.mix.load import KEPT, SLOT, Sample

if TYPE_CHECKING:
    from worker_manager.mix.load import Loads

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_samples_come_back_in_order_and_only_those_asked_for(loads: Loads) -> None:
    samples = [Sample(NOON + number * SLOT, number, 2, 3, 4) for number in range(40)]
    for sample in reversed(samples):
        loads.note("racks/linux", sample)
    loads.note("racks/linux2", Sample(NOON, 9, 9, 9, 9))

    found = loads.of("racks/linux", since=NOON + SLOT, until=NOON + 30 * SLOT)

    assert found == samples[1:30]


def test_of_five_minutes_there_is_one_sample_however_often_it_is_told(loads: Loads) -> None:
    late = NOON + timedelta(minutes=4, seconds=59)
    for _ in range(2):
        loads.note("racks/repeated", Sample(late, 1, 2, 3, 4))

    assert loads.of("racks/repeated", since=NOON, until=late) == [Sample(NOON, 1, 2, 3, 4)]


def test_an_hours_row_outlives_its_samples_by_little(loads: Loads) -> None:
    for number in (11, 3):
        loads.note("racks/kept", Sample(NOON + number * SLOT, 0, 0, 0, 0))
    item = loads._table._model.get("racks/kept#load", "2026-11-30T12:00:00.000Z")

    assert NOON + KEPT < datetime.fromtimestamp(item.ttl, UTC) <= NOON + KEPT + 13 * SLOT


def test_what_was_never_sampled_is_empty(loads: Loads) -> None:
    assert loads.of("racks/other", since=NOON - KEPT, until=NOON) == []
