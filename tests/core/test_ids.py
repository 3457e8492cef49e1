from __future__ import annotations

import json
import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.ids import (
    SLUGID,
    ExactFloat,
    derived_slugid,
    event_id,
    is_identifier,
    is_pool_id,
    jsonb_text,
    launch_config_id,
    order_id,
)

BODY = {
    "region": "us-west-2",
    "launchConfig": {"ImageId": "ami-1"},
    "capacityPerInstance": 1,
}


def exactly(text: str) -> object:
    return json.loads(text, parse_float=ExactFloat)


def test_a_launch_config_without_id_gets_the_one_of_the_reference() -> None:
    assert launch_config_id("pp/ee", BODY) == "lc-1db9b08793a264e9e74d"


def test_the_order_of_keys_does_not_change_an_id() -> None:
    backwards = dict(reversed(BODY.items()))

    assert launch_config_id("pp/ee", backwards) == "lc-1db9b08793a264e9e74d"


def test_pool_and_content_change_an_id() -> None:
    ids = {
        launch_config_id("pp/ee", BODY),
        launch_config_id("pp/ef", BODY),
        launch_config_id("pp/ee", BODY | {"capacityPerInstance": 2}),
        launch_config_id("pp/ee", BODY | {"capacityPerInstance": 1.0}),
    }

    assert len(ids) == 4


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("1", "1"),
        ("1.0", "1.0"),
        ("1.10", "1.10"),
        ("1e2", "100"),
        ("1E2", "100"),
        ("1.5e1", "15"),
        ("1.50e1", "15.0"),
        ("1e-3", "0.001"),
        ("100e-2", "1.00"),
        ("-0.0", "0.0"),
        ("-1.5", "-1.5"),
        ("true", "true"),
        ("null", "null"),
        ("[]", "[]"),
        ("{}", "{}"),
        ('[1, "a", [2.0]]', '[1, "a", [2.0]]'),
        ('{"bb": 1, "a": 2, "c": {"z": 0}}', '{"a": 2, "c": {"z": 0}, "bb": 1}'),
        ('{"é": 1, "zz": 2, "y": 3}', '{"y": 3, "zz": 2, "é": 1}'),
        (r'"a\"\\\n\u0001é\/"', '"a\\"\\\\\\n\\u0001é/"'),
    ],
)
def test_json_is_written_as_postgresql_writes_it(given_text: str, expected: str) -> None:
    assert jsonb_text(exactly(given_text)) == expected


def test_numbers_of_one_value_and_another_form_have_other_ids() -> None:
    one = [launch_config_id("pp/ee", {"n": exactly(text)}) for text in ("1", "1.0", "1e0")]

    assert one[0] == one[2] != one[1]
    assert launch_config_id("p/e", {"n": exactly("1e2")}) == launch_config_id("p/e", {"n": 100})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_the_text_means_the_same_value(value: object) -> None:
    assert json.loads(jsonb_text(value)) == value


@pytest.mark.parametrize("text", ["a", "A-b_9", "x" * 38])
def test_identifiers_are_words_of_up_to_38_characters(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize("text", ["", "x" * 39, "a.b", "a/b", "a b", "a\n", "é", "a#b"])
def test_other_texts_are_no_identifiers(text: str) -> None:
    assert not is_identifier(text)


@pytest.mark.parametrize("text", ["pp/ee", "P_-9/a", "a/b-1", "a" * 38 + "/" + "b" * 38])
def test_pool_ids_have_two_parts(text: str) -> None:
    assert is_pool_id(text)


@pytest.mark.parametrize(
    "text",
    ["pp", "pp/", "/ee", "pp/Ee", "pp/1e", "pp/e-", "pp/e_e", "a/b/c", "pp/ee\n", "a/" + "b" * 39],
)
def test_other_texts_are_no_pool_ids(text: str) -> None:
    assert not is_pool_id(text)


@given(st.lists(st.text(), max_size=3))
def test_a_derived_slugid_is_a_slugid_and_always_the_same(parts: list[str]) -> None:
    slugid = derived_slugid(*parts)

    assert re.fullmatch(SLUGID, slugid)
    assert slugid == derived_slugid(*parts)


def test_a_derived_slugid_is_a_random_uuid_to_whoever_decodes_it() -> None:
    from base64 import urlsafe_b64decode

    assert UUID(bytes=urlsafe_b64decode(derived_slugid("x") + "==")).version == 4


def test_names_of_different_things_differ() -> None:
    names = {
        order_id("a/b", "t", "lc", 0),
        order_id("a/b", "t", "lc", 1),
        order_id("a/b", "t2", "lc", 0),
        order_id("a/c", "t", "lc", 0),
        order_id("a/b", "t", "lc2", 0),
    }

    assert len(names) == 5
    assert event_id("a", "b", "c") != event_id("a", "bc")
    assert event_id("a", "b") != event_id("b", "a")


def test_an_order_id_is_a_client_token_and_a_label_everywhere() -> None:
    assert re.fullmatch(r"[a-z][-a-z0-9]{0,62}", order_id("A/b", "change#7", "LC_x", 3))
