"""Questions to a synthesised template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Template = dict[str, Any]


def of_type(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """Logical id → properties of every resource of a type."""
    return {
        logical_id: resource.get("Properties", {})
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def function(template: Template, name: str) -> dict[str, Any]:
    """The properties of a function by its name without the stage's prefix."""
    [found] = [
        properties
        for properties in of_type(template, "AWS::Lambda::Function").values()
        if properties["FunctionName"].split("-", 2)[2] == name
    ]
    return found


def names(template: Template) -> list[str]:
    """Every function's name without the stage's prefix."""
    found = of_type(template, "AWS::Lambda::Function").values()
    return [properties["FunctionName"].split("-", 2)[2] for properties in found]


def environment(template: Template, name: str) -> dict[str, Any]:
    """A function's variables."""
    variables: dict[str, Any] = function(template, name)["Environment"]["Variables"]
    return variables


def statements(template: Template, name: str) -> Iterator[Mapping[str, Any]]:
    """Every statement of a function's role."""
    [role, _] = function(template, name)["Role"]["Fn::GetAtt"]
    for policy in of_type(template, "AWS::IAM::Role")[role]["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]


def actions(statement: Mapping[str, Any]) -> list[str]:
    """A statement's actions, always as a list."""
    found = statement["Action"]
    return [found] if isinstance(found, str) else list(found)


def resources(statement: Mapping[str, Any]) -> list[Any]:
    """A statement's resources, always as a list."""
    found = statement["Resource"]
    return list(found) if isinstance(found, list) else [found]


def allowed(template: Template, name: str) -> set[str]:
    """Every action a function's role allows anywhere."""
    return {action for found in statements(template, name) for action in actions(found)}
