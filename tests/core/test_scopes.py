from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.scopes import (
    AllOf,
    AnyOf,
    Expression,
    covers,
    is_grantable_scope,
    is_valid_scope,
    missing_scopes,
    normalise,
    required_scopes,
    satisfies,
)

scopes = st.text(alphabet="ab:*", max_size=5)
scope_lists = st.lists(scopes, max_size=8)


@pytest.mark.parametrize(
    ("held", "required", "expected"),
    [
        ("queue:list", "queue:list", True),
        ("queue:list", "queue:lis", False),
        ("queue:list", "queue:lists", False),
        ("queue:*", "queue:list", True),
        ("queue:*", "queue:", True),
        ("queue:*", "queue", False),
        ("*", "anything at all", True),
        ("*", "", True),
        ("", "a", False),
        ("a*b", "axb", False),
        ("a*b", "a*b", True),
        ("a*", "a*", True),
        ("a*", "ab*", True),
        ("ab*", "a*", False),
        ("ab", "a*", False),
        ("a**", "a*b", True),
        ("a**", "ab", False),
    ],
)
def test_only_a_star_at_the_end_covers_more_than_itself(
    held: str, required: str, expected: bool
) -> None:
    assert covers(held, required) is expected


@pytest.mark.parametrize(
    ("held", "required", "missing"),
    [
        (["a"], "a", ()),
        (["a"], "b", ("b",)),
        ([], "a", ("a",)),
        (["a", "b*"], AllOf(("a", "bc")), ()),
        (["a"], AllOf(("a", "b", "c")), ("b", "c")),
        ([], AllOf(()), ()),
        (["a"], AnyOf(("b", "a")), ()),
        (["c"], AnyOf(("b", "a")), ("b", "a")),
        (["a"], AllOf(("a", AnyOf(("b", AllOf(("a", "c")))))), ("b", "c")),
        (["a", "c"], AllOf(("a", AnyOf(("b", AllOf(("a", "c")))))), ()),
    ],
)
def test_what_is_missing_is_named_in_order(
    held: list[str], required: Expression, missing: tuple[str, ...]
) -> None:
    assert missing_scopes(held, required) == missing
    assert satisfies(held, required) is (not missing)


def test_an_empty_choice_is_never_satisfied_though_nothing_is_missing() -> None:
    assert not satisfies(["*"], AnyOf(()))
    assert missing_scopes(["*"], AnyOf(())) == ()


def test_held_scopes_may_be_any_iterable_even_one_that_can_be_read_once() -> None:
    assert satisfies(iter(["a", "b"]), AllOf(("b", "a")))


def test_an_expression_lists_every_scope_it_names() -> None:
    assert required_scopes(AllOf(("a", AnyOf(("b", "c")), "a"))) == ("a", "b", "c", "a")


@pytest.mark.parametrize(
    ("given_scopes", "expected"),
    [
        ([], ()),
        (["b", "a", "b"], ("a", "b")),
        (["ab", "a*", "a", "b"], ("a*", "b")),
        (["a*", "ab*", "abc"], ("a*",)),
        (["a:b", "a", "a!"], ("a", "a!", "a:b")),
        (["ab", "ab*", "a"], ("a", "ab*")),
        (["x", "*", "assume:y"], ("*",)),
    ],
)
def test_normal_form_is_sorted_and_drops_what_a_star_covers(
    given_scopes: list[str], expected: tuple[str, ...]
) -> None:
    assert normalise(given_scopes) == expected


@given(scope_lists, scopes)
def test_normal_form_grants_exactly_what_the_original_did(held: list[str], asked: str) -> None:
    assert satisfies(normalise(held), asked) is satisfies(held, asked)


@given(scope_lists)
def test_normal_form_is_its_own_normal_form_and_has_nothing_to_spare(held: list[str]) -> None:
    normal = normalise(held)
    assert normalise(reversed(normal)) == normal
    assert not any(covers(a, b) for a in normal for b in normal if a is not b)


@given(scopes, scopes, scopes)
def test_covering_is_transitive(a: str, b: str, c: str) -> None:
    if covers(a, b) and covers(b, c):
        assert covers(a, c)


@pytest.mark.parametrize("scope", ["", "a b", "~!@#$%^&*()", "assume:worker-pool:a/b"])
def test_printable_ascii_is_a_valid_scope(scope: str) -> None:
    assert is_valid_scope(scope)


@pytest.mark.parametrize("scope", ["ü", "a\n", "\x7f", "\x1f", 3, None, ["a"]])
def test_anything_else_is_no_scope(scope: object) -> None:
    assert not is_valid_scope(scope)
    assert not is_grantable_scope(scope)


def test_two_stars_at_the_end_are_valid_to_ask_but_not_to_grant() -> None:
    assert is_valid_scope("a**")
    assert not is_grantable_scope("a**")
    assert is_grantable_scope("a*")
