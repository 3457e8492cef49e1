"""Names as labels, there and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.google.wire import an_order
from worker_manager.providers.google.labels import (
    decode,
    encode,
    launch_config_of,
    order_labels,
    order_of,
    pool_of,
)


@given(st.text(alphabet="abXYZ019_-./é", max_size=38).filter(lambda t: len(t.encode()) <= 38))
def test_any_name_of_ours_becomes_a_label_value_and_comes_back(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9_-]{0,63}", encode(name))
    assert decode(encode(name)) == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lc-6350aa384f6ab04fc4d1", "lc-6350aa384f6ab04fc4d1"),
        ("", ""),
        ("0_x", "0_gbpxq"),
        ("A" * 38, "0_" + "ifaucqkbifaucqkbifaucqkbifaucqkbifaucqkbifaucqkbifaucqkbifauc"),
    ],
)
def test_a_value_that_may_stand_stands_and_any_other_is_spelt_in_base32(
    name: str, value: str
) -> None:
    assert encode(name) == value


@pytest.mark.parametrize("value", ["0_1", "0_!", "0_77777777"])
def test_a_value_that_somebody_spoilt_is_left_as_it_is(value: str) -> None:
    assert decode(value) == value


def test_an_orders_labels_say_where_its_machines_come_from() -> None:
    order = an_order(pool_id="Proj_1/" + "w" * 38, launch_config_id="LC.1")
    labels = order_labels(order)

    assert pool_of(labels) == order.pool_id
    assert launch_config_of(labels) == "LC.1"
    assert order_of(labels) == order.order_id
    assert labels["worker-manager-deployment"] == "wm-test"
    assert labels["worker-manager-ordered"] == "1936785600"
    assert labels["created-by"] == "taskcluster-wm-google"
    assert labels["managed-by"] == "taskcluster"
    assert labels["owner"] == "owner-example-com"
    assert labels["worker-pool-id"] == "proj-1-" + "w" * 38
    assert labels["launch-config-id"] == "lc-1"
    assert all(re.fullmatch(r"[a-z0-9_-]{0,63}", value) for value in labels.values())
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) for key in labels)


@pytest.mark.parametrize("labels", [{}, {"worker-manager-provisioner": "proj"}])
def test_labels_without_a_pool_name_none(labels: dict[str, str]) -> None:
    assert pool_of(labels) is None
    assert launch_config_of(labels) is None
    assert order_of(labels) is None
