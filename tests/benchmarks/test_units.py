"""Capacity units by DynamoDB's published rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest
from moto import mock_aws

from tests.benchmarks.units import (
    Meter,
    Units,
    item_bytes,
    read_units,
    tables_of,
    units_of,
    write_units,
)


def an_item(size: int) -> dict[str, Any]:
    """An item of exactly ``size`` bytes."""
    return {"k": {"S": "x" * (size - 1)}}


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "häuser"}, 7),
        ({"S": ""}, 0),
        ({"N": "0"}, 2),
        ({"N": "7"}, 2),
        ({"N": "1000"}, 2),
        ({"N": "1767323045.123"}, 8),
        ({"N": "-12.5"}, 4),
        ({"B": b"1234"}, 4),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["ab", "cde"]}, 5),
        ({"NS": ["1", "22"]}, 4),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + 1 + 2 + 1 + 2),
        ({"M": {}}, 3),
        ({"M": {"key": {"S": "ab"}}}, 3 + 1 + 3 + 2),
    ],
)
def test_a_value_is_as_large_as_the_guide_says(value: dict[str, Any], size: int) -> None:
    assert item_bytes({"name": value}) == len("name") + size


def test_a_type_that_nobody_knows_has_no_size() -> None:
    with pytest.raises(ValueError, match="XX"):
        item_bytes({"name": {"XX": "?"}})


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(0, True, 1), (0, False, 0.5), (4096, True, 1), (4097, True, 2), (4097, False, 1)],
)
def test_reads_are_rounded_up_to_four_kilobytes(size: int, consistent: bool, units: float) -> None:
    assert read_units(size, consistent=consistent) == units


@pytest.mark.parametrize(("size", "units"), [(0, 1), (1024, 1), (1025, 2)])
def test_writes_are_rounded_up_to_one_kilobyte(size: int, units: float) -> None:
    assert write_units(size) == units


def test_an_absent_item_costs_the_least_that_a_read_can() -> None:
    asked = {"TableName": "t", "Key": {}, "ConsistentRead": True}
    assert units_of("GetItem", asked, {}) == Units(read=1)
    assert units_of("GetItem", {**asked, "ConsistentRead": False}, {}) == Units(read=0.5)


def test_a_query_is_rounded_up_once_over_all_its_items() -> None:
    answer = {"Items": [an_item(1000)] * 9, "Count": 9, "ScannedCount": 9}
    asked = {"TableName": "t", "ConsistentRead": True}
    assert units_of("Query", asked, answer) == Units(read=3)


def test_a_batch_rounds_up_each_item_and_counts_absent_ones() -> None:
    keys: list[dict[str, Any]] = [{}, {}, {}]
    asked = {"RequestItems": {"t": {"Keys": keys, "ConsistentRead": True}}}
    answer = {"Responses": {"t": [an_item(100), an_item(5000)]}}
    assert units_of("BatchGetItem", asked, answer) == Units(read=1 + 2 + 1)


def test_keys_that_a_batch_left_unprocessed_cost_nothing_yet() -> None:
    asked = {"RequestItems": {"t": {"Keys": [{}, {}], "ConsistentRead": True}}}
    answer = {
        "Responses": {"t": [an_item(100)]},
        "UnprocessedKeys": {"t": {"Keys": [{}]}},
    }
    assert units_of("BatchGetItem", asked, answer) == Units(read=1)


@pytest.mark.parametrize(
    "answer",
    [{"Items": [], "Count": 0, "ScannedCount": 5}, {"Items": [], "Count": 1, "ScannedCount": 1}],
)
def test_what_the_answer_does_not_show_is_told(answer: dict[str, Any]) -> None:
    asked = {"TableName": "t"}
    if answer["Count"]:
        asked["ProjectionExpression"] = "k"
    assert not units_of("Query", asked, answer).exact


def test_a_put_costs_its_item() -> None:
    asked = {"TableName": "t", "Item": an_item(1500)}
    assert units_of("PutItem", asked, {}) == Units(write=2)


def test_an_update_costs_at_least_what_it_sets() -> None:
    asked = {
        "TableName": "t",
        "Key": {"k": {"S": "a"}},
        "ExpressionAttributeValues": {":0": {"S": "x" * 2000}},
    }
    assert units_of("UpdateItem", asked, {}) == Units(write=2, exact=False)


def test_a_transaction_costs_twice() -> None:
    asked = {
        "TransactItems": [
            {"Put": {"TableName": "t", "Item": an_item(1500)}},
            {"Put": {"TableName": "u", "Item": an_item(10)}},
        ]
    }
    assert units_of("TransactWriteItems", asked, {}) == Units(write=2 * (2 + 1))
    assert tables_of(asked) == ("t", "u")


def test_a_batch_of_writes_costs_each_of_them() -> None:
    asked = {
        "RequestItems": {
            "t": [
                {"PutRequest": {"Item": an_item(1500)}},
                {"DeleteRequest": {"Key": {"k": {"S": "a"}}}},
            ]
        }
    }
    assert units_of("BatchWriteItem", asked, {}) == Units(write=3, exact=False)


def test_other_operations_cost_no_units() -> None:
    assert units_of("DescribeTable", {"TableName": "t"}, {}) == Units()


@mock_aws
def test_a_meter_hears_of_every_call_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "dead")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "dead")
    session = botocore.session.get_session()
    client: Any = session.create_client("dynamodb", region_name="us-east-1")
    meter = Meter()
    meter.attach(client)
    client.create_table(
        TableName="t",
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    key = {"k": {"S": "one"}}
    client.put_item(TableName="t", Item={**key, "text": {"S": "x" * 3000}})
    with meter.recording() as mine:
        client.get_item(TableName="t", Key=key, ConsistentRead=True)
    client.get_item(TableName="t", Key=key)
    seen = [(call.operation, call.is_write, call.tables, call.units) for call in meter.calls[1:]]
    assert seen == [
        ("PutItem", True, ("t",), Units(write=3)),
        ("GetItem", False, ("t",), Units(read=1)),
        ("GetItem", False, ("t",), Units(read=0.5)),
    ]
    assert mine == [meter.calls[2]]


def test_a_meter_keeps_threads_apart() -> None:
    meter = Meter()
    asked = {"TableName": "t"}
    with meter.recording() as mine:
        meter._answered(SimpleNamespace(name="Query"), {}, {"asked": asked})
    meter._answered(SimpleNamespace(name="Query"), {}, {"asked": asked})
    assert len(mine) == 1
    assert len(meter.calls) == 2
