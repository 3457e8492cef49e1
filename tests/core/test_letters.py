"""What a mail says, and that nobody can make it say anything in a header."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_pool
from worker_manager.core.digests import Topic
from worker_manager.core.error_groups import OTHER, Likeness
from worker_manager.core.letters import LONGEST_SUBJECT, letter, on_one_line

ROOT = "https://tc.example.com"


def a_topic(**overrides: Any) -> Topic:
    values: dict[str, Any] = {
        "first": NOW,
        "last": NOW,
        "waiting": 1,
        "description": "none left",
        "error_id": "e-1",
    }
    alike = {
        name: overrides.pop(name, given)
        for name, given in Likeness("no-capacity", "Instance Creation Error", OTHER, "lc-a")
        ._asdict()
        .items()
    }
    return Topic(Likeness(**alike), **(values | overrides))


def test_a_mail_says_what_happened_how_often_and_where_to_look_and_how_to_stop_it() -> None:
    later = NOW + timedelta(hours=2)
    topics = [a_topic(waiting=7, last=later, told=NOW), a_topic(title="Other", error_id="e-2")]

    written = letter(a_pool(), topics, root_url=ROOT)

    assert written.to == "owner@example.com"
    assert written.subject == "Worker pool proj-x/pool-1: Instance Creation Error (and 1 more)"
    assert written.text == (
        "Worker pool proj-x/pool-1 (provider aws) has errors.\n\n"
        "Instance Creation Error (no-capacity, launch config lc-a)\n"
        "  7 times, first at 2026-01-02 03:04 UTC, last at 2026-01-02 05:04 UTC; error id e-1\n"
        "  (since the last mail about it, of 2026-01-02 03:04 UTC)\n"
        "  none left\n\n"
        "Other (no-capacity, launch config lc-a)\n"
        "  once, at 2026-01-02 03:04 UTC; error id e-2\n"
        "  none left\n\n"
        "All errors of this pool:\n"
        "https://tc.example.com/api/worker-manager/v1/worker-pool-errors/proj-x%2Fpool-1\n\n"
        "Equal errors are counted from now on, and told in one mail after an hour or more.\n"
        "No more mail comes once the pool's emailOnError is false.\n"
    )


def test_a_code_is_said_where_there_is_one() -> None:
    written = letter(a_pool(), [a_topic(code="Insufficient\nCapacity")], root_url=ROOT)

    said = "(no-capacity, code Insufficient Capacity, launch config lc-a)"
    assert f"Instance Creation Error {said}\n" in written.text


def test_an_error_of_no_launch_config_names_none() -> None:
    written = letter(a_pool(), [a_topic(launch_config_id=None)], root_url=ROOT)

    assert "Instance Creation Error (no-capacity)\n" in written.text


@pytest.mark.parametrize(
    "line_break", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x00"]
)
def test_a_title_with_a_line_break_adds_no_header(line_break: str) -> None:
    title = f"Oops{line_break}Bcc: everybody@example.com"

    written = letter(a_pool(), [a_topic(title=title)], root_url=ROOT)

    assert written.subject == "Worker pool proj-x/pool-1: Oops Bcc: everybody@example.com"


@given(st.text(max_size=400), st.integers(1, 3))
def test_a_subject_is_one_short_printable_line_whatever_the_title_is(title: str, n: int) -> None:
    written = letter(a_pool(), [a_topic(title=title)] * n, root_url=ROOT)

    assert written.subject.isprintable()
    assert len(written.subject) <= LONGEST_SUBJECT
    assert len(written.subject.splitlines()) == 1


def test_a_long_description_keeps_its_lines_but_no_control_characters() -> None:
    written = letter(
        a_pool(), [a_topic(description="first\n\n\x1b[31msecond\r\nthird")], root_url=ROOT
    )

    assert "\n  first\n  [31msecond\n  third\n" in written.text


def test_a_lone_surrogate_cannot_keep_a_mail_from_being_encoded() -> None:
    assert on_one_line("a\ud800b") == "a b"
    written = letter(a_pool(), [a_topic(description="x\ud800y", title="\udfff")], root_url=ROOT)
    assert written.text.encode()
    assert written.subject.encode()
