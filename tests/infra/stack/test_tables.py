"""The tables, against the models that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.stack.reading import of_type
from worker_manager.store import action_items, queue_table, registry_items, tables

if TYPE_CHECKING:
    from pynamodb.models import Model

Template = dict[str, Any]

MODELS: dict[str, type[Model]] = {
    model.Meta.table_name: model
    for model in (
        tables.PoolItem,
        tables.ProviderItem,
        tables.WorkerItem,
        tables.PoolErrorItem,
        tables.HealthItem,
        queue_table.QueueItem,
        registry_items.RegistryItem,
        action_items.ActionItem,
    )
}


def _tables(template: Template) -> dict[str, dict[str, Any]]:
    found = of_type(template, "AWS::DynamoDB::Table").values()
    return {table["TableName"].split("-", 2)[2]: table for table in found}


def _keys(schema: list[dict[str, str]]) -> dict[str, str]:
    return {key["KeyType"]: key["AttributeName"] for key in schema}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_table_has_the_keys_of_its_model(local_template: Template, name: str) -> None:
    table = _tables(local_template)[name]
    model = MODELS[name]

    assert _keys(table["KeySchema"]) == {
        "HASH": model._hash_keyname,
        "RANGE": model._range_keyname,
    }
    assert {found["AttributeType"] for found in table["AttributeDefinitions"]} == {"S"}


def test_every_table_has_a_model(local_template: Template) -> None:
    assert set(_tables(local_template)) == set(MODELS)


def test_live_workers_have_a_local_index_with_what_planning_needs(
    local_template: Template,
) -> None:
    [index] = _tables(local_template)["workers"]["LocalSecondaryIndexes"]

    assert index["IndexName"] == tables.LiveIndex.Meta.index_name
    assert _keys(index["KeySchema"]) == {"HASH": "worker_pool_id", "RANGE": "live"}
    assert index["Projection"]["ProjectionType"] == "INCLUDE"
    assert len(index["Projection"]["NonKeyAttributes"]) <= 20  # DynamoDB's limit
    assert sorted(index["Projection"]["NonKeyAttributes"]) == sorted(tables.LIVE_ATTRIBUTES)


def test_tables_cost_by_use_and_can_be_restored(local_template: Template) -> None:
    for table in _tables(local_template).values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
        assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


def test_tables_outlive_the_production_stack(
    prod_template: Template, local_template: Template
) -> None:
    def policies(template: Template) -> set[str]:
        return {
            resource["DeletionPolicy"]
            for resource in template["Resources"].values()
            if resource["Type"] == "AWS::DynamoDB::Table"
        }

    assert policies(prod_template) == {"Retain"}
    assert policies(local_template) == {"Delete"}
