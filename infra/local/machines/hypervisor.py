"""What a machine and the fleet ask of the simulated cloud beneath them, over HTTP.

The other side is the ``metadata`` module of the cloud.  Read next: ``fleet``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, slots=True)
class InstanceMetadata:
    """A machine's own view of its instance."""

    instance_id: str
    region: str
    zone: str
    image_id: str
    instance_type: str
    spot: bool
    user_data: str


class Hypervisor:
    """The machines' side of a simulated cloud.

    Every method may raise ``aiohttp.ClientError`` or ``TimeoutError``; an instance that is gone is
    a ``ClientResponseError`` with status 404.
    """

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url = url
        self._http = http

    async def powered(self) -> dict[str, str]:
        """Ids of the instances that are pending or running, with their state."""
        listed = await self._get("/_machines")
        return {entry["instance_id"]: entry["state"] for entry in listed}

    async def metadata(self, instance_id: str) -> InstanceMetadata:
        """What the instance metadata service tells a machine."""
        return InstanceMetadata(**await self._get(f"/_machines/{instance_id}"))

    async def identity(self, instance_id: str) -> dict[str, str]:
        """The machine's signed identity: ``document`` and ``signature``."""
        proof: dict[str, str] = await self._get(f"/_machines/{instance_id}/identity")
        return proof

    async def shut_down(self, instance_id: str) -> None:
        """Power off from inside."""
        url = f"{self._url}/_machines/{instance_id}/shutdown"
        async with self._http.post(url, json={}) as response:
            response.raise_for_status()

    async def _get(self, path: str) -> Any:
        async with self._http.get(f"{self._url}{path}") as response:
            response.raise_for_status()
            return await response.json()
