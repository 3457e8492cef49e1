"""What a function's role lets it do, held against every AWS call that its handler makes."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from infra.local.template import referred_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TRANSACTED = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
ACTIONS = {"SendMessageBatch": "SendMessage"}
SERVICES = {"sesv2": "ses"}
TARGETS = {
    "dynamodb": "TableName",
    "sqs": "QueueUrl",
    "secretsmanager": "SecretId",
    "s3": "Bucket",
}
"""Which parameter of a service's calls names what is used."""


class NotAllowedError(AssertionError):
    """A call that AWS would have refused."""


class Role:
    """The role of one function in a template; resources are told apart by logical id."""

    def __init__(self, template: Mapping[str, Any], function: Mapping[str, Any]) -> None:
        [role, _] = function["Role"]["Fn::GetAtt"]
        self._allowed: dict[tuple[str, str], set[str]] = defaultdict(set)
        for policy in template["Resources"][role]["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                self._allow(statement)

    def _allow(self, statement: Mapping[str, Any]) -> None:
        given = statement["Action"]
        targets = {*referred_to(statement["Resource"]), *_refs(statement["Resource"])}
        keys = statement.get("Condition", {}).get("ForAllValues:StringLike", {})
        for action in [given] if isinstance(given, str) else given:
            for target in (*targets, "*"):
                self._allowed[action, target].add(keys.get("dynamodb:LeadingKeys", "*"))

    def check(
        self, service: str, operation: str, params: Mapping[str, Any], ids: Mapping[str, str]
    ) -> None:
        """Raises ``NotAllowedError``; ``ids`` gives the logical id of a name, URL or ARN."""
        for action, name, partition in _needed(service, operation, params):
            target = ids.get(name, "*") if name else "*"
            patterns = self._allowed.get((action, target), set())
            if not any(fnmatchcase(partition, pattern) for pattern in patterns):
                raise NotAllowedError(f"{action} on {name or 'anything'} {partition}")


def _needed(
    service: str, operation: str, params: Mapping[str, Any]
) -> Iterator[tuple[str, str | None, str]]:
    """Actions that a call takes, each with the name of what it is done to, and the partition."""
    match operation:
        case "TransactWriteItems":
            for item in params["TransactItems"]:
                for kind, given in item.items():
                    yield f"dynamodb:{TRANSACTED[kind]}", given["TableName"], _partition(given)
        case "BatchGetItem" | "BatchWriteItem":
            for table in params["RequestItems"]:
                yield f"dynamodb:{operation}", table, ""
        case "PutEvents":
            for entry in params["Entries"]:
                yield f"events:{operation}", entry["EventBusName"], ""
        case _:
            target = params[TARGETS[service]] if service in TARGETS else None
            name = SERVICES.get(service, service)
            yield f"{name}:{ACTIONS.get(operation, operation)}", target, _partition(params)


def _partition(params: Mapping[str, Any]) -> str:
    """The key of the partition that an item of ``pools`` or ``providers`` is put or deleted in."""
    key = params.get("Item", params.get("Key", {}))
    if not isinstance(key, dict):  # of an object in a bucket
        return ""
    is_provider = "provider_id" in key and "sk" not in key
    return str(key.get("provider_id" if is_provider else "worker_pool_id", {}).get("S", ""))


def _refs(value: Any) -> Iterator[str]:
    """Logical ids that are referred to as a whole."""
    match value:
        case {"Ref": name}:
            yield name
        case dict():
            for inner in value.values():
                yield from _refs(inner)
        case list():
            for inner in value:
                yield from _refs(inner)
