"""Templates of deployments: the built-in one, and what a template makes of its parameters.

"Understand the structure and syntax of ARM templates" in the Azure documentation.  Read next:
``deployments``, which makes what a template asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.expressions import evaluate, invalid_template
from infra.local.clouds.arm.naming import group_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.clouds.arm.estate import Group
    from infra.local.clouds.arm.settings import Settings

Json = dict[str, Any]
_TEXT = {"type": "string"}
_DELETE = {"deleteOption": "Delete"}


@dataclass(frozen=True, slots=True)
class Planned:
    """A resource that a template asks for."""

    type: str
    name: str
    body: Json


def plan(template: Json, given: Json, *, subscription: str, group: Group) -> list[Planned]:
    """What a template makes of the given parameters (``{"name": {"value": ...}}``).

    Raises ``ArmError`` InvalidTemplate.
    """
    values = _parameters(template, given, _place(subscription, group))
    functions = _place(subscription, group) | {"parameters": _read(values, "parameter")}
    variables: Json = {}
    functions["variables"] = _read(variables, "variable")
    for name, value in (template.get("variables") or {}).items():
        variables[name] = evaluate(value, functions)
    planned = []
    for entry in template.get("resources") or []:
        if evaluate(entry.get("condition", True), functions):
            planned.append(_planned(entry, functions))
    return planned


def shown_parameters(template: Json, given: Json) -> Json:
    """The parameters as a deployment shows them: secure ones without their values."""
    declared = template.get("parameters") or {}
    shown: Json = {}
    for name, entry in given.items():
        kind = str(declared.get(name, {}).get("type", "String"))
        shown[name] = (
            {"type": kind}
            if kind.lower().startswith("secure")
            else {
                "type": kind,
                **entry,
            }
        )
    return shown


def built_in(settings: Settings) -> Json:
    """A template that makes a NIC and a machine; an address too, if that is set."""
    deletes = _DELETE if settings.template_delete_option else {}
    resources = [_nic(settings), _vm(deletes)]
    if settings.template_public_ip:
        resources.insert(0, _address())
    return {
        "contentVersion": "1.0.0.0",
        "parameters": {
            "vmName": _TEXT,
            "computerName": _TEXT,
            "location": _TEXT,
            "adminUsername": _TEXT,
            "adminPassword": {"type": "securestring"},
            "customData": {"type": "securestring", "defaultValue": ""},
            "tags": {"type": "object", "defaultValue": {}},
            "subnetId": _TEXT,
            "imageId": {"type": "string", "defaultValue": ""},
            "vmSize": {"type": "string", "defaultValue": "Standard_D2s_v5"},
            "priority": {"type": "string", "defaultValue": "Regular"},
        },
        "variables": {
            "nic": "[concat(parameters('vmName'), '-nic')]",
            "ip": "[concat(parameters('vmName'), '-ip')]",
            "isSpot": "[equals(parameters('priority'), 'Spot')]",
        },
        "resources": resources,
    }


def _planned(entry: Json, functions: Mapping[str, Callable[..., Any]]) -> Planned:
    kept = ("location", "tags", "properties", "sku", "zones", "identity", "plan")
    body = evaluate({key: entry[key] for key in kept if key in entry}, functions)
    return Planned(str(entry["type"]), str(evaluate(entry["name"], functions)), body)


def _parameters(template: Json, given: Json, functions: Mapping[str, Callable[..., Any]]) -> Json:
    declared = template.get("parameters") or {}
    if unknown := sorted(set(given) - set(declared)):
        raise invalid_template(
            f"The following parameters were supplied, but do not correspond to any parameters "
            f"defined in the template: '{', '.join(unknown)}'"
        )
    values = {}
    for name, definition in declared.items():
        if "value" in given.get(name, {}):
            values[name] = given[name]["value"]
        elif "defaultValue" in definition:
            values[name] = evaluate(definition["defaultValue"], functions)
        else:
            raise invalid_template(f"The value for the template parameter '{name}' is not provided")
    return values


def _place(subscription: str, group: Group) -> dict[str, Callable[..., Any]]:
    home = group_id(subscription, group.name)
    return {
        "resourceGroup": lambda: {"id": home, "name": group.name, "location": group.location},
        "subscription": lambda: {"subscriptionId": subscription},
        "resourceId": lambda *parts: f"{home}/providers/{parts[-2]}/{parts[-1]}",
    }


def _read(values: Mapping[str, Any], what: str) -> Callable[[str], Any]:
    def read(name: str) -> Any:
        if name not in values:
            raise invalid_template(f"The template {what} '{name}' is not found")
        return values[name]

    return read


def _address() -> Json:
    return {
        "type": "Microsoft.Network/publicIPAddresses",
        "name": "[variables('ip')]",
        "location": "[parameters('location')]",
        "tags": "[parameters('tags')]",
        "sku": {"name": "Standard"},
        "properties": {"publicIPAllocationMethod": "Static"},
    }


def _nic(settings: Settings) -> Json:
    configuration: Json = {"subnet": {"id": "[parameters('subnetId')]"}}
    if settings.template_public_ip:
        configuration["publicIPAddress"] = {
            "id": "[resourceId('Microsoft.Network/publicIPAddresses', variables('ip'))]"
        }
        if settings.template_delete_option:
            configuration["publicIPAddress"]["properties"] = _DELETE
    return {
        "type": "Microsoft.Network/networkInterfaces",
        "name": "[variables('nic')]",
        "location": "[parameters('location')]",
        "tags": "[parameters('tags')]",
        "properties": {"ipConfigurations": [{"name": "ipconfig", "properties": configuration}]},
    }


def _vm(deletes: Json) -> Json:
    nic = "[resourceId('Microsoft.Network/networkInterfaces', variables('nic'))]"
    return {
        "type": "Microsoft.Compute/virtualMachines",
        "name": "[parameters('vmName')]",
        "location": "[parameters('location')]",
        "tags": "[parameters('tags')]",
        "properties": {
            "hardwareProfile": {"vmSize": "[parameters('vmSize')]"},
            "priority": "[parameters('priority')]",
            "evictionPolicy": "[if(variables('isSpot'), 'Delete', null())]",
            "osProfile": {
                "computerName": "[parameters('computerName')]",
                "adminUsername": "[parameters('adminUsername')]",
                "adminPassword": "[parameters('adminPassword')]",
                "customData": "[parameters('customData')]",
            },
            "storageProfile": {
                "imageReference": {"id": "[parameters('imageId')]"},
                "osDisk": {
                    "name": "[concat(parameters('vmName'), '-os')]",
                    "createOption": "FromImage",
                    **deletes,
                },
            },
            "networkProfile": {
                "networkInterfaces": [{"id": nic, "properties": {"primary": True, **deletes}}]
            },
        },
    }
