from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW
from worker_manager.identity.static import (
    cut_short,
    first_identity,
    hash_secret,
    is_valid,
    matches,
    previous_until,
    rotated,
)

if TYPE_CHECKING:
    from worker_manager.core.model import Json

SECRET = "pE3sVxkwQ8mZ1a-bC_dEfGhIjKlMnOpQrStUvWxYz012"


def test_a_secret_matches_what_was_stored_of_it() -> None:
    stored = hash_secret(SECRET, "salt")
    assert matches(SECRET, stored)
    assert SECRET not in stored


@pytest.mark.parametrize("other", ["", SECRET[:-1], SECRET + "x", SECRET.lower(), "\ud800", "ü"])
def test_another_secret_does_not(other: str) -> None:
    assert not matches(other, hash_secret(SECRET, "salt"))


def test_nothing_matches_where_nothing_is_stored() -> None:
    assert not matches(SECRET, None)
    assert not matches("", None)


def test_the_same_secret_looks_different_under_another_salt() -> None:
    first, second = hash_secret(SECRET, "one"), hash_secret(SECRET, "two")
    assert first != second
    assert first.rpartition("$")[2] != second.rpartition("$")[2]


def test_what_is_stored_stays_readable_in_later_versions() -> None:
    assert matches(
        "a" * 44,
        "sha256$s1$26cb9f9d3d101a1a2503ebeeb2dca3d652ea42e56070d8b9215c95c79bd7d095",
    )


@pytest.mark.parametrize("salt", ["", "a$b", "ü"])
def test_a_salt_that_could_not_be_read_back_is_refused(salt: str) -> None:
    with pytest.raises(ValueError, match="salt"):
        hash_secret(SECRET, salt)


@pytest.mark.parametrize("stored", ["", "x", "sha256$only", "md5$salt$00", "a$b$c$d", "sha256$$0"])
def test_a_stored_text_that_is_not_ours_is_a_fault_and_no_match(stored: str) -> None:
    with pytest.raises(ValueError):
        matches(SECRET, stored)


@given(st.text(), st.text(), st.text("ab-_", min_size=1))
def test_only_the_same_secret_matches(one: str, other: str, salt: str) -> None:
    assert matches(other, hash_secret(one, salt)) is (one == other)


HOUR = timedelta(hours=1)
_STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 2)), max_size=8
)


@given(_STEPS)
def test_whatever_is_rotated_only_the_latest_two_are_valid_and_the_older_for_its_time(
    steps: list[tuple[str, int, int]],
) -> None:
    """Steps: the next secret, for how many hours the one before stays, how many hours pass."""
    identity, now = first_identity("first", salt="0"), NOW
    current, previous, until = "first", "", NOW
    for number, (secret, stays, passed) in enumerate(steps, 1):
        identity = rotated(identity, secret, salt=str(number), until=now + stays * HOUR, now=now)
        if secret != current:
            current, previous, until = secret, current, now + stays * HOUR
        now += passed * HOUR
        expected = {current} | ({previous} if until > now else set())
        valid = {one for one in ("first", "a", "b", "c", "") if is_valid(one, identity, now)}
        assert valid == expected
        assert previous_until(identity, now) == (until if until > now else None)


@pytest.mark.parametrize(("hours", "left"), [(-1, None), (0, None), (1, 1), (2, 2), (3, 2)])
def test_the_end_of_a_previous_secret_may_come_earlier_and_never_later(
    hours: int, left: int | None
) -> None:
    identity = _of_two(until=2)
    after = cut_short(identity, until=NOW + hours * HOUR, now=NOW)
    assert previous_until(after, NOW) == (None if left is None else NOW + left * HOUR)
    assert is_valid("old", after, NOW) is (left is not None)
    assert is_valid("new", after, NOW)


def test_where_there_is_no_previous_secret_none_ends() -> None:
    identity = first_identity("first", salt="0")
    assert cut_short(identity, until=NOW + HOUR, now=NOW) == identity
    assert cut_short({}, until=NOW, now=NOW) == {}


def _of_two(*, until: int) -> Json:
    identity = first_identity("old", salt="0")
    return rotated(identity, "new", salt="1", until=NOW + until * HOUR, now=NOW)
