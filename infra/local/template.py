"""Reads the synthesised template: what answers where, and what the emulator wants otherwise.

Pure functions over the template's JSON.  Read next: ``deploy`` and ``front``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Template = Mapping[str, Any]


@dataclass(frozen=True)
class Route:
    """A path of the REST API, by segments, and the function that answers it."""

    segments: tuple[str, ...]
    function_name: str

    @property
    def resource(self) -> str:
        """The path as API Gateway writes it."""
        return "/" + "/".join(self.segments)


@dataclass(frozen=True)
class GatewayAnswer:
    """What the gateway says in place of a function."""

    status: int
    headers: Mapping[str, str]
    body: str


def _resources(template: Template, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for logical_id, resource in template["Resources"].items():
        if resource["Type"] == kind:
            yield logical_id, resource.get("Properties", {})


def function_names(template: Template) -> dict[str, str]:
    """Logical id → exact name of every function."""
    found = _resources(template, "AWS::Lambda::Function")
    return {logical_id: properties["FunctionName"] for logical_id, properties in found}


def table_names(template: Template) -> list[str]:
    """The exact name of every table."""
    return [found["TableName"] for _, found in _resources(template, "AWS::DynamoDB::Table")]


def layer_keys(template: Template) -> set[str]:
    """The object keys under which the layers' content is uploaded."""
    found = _resources(template, "AWS::Lambda::LayerVersion")
    return {properties["Content"]["S3Key"] for _, properties in found}


def routes(template: Template) -> list[Route]:
    """Every path with a method, as the REST API resource tree has it."""
    names = function_names(template)
    tree = dict(_resources(template, "AWS::ApiGateway::Resource"))

    def segments(reference: Mapping[str, Any]) -> tuple[str, ...]:
        node = tree.get(reference.get("Ref", ""))
        return (*segments(node["ParentId"]), node["PathPart"]) if node else ()

    return [
        Route(segments(method["ResourceId"]), names[function])
        for _, method in _resources(template, "AWS::ApiGateway::Method")
        for function in referred_to(method["Integration"]["Uri"])
        if function in names
    ]


def referred_to(value: Any) -> Iterator[str]:
    """The logical ids whose attributes a value is made of."""
    if isinstance(value, Mapping):
        if "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        for inner in value.values():
            yield from referred_to(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from referred_to(inner)


def gateway_answers(template: Template) -> dict[str, GatewayAnswer]:
    """What the gateway says when it refuses, by the kind of refusal."""
    prefix = "gatewayresponse.header."
    return {
        properties["ResponseType"]: GatewayAnswer(
            status=int(properties["StatusCode"]),
            headers={
                name.removeprefix(prefix): value.strip("'")
                for name, value in properties["ResponseParameters"].items()
            },
            body=properties["ResponseTemplates"]["application/json"],
        )
        for _, properties in _resources(template, "AWS::ApiGateway::GatewayResponse")
    }


def for_emulator(template: Template) -> dict[str, Any]:
    """The template as the emulator understands it; nothing else is changed.

    - CloudFormation's ``Rules`` are unknown to it.
    - Its ``Ref`` of a secret is the name where AWS's is the ARN.
    - Loopback speaks plain HTTP, which policies of queues and buckets refuse: those statements go.
    """
    secrets = {logical_id for logical_id, _ in _resources(template, "AWS::SecretsManager::Secret")}

    def mended(value: Any) -> Any:
        if isinstance(value, Mapping):
            if value.keys() == {"Ref"} and value["Ref"] in secrets:
                return {"Fn::GetAtt": [value["Ref"], "Id"]}
            return {key: mended(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [mended(inner) for inner in value if not _demands_tls(inner)]
        return value

    kept = {key: mended(value) for key, value in template.items() if key != "Rules"}
    kept["Resources"] = {
        logical_id: resource
        for logical_id, resource in kept["Resources"].items()
        if _statements(resource) != []
    }
    return kept


def _demands_tls(statement: Any) -> bool:
    if not isinstance(statement, Mapping):
        return False
    return bool(statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}})


def _statements(resource: Mapping[str, Any]) -> Any:
    """The statements of a policy resource; ``None`` for any other."""
    return resource.get("Properties", {}).get("PolicyDocument", {}).get("Statement")
