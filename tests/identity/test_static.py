from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.identity.static import hash_secret, matches

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
