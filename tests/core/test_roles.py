from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from worker_manager.core.roles import Role, Roles
from worker_manager.core.scopes import AllOf, covers, satisfies


def roles_of(**scopes_by_id: list[str]) -> Roles:
    return Roles(tuple(Role(role_id, tuple(scopes)) for role_id, scopes in scopes_by_id.items()))


WORKER_POOLS = Roles(
    (
        Role("worker-pool:*", ("queue:claim:<..>", "secrets:get:<..>/public", "all:pools")),
        Role("worker-pool:proj/ci", ("special:ci",)),
        Role("admin", ("*",)),
        Role("team:*", ("assume:repo:<..>:branch", "assume:everyone")),
        Role("repo:*", ("index:<..>",)),
        Role("everyone", ("ping",)),
    )
)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (["nothing"], ["nothing"]),
        (["assume:unknown"], ["assume:unknown"]),
        (["assume:everyone"], ["assume:everyone", "ping"]),
        (["assume:everyon"], ["assume:everyon"]),
        (
            ["assume:worker-pool:proj/x"],
            [
                "all:pools",
                "assume:worker-pool:proj/x",
                "queue:claim:proj/x",
                "secrets:get:proj/x/public",
            ],
        ),
        (
            ["assume:worker-pool:proj/ci"],
            [
                "all:pools",
                "assume:worker-pool:proj/ci",
                "queue:claim:proj/ci",
                "secrets:get:proj/ci/public",
                "special:ci",
            ],
        ),
        (
            ["assume:worker-pool:proj/*"],
            [
                "all:pools",
                "assume:worker-pool:proj/*",
                "queue:claim:proj/*",
                "secrets:get:proj/*",
                "special:ci",
            ],
        ),
        (
            ["assume:worker-pool:"],
            ["all:pools", "assume:worker-pool:", "queue:claim:", "secrets:get:/public"],
        ),
        (
            ["assume:work*"],
            [
                "all:pools",
                "assume:work*",
                "queue:claim:*",
                "secrets:get:*",
                "special:ci",
            ],
        ),
        (["assume:admin"], ["*"]),
        (["a*"], ["*"]),
        (
            ["assume:team:t"],
            [
                "assume:everyone",
                "assume:repo:t:branch",
                "assume:team:t",
                "index:t:branch",
                "ping",
            ],
        ),
        (["b*"], ["b*"]),
    ],
)
def test_expansion_adds_the_scopes_of_all_roles_held(held: list[str], expected: list[str]) -> None:
    assert WORKER_POOLS.expand(held) == tuple(expected)


@pytest.mark.parametrize("prefix", ["*", "a*", "assume*", "assume:*"])
def test_a_star_within_the_word_assume_gains_every_role(prefix: str) -> None:
    roles = roles_of(one=["x"], **{"two:*": ["y:<..>:z"]})
    assert satisfies(roles.expand([prefix]), AllOf(("x", "y:*")))


def test_a_parameter_means_nothing_in_a_role_without_prefix() -> None:
    assert roles_of(one=["x:<..>"]).expand(["assume:one"]) == ("assume:one", "x:<..>")


def test_roles_that_hold_each_other_without_a_parameter_are_fine() -> None:
    roles = roles_of(one=["assume:two", "x"], two=["assume:one", "y"])
    assert roles.expand(["assume:one"]) == ("assume:one", "assume:two", "x", "y")


@pytest.mark.parametrize(
    "scopes_by_id",
    [
        {"a*": ["assume:a<..>x"]},
        {"a*": ["assume:axx<..>"]},
        {"a*": ["assume:b<..>"], "b*": ["assume:ax<..>"]},
        {"a*": ["assume:b<..>"], "b*": ["assume:c"], "c": ["assume:a*"]},
        {"a*": ["<..>"]},
        {"a*": ["assume:<..>"]},
    ],
)
def test_roles_that_would_grow_without_end_are_refused(scopes_by_id: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="leads back"):
        roles_of(**scopes_by_id)


@pytest.mark.parametrize(
    ("role_id", "scope"),
    [
        ("", "x"),
        ("ü", "x"),
        ("a\n", "x"),
        ("a", "x**"),
        ("a", "ü"),
        ("a*", "x:<..>:<..>"),
        ("a*", "x:*<..>"),
    ],
)
def test_a_role_that_cannot_be_expanded_safely_is_refused(role_id: str, scope: str) -> None:
    with pytest.raises(ValueError, match="role"):
        Role(role_id, (scope,))


def test_the_same_role_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        Roles((Role("a", ("x",)), Role("a", ("y",))))


ids = st.sampled_from(["a", "b", "ab", "a*", "b*", "ab*", "*"])
templates = st.sampled_from(
    ["x", "y*", "q:<..>", "q:<..>/z", "assume:a", "assume:a*", "assume:b:<..>", "assume:ab<..>c"]
)
role_tables = st.dictionaries(ids, st.lists(templates, max_size=3), max_size=5)
held_scopes = st.sampled_from(
    ["assume:a", "assume:ab", "assume:abc", "assume:b:q", "assume:a*", "assume:*", "as*", "x"]
)


def roles_or_discard(table: dict[str, list[str]]) -> Roles:
    try:
        return roles_of(**table)
    except ValueError:
        assume(False)
        raise


@given(role_tables, st.lists(held_scopes, max_size=4))
def test_expansion_ends_keeps_what_was_held_and_adds_nothing_twice(
    table: dict[str, list[str]], held: list[str]
) -> None:
    roles = roles_or_discard(table)
    expanded = roles.expand(held)
    assert satisfies(expanded, AllOf(tuple(held)))
    assert roles.expand(expanded) == expanded


@given(role_tables, held_scopes, held_scopes)
def test_who_holds_a_broader_scope_gains_at_least_as_much(
    table: dict[str, list[str]], broad: str, narrow: str
) -> None:
    assume(covers(broad, narrow))
    roles = roles_or_discard(table)
    assert satisfies(roles.expand([broad]), AllOf(roles.expand([narrow])))
