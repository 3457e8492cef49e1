"""Calls that tests of the simulated Compute Engine make again and again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
import requests
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = "simulated-project"
ZONE = "us-central1-a"


def request_id(number: int) -> str:
    """A request id that is another for another number."""
    return str(UUID(int=number + 1))


def a_body(name: str = "one", zone: str = ZONE, **overrides: Any) -> dict[str, Any]:
    """The body of an insert."""
    body: dict[str, Any] = {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/n2-standard-4",
        "labels": {"deployment": "ours"},
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "sourceImage": "projects/images/global/images/linux",
                    "labels": {"deployment": "ours"},
                },
            }
        ],
        "networkInterfaces": [{"network": "global/networks/default"}],
        "scheduling": {"automaticRestart": False},
    }
    return body | overrides


class Compute:
    """The real SDK's clients; they neither retry nor wait long."""

    def __init__(self, url: str) -> None:
        self.url = url
        credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
        endpoint = {"credentials": credentials, "client_options": {"api_endpoint": url}}
        self.instances = compute_v1.InstancesClient(**endpoint)
        self.operations = compute_v1.ZoneOperationsClient(**endpoint)
        self.disks = compute_v1.DisksClient(**endpoint)
        self._session = requests.Session()
        self._once: Any = {"retry": None, "timeout": 60}

    def insert(
        self, body: dict[str, Any] | None = None, *, zone: str = ZONE, request_id: str = ""
    ) -> compute_v1.Operation:
        """Insert an instance."""
        request = compute_v1.InsertInstanceRequest(
            project=PROJECT,
            zone=zone,
            instance_resource=compute_v1.Instance.from_json(json.dumps(body or a_body())),
        )
        if request_id:
            request.request_id = request_id
        return self.instances.insert_unary(request=request, **self._once)

    def get(self, name: str = "one", *, zone: str = ZONE) -> compute_v1.Instance:
        """Get an instance by name or id."""
        return self.instances.get(project=PROJECT, zone=zone, instance=name, **self._once)

    def status(self, name: str = "one") -> str:
        """The status of an instance."""
        return str(self.get(name).status)

    def delete(self, name: str = "one", *, request_id: str = "") -> compute_v1.Operation:
        """Delete an instance by name or id."""
        request = compute_v1.DeleteInstanceRequest(project=PROJECT, zone=ZONE, instance=name)
        if request_id:
            request.request_id = request_id
        return self.instances.delete_unary(request=request, **self._once)

    def operation(self, name: str) -> compute_v1.Operation:
        """Get an operation of the zone."""
        return self.operations.get(project=PROJECT, zone=ZONE, operation=name, **self._once)

    def listed(self, **arguments: Any) -> list[str]:
        """The names of all instances of all zones."""
        request = compute_v1.AggregatedListInstancesRequest(project=PROJECT, **arguments)
        scopes = self.instances.aggregated_list(request=request, **self._once)
        return [instance.name for _, scoped in scopes for instance in scoped.instances]

    def disk_names(self) -> list[str]:
        """The names of all disks of all zones."""
        request = compute_v1.AggregatedListDisksRequest(project=PROJECT)
        scopes = self.disks.aggregated_list(request=request, **self._once)
        return [disk.name for _, scoped in scopes for disk in scoped.disks]

    def raw(self, path: str, **query: str) -> Any:
        """The JSON of a GET below the project, past the SDK's own reading."""
        url = f"{self.url}/compute/v1/projects/{PROJECT}/{path}"
        return self._session.get(url, params=query, timeout=60).json()


def refused(call: Callable[[], object]) -> tuple[int, str]:
    """Status and reason of the refusal of a call."""
    with pytest.raises(GoogleAPICallError) as caught:
        call()
    [told] = caught.value.errors
    return int(caught.value.code or 0), str(told["reason"])


def codes_of(operation: compute_v1.Operation) -> list[str]:
    """The error codes of an operation."""
    return [error.code for error in operation.error.errors]
