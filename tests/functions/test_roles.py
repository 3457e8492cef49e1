"""The check of roles refuses what AWS would."""

from __future__ import annotations

import pytest

from tests.functions.deployed import local_template
from tests.functions.roles import NotAllowedError, Role

TABLE = "pools"


@pytest.mark.parametrize("partition", ["proj-x/pool-1", "proj-x/audit"])
def test_the_function_for_machines_may_put_entries_of_audit_trails_and_no_more(
    partition: str,
) -> None:
    template = local_template()
    [function] = [
        found["Properties"]
        for found in template["Resources"].values()
        if found["Properties"].get("FunctionName") == "wm-local-workers-api"
    ]
    role = Role(template, function)
    ids = {TABLE: function["Environment"]["Variables"]["WM_TABLE_POOLS"]["Ref"]}

    def put(key: str) -> None:
        put = {"TableName": TABLE, "Item": {"worker_pool_id": {"S": key}}}
        role.check("dynamodb", "TransactWriteItems", {"TransactItems": [{"Put": put}]}, ids)

    put(f"{partition}#audit")
    with pytest.raises(NotAllowedError, match="PutItem"):
        put(partition)
