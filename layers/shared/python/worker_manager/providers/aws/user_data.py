"""What a machine on EC2 is told at birth: the JSON that a stock worker-runner reads.

Imports no cloud SDK, so that the API can refuse a launch config whose user data would be too
long while somebody is there to read the refusal.  Where to read next: ``launch``, which sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.model import canonical_json

if TYPE_CHECKING:
    from worker_manager.core.model import Json, Location

MAX_USER_DATA_BYTES = 16_384
"""EC2's limit, counted before base64 (AWS, "Run commands when you launch an EC2 instance")."""


def user_data(
    body: Json,
    location: Location,
    *,
    root_url: str,
    pool_id: str,
    provider_id: str,
    launch_config_id: str,
) -> bytes:
    """Raw user data of every machine of a launch config with this ``body``.

    The caller's ``additionalUserData`` comes first, so that nothing in it can displace what the
    worker needs to find its way back to us.  The same arguments give the same bytes.
    """
    return canonical_json(
        {
            **(body.get("additionalUserData") or {}),
            "rootUrl": root_url,
            "workerPoolId": pool_id,
            "providerId": provider_id,
            "workerGroup": location,
            "launchConfigId": launch_config_id,
            "workerConfig": body.get("workerConfig") or {},
        }
    ).encode()


def user_data_size_error(raw: bytes) -> str | None:
    """Why EC2 would refuse this raw user data, in words for a pool's owner; ``None`` if it fits."""
    if len(raw) <= MAX_USER_DATA_BYTES:
        return None
    return (
        f"user data would be {len(raw)} bytes, {len(raw) - MAX_USER_DATA_BYTES} more than the "
        f"{MAX_USER_DATA_BYTES} that EC2 takes; shorten additionalUserData or workerConfig"
    )
