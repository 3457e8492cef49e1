"""For how long things are shown, at the edges of each window."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.model import WorkerKey
from worker_manager.registry.entities import (
    Declaration,
    Provisioner,
    RegistryWorker,
    WorkerType,
)
from worker_manager.registry.records import kept_until
from worker_manager.registry.windows import (
    Windows,
    is_provisioner_listed,
    is_type_listed,
    is_worker_listed,
    type_expires,
    worker_expires,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY, HOUR, MOMENT = timedelta(days=1), timedelta(hours=1), timedelta(milliseconds=1)
WINDOWS = Windows()
KEY = WorkerKey("proj-x/builders", "rack-1", "m-1")


def a_type(**fields: Any) -> WorkerType:
    return WorkerType(
        **{
            "queue_id": "proj-x/builders",
            "created": NOON,
            "first_seen": NOON,
            "last_seen": NOON,
            **fields,
        }
    )


def declared(**fields: Any) -> Declaration:
    return Declaration(at=NOON, by="test/root", **fields)


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({}, 5 * DAY),
        ({"has_metadata": True}, 30 * DAY),
        ({"declaration": declared()}, 5 * DAY),
        ({"declaration": declared(window=HOUR)}, HOUR),
        ({"declaration": declared(window=HOUR), "has_metadata": True}, HOUR),
        ({"declaration": declared(window=timedelta(minutes=1))}, HOUR),
        ({"declaration": declared(window=400 * DAY)}, 30 * DAY),
    ],
)
def test_a_type_is_shown_until_its_window_ends(fields: Any, window: timedelta) -> None:
    seen = a_type(**fields)

    assert type_expires(seen, WINDOWS) == NOON + window
    assert is_type_listed(seen, NOON + window - MOMENT, WINDOWS)
    assert not is_type_listed(seen, NOON + window, WINDOWS)


@pytest.mark.parametrize(
    ("declaration", "has_metadata", "window"),
    [
        (Declaration(), False, 5 * DAY),
        (Declaration(), True, 30 * DAY),
        (declared(), False, 30 * DAY),
        (declared(window=2 * DAY), True, 2 * DAY),
    ],
)
def test_a_provisioner_is_shown_until_its_window_ends(
    declaration: Declaration, has_metadata: bool, window: timedelta
) -> None:
    seen = Provisioner("proj-x", NOON, NOON, NOON, declaration)

    def listed(now: datetime) -> bool:
        return is_provisioner_listed(seen, now, WINDOWS, has_metadata=has_metadata)

    assert listed(NOON + window - MOMENT)
    assert not listed(NOON + window)


def test_metadata_that_comes_and_goes_acts_at_once() -> None:
    week_later = NOON + 7 * DAY
    plain = a_type()

    assert not is_type_listed(plain, week_later, WINDOWS)
    assert is_type_listed(replace(plain, has_metadata=True), week_later, WINDOWS)
    assert not is_type_listed(replace(plain, has_metadata=False), week_later, WINDOWS)


def test_a_type_that_was_declared_and_never_seen_is_not_shown_but_has_an_end() -> None:
    unseen = a_type(first_seen=None, last_seen=None, has_metadata=True)

    assert not is_type_listed(unseen, NOON, WINDOWS)
    assert type_expires(unseen, WINDOWS) == NOON + 30 * DAY


@pytest.mark.parametrize(
    ("fields", "is_hardware", "shown_for"),
    [
        ({}, False, DAY),
        ({}, True, 14 * DAY),
        ({"gone": NOON + HOUR}, True, DAY),
        ({"explicit_expires": NOON + 3 * DAY}, False, 3 * DAY),
        ({"explicit_expires": NOON + HOUR}, False, DAY),
        ({"quarantine_until": NOON + 40 * DAY}, False, 40 * DAY),
        ({"quarantine_until": NOON + HOUR}, False, DAY),
        ({"declared": NOON + HOUR}, False, DAY + HOUR),
        ({"declared": NOON - HOUR}, False, DAY),
    ],
)
def test_a_worker_is_shown_until_its_window_ends(
    fields: Any, is_hardware: bool, shown_for: timedelta
) -> None:
    worker = RegistryWorker(KEY, NOON, first_seen=NOON, last_seen=NOON, **fields)

    def listed(now: datetime) -> bool:
        return is_worker_listed(worker, now, WINDOWS, is_hardware=is_hardware)

    assert listed(NOON + shown_for - MOMENT)
    assert not listed(NOON + shown_for)
    assert worker_expires(worker, WINDOWS, is_hardware=is_hardware) == NOON + shown_for


def test_a_worker_never_seen_is_shown_only_when_declared_or_in_quarantine() -> None:
    unseen = RegistryWorker(KEY, NOON)

    assert not is_worker_listed(unseen, NOON, WINDOWS, is_hardware=True)
    spoken_of = replace(unseen, declared=NOON)
    assert is_worker_listed(spoken_of, NOON, WINDOWS, is_hardware=False)
    aside = replace(unseen, quarantine_until=NOON + HOUR)
    assert is_worker_listed(aside, NOON, WINDOWS, is_hardware=False)


MOMENTS = st.one_of(
    st.none(), st.integers(0, 60 * 24).map(lambda hours: NOON + timedelta(hours=hours))
)


@given(
    last_seen=MOMENTS,
    declared=MOMENTS,
    explicit_expires=MOMENTS,
    quarantine_until=MOMENTS,
    gone=MOMENTS,
    is_hardware=st.booleans(),
    now=st.integers(0, 120 * 24).map(lambda hours: NOON + timedelta(hours=hours)),
)
def test_no_row_goes_while_it_is_shown_nor_stays_for_ever(
    is_hardware: bool, now: datetime, **fields: Any
) -> None:
    worker = RegistryWorker(KEY, NOON, **fields)
    kept = kept_until(worker, WINDOWS)

    if is_worker_listed(worker, now, WINDOWS, is_hardware=is_hardware):
        assert now < kept
    latest = max([NOON, *(moment for moment in fields.values() if moment)])
    assert kept <= latest + 16 * DAY
    assert worker_expires(worker, WINDOWS, is_hardware=is_hardware) < kept
