"""Calls that tests of the simulated Azure make again and again, through the real SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.policies import RetryPolicy, SansIOHTTPPolicy
from azure.core.rest import HttpRequest
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.clouds.arm import ArmCloud
    from tests.infra.virtual_clock import VirtualClock

SUBSCRIPTION = "00000000-0000-4000-8000-000000000000"
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/"
    "vn/subnets/sn"
)
TEMPLATE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/template-spec/providers/Microsoft.Resources/"
    "templateSpecs/machines/versions/1.0"
)
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/rg"


class _Token:
    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken("token", 4_000_000_000)


class _AllowHttp(SansIOHTTPPolicy[Any, Any]):
    def on_request(self, request: Any) -> None:
        request.context.options.setdefault("enforce_https", False)


class Sent(NamedTuple):
    """What was answered to a request."""

    status: int
    body: Any
    headers: dict[str, str]


class Arm:
    """The SDKs' clients on a server, and the cloud behind it."""

    def __init__(self, url: str) -> None:
        options: dict[str, Any] = {
            "base_url": url,
            "per_call_policies": [_AllowHttp()],
            "retry_policy": RetryPolicy.no_retries(),
        }
        token: Any = _Token()
        self.url = url
        self.compute = ComputeManagementClient(token, SUBSCRIPTION, **options)
        self.network = NetworkManagementClient(token, SUBSCRIPTION, **options)
        self.cloud: ArmCloud
        self.clock: VirtualClock

    def close(self) -> None:
        """Close the clients."""
        self.compute.close()
        self.network.close()

    def put(self, name: str = "vm-1", **overrides: Any) -> Any:
        """Ask for a machine, do not wait; the machine as it was answered."""
        body: Any = machine(**overrides)
        machines = self.compute.virtual_machines
        return machines.begin_create_or_update("rg", name, body, polling=False).result()

    def delete(self, name: str = "vm-1", **options: Any) -> None:
        """Ask for a machine's end, do not wait."""
        self.compute.virtual_machines.begin_delete("rg", name, polling=False, **options)

    def statuses(self, name: str = "vm-1") -> list[str]:
        """The codes of a machine's instance view."""
        view = self.compute.virtual_machines.instance_view("rg", name)
        return [str(status.code) for status in view.statuses or []]

    def send(self, method: str, path: str, body: Any = None) -> Sent:
        """Send a request that the SDKs have no operation for."""
        url = path if path.startswith("http") else f"{self.url}{path}"
        if "api-version" not in url:
            url += ("&" if "?" in url else "?") + "api-version=2021-04-01"
        response = self.compute.send_request(HttpRequest(method, url, json=body))
        content = response.json() if response.content else None
        return Sent(response.status_code, content, dict(response.headers))

    def deploy(self, name: str = "deploy-1", group: str = GROUP, **parameters: Any) -> Sent:
        """Deploy a template of that link for one machine, ``vm-1`` unless told otherwise."""
        given = {
            "vmName": "vm-1",
            "computerName": "c",
            "location": "eastus",
            "adminUsername": "u",
            "adminPassword": "secret",
            "customData": "aGVsbG8=",
            "tags": {"order": "o1"},
            "subnetId": SUBNET,
            "imageId": "/images/one",
            "vmSize": "Standard_D4s_v5",
            "priority": "Spot",
        }
        values = {key: {"value": value} for key, value in (given | parameters).items()}
        properties = {
            "mode": "Incremental",
            "templateLink": {"id": TEMPLATE},
            "parameters": values,
        }
        path = f"{group}/providers/Microsoft.Resources/deployments/{name}"
        return self.send("PUT", path, {"properties": properties, "tags": {"order": "o1"}})

    def deployment(self, name: str = "deploy-1", method: str = "GET", rest: str = "") -> Sent:
        """Ask for a deployment, or what is below it."""
        path = f"{GROUP}/providers/Microsoft.Resources/deployments/{name}{rest}"
        return self.send(method, path)

    def names(self, kind: str) -> list[str]:
        """The names of all resources of a type, by list."""
        provider = "Compute" if kind in ("virtualMachines", "disks") else "Network"
        path = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.{provider}/{kind}"
        return [one["name"] for one in self.send("GET", path).body["value"]]


def machine(*, public_ip: bool = False, **overrides: Any) -> dict[str, Any]:
    """The body of a machine with a NIC of its own, all of it to be deleted with it."""
    configuration: dict[str, Any] = {"subnet": {"id": SUBNET}}
    if public_ip:
        configuration["publicIPAddressConfiguration"] = {
            "name": "ip",
            "properties": {"deleteOption": "Delete"},
        }
    nic = {
        "name": "nic",
        "tags": {"order": "o1"},
        "properties": {
            "primary": True,
            "deleteOption": "Delete",
            "ipConfigurations": [{"name": "c", "properties": configuration}],
        },
    }
    body = {
        "location": "eastus",
        "tags": {"order": "o1"},
        "properties": {
            "hardwareProfile": {"vmSize": overrides.pop("size", "Standard_D4s_v5")},
            "priority": overrides.pop("priority", "Regular"),
            "osProfile": {
                "computerName": "c",
                "adminUsername": "u",
                "adminPassword": "secret",
                "customData": "aGVsbG8=",
            },
            "storageProfile": {"osDisk": {"createOption": "FromImage", "deleteOption": "Delete"}},
            "networkProfile": {
                "networkApiVersion": "2022-11-01",
                "networkInterfaceConfigurations": [nic],
            },
        },
    }
    for key, value in overrides.items():
        target = body if key in body else body["properties"]
        assert isinstance(target, dict)
        target[key] = value
    return body


def refused(call: Callable[[], object]) -> tuple[int | None, str]:
    """Status and code of the refusal of a call."""
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert caught.value.error is not None
    return caught.value.status_code, str(caught.value.error.code)
