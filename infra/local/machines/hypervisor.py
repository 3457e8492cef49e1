"""What a machine and the fleet ask of the simulated cloud beneath them, over HTTP.

A machine asks what its own cloud's metadata service has, in that service's words.  The other side
is the ``metadata`` module of each cloud.  Read next: ``fleet``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.local.machines.assignment import Assignment, read_assignment, read_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

_GOOGLE = {"Metadata-Flavor": "Google"}
_AZURE = {"Metadata": "true"}


@dataclass(frozen=True, slots=True)
class InstanceMetadata:
    """A machine's own view of its instance; ``assignment`` is ``None`` if it is no worker's.

    ``image_id`` is empty where the cloud does not tell a machine.
    """

    instance_id: str
    image_id: str
    instance_type: str
    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class Power:
    """Whether an instance runs, and how often it booted anew since it was made."""

    is_running: bool
    reboots: int


class Hypervisor(ABC):
    """The machines' side of a simulated cloud.

    Every method may raise ``aiohttp.ClientError`` or ``TimeoutError``; an instance that is gone is
    a ``ClientResponseError`` with status 404.
    """

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url = url
        self._http = http

    async def powered(self) -> dict[str, Power]:
        """The instances that run or are about to, by id."""
        listed = json.loads(await self._get("/_machines"))
        return {
            entry["instance_id"]: Power(entry["state"].lower() == "running", entry["reboots"])
            for entry in listed
        }

    @abstractmethod
    async def metadata(self, instance_id: str) -> InstanceMetadata:
        """What the metadata service tells a machine."""

    @abstractmethod
    async def proof(self, instance_id: str, *, root_url: str) -> dict[str, str]:
        """What a machine registers with, to be shown to the service at ``root_url``."""

    async def shut_down(self, instance_id: str) -> None:
        """Power off from inside."""
        url = f"{self._url}/_machines/{instance_id}/shutdown"
        async with self._http.post(url, json={}) as response:
            response.raise_for_status()

    async def _get(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> str:
        url = f"{self._url}{path}"
        async with self._http.get(url, headers=headers, params=query) as response:
            response.raise_for_status()
            return await response.text()


class Ec2Hypervisor(Hypervisor):
    """User data, and the signed instance identity document."""

    async def metadata(self, instance_id: str) -> InstanceMetadata:
        """What EC2's instance metadata service tells a machine."""
        known = json.loads(await self._get(f"/_machines/{instance_id}"))
        return InstanceMetadata(
            instance_id,
            known["image_id"],
            known["instance_type"],
            read_assignment(known["user_data"]),
        )

    async def proof(self, instance_id: str, *, root_url: str) -> dict[str, str]:
        """The ``document`` and its ``signature``."""
        proof: dict[str, str] = json.loads(await self._get(f"/_machines/{instance_id}/identity"))
        return proof


class ComputeHypervisor(Hypervisor):
    """The attribute ``taskcluster``, and an identity token."""

    async def metadata(self, instance_id: str) -> InstanceMetadata:
        """What Compute Engine's metadata server tells a machine."""
        attributes = json.loads(
            await self._ask(instance_id, "instance/attributes/", recursive="true")
        )
        kind = await self._ask(instance_id, "instance/machine-type")
        assignment = read_assignment(attributes.get("taskcluster", ""))
        return InstanceMetadata(instance_id, "", kind.rpartition("/")[2], assignment)

    async def proof(self, instance_id: str, *, root_url: str) -> dict[str, str]:
        """A token for the service, with all that the instance is."""
        path = "instance/service-accounts/default/identity"
        return {"token": await self._ask(instance_id, path, audience=root_url, format="full")}

    async def _ask(self, instance_id: str, path: str, **query: str) -> str:
        server = f"/_metadata/{instance_id}/computeMetadata/v1"
        return await self._get(f"{server}/{path}", headers=_GOOGLE, query=query)


class ArmHypervisor(Hypervisor):
    """The tags of a virtual machine, and its attested document."""

    async def metadata(self, instance_id: str) -> InstanceMetadata:
        """What Azure's instance metadata service tells a machine."""
        compute = json.loads(await self._ask(instance_id, "instance"))["compute"]
        image = (compute.get("storageProfile") or {}).get("imageReference") or {}
        tags = {tag["name"]: tag["value"] for tag in compute["tagsList"]}
        return InstanceMetadata(
            instance_id, str(image.get("id") or ""), compute["vmSize"], read_tags(tags)
        )

    async def proof(self, instance_id: str, *, root_url: str) -> dict[str, str]:
        """The attested ``document``."""
        attested = json.loads(await self._ask(instance_id, "attested/document"))
        return {"document": attested["signature"]}

    async def _ask(self, instance_id: str, path: str) -> str:
        server = f"/_metadata/{instance_id}/metadata"
        return await self._get(
            f"{server}/{path}", headers=_AZURE, query={"api-version": "2021-12-13"}
        )


HYPERVISORS: Mapping[str, type[Hypervisor]] = {
    "arm": ArmHypervisor,
    "compute": ComputeHypervisor,
    "ec2": Ec2Hypervisor,
}
"""By the simulated cloud."""
