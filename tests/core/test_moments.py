"""Times on the wire: what they mean, and what means no time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.moments import from_wire, to_wire, whole_milliseconds

MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(MOMENTS)
def test_a_time_cut_to_milliseconds_comes_back_as_it_was(moment: datetime) -> None:
    cut = whole_milliseconds(moment)
    assert from_wire(to_wire(cut)) == cut


@given(MOMENTS, MOMENTS)
def test_texts_sort_as_their_times_do(one: datetime, other: datetime) -> None:
    first, second = sorted((whole_milliseconds(one), whole_milliseconds(other)))
    assert to_wire(first) <= to_wire(second)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "2026-01-02T03:04:05",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_what_means_no_time_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_wire(text)
