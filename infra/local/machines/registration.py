"""Becoming a worker, and staying one: registerWorker and reregisterWorker.

Behaves as a stock worker-runner: a 5xx is tried again, a 4xx is final.  Read next: ``worker``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
from taskcluster.aio import Queue, WorkerManager  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.machines.assignment import Assignment

_LONGEST_LEAD = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Registration:
    """Temporary credentials of a worker, and what came with them."""

    credentials: Mapping[str, str]
    secret: str
    issued: datetime
    expires: datetime
    worker_config: Mapping[str, Any]

    @property
    def renew_at(self) -> datetime:
        """When to reregister: 30 minutes before expiry, or at half of a short life."""
        return self.expires - min(_LONGEST_LEAD, (self.expires - self.issued) / 2)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a machine says it is, and the cloud's proof of that."""

    assignment: Assignment
    instance_id: str
    proof: Mapping[str, str]
    booted: datetime


async def register(
    identity: Identity, http: aiohttp.ClientSession, *, retry_seconds: float
) -> Registration | None:
    """Call registerWorker until it answers for good; ``None`` when it refuses.

    Waits as long as Retry-After says, else ``retry_seconds``.
    """
    assignment = identity.assignment
    url = f"{assignment.root_url.rstrip('/')}/api/worker-manager/v1/worker/register"
    body = {
        "workerPoolId": assignment.worker_pool_id,
        "providerId": assignment.provider_id,
        "workerGroup": assignment.worker_group,
        "workerId": identity.instance_id,
        "workerIdentityProof": dict(identity.proof),
        "systemBootTime": identity.booted.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    while True:
        wait_seconds = retry_seconds
        try:
            async with http.post(url, json=body) as response:
                if response.status == 200:
                    return _read(await response.json(), {})
                if response.status < 500:
                    return None
                wait_seconds = _retry_after(response, retry_seconds)
        except (aiohttp.ClientError, TimeoutError):
            pass
        await asyncio.sleep(wait_seconds)


async def reregister(
    registration: Registration, client: WorkerManager, identity: Identity
) -> Registration:
    """Trade the secret for new credentials; raises what the stock client raises."""
    answer = await client.reregisterWorker(
        {
            "workerPoolId": identity.assignment.worker_pool_id,
            "workerGroup": identity.assignment.worker_group,
            "workerId": identity.instance_id,
            "secret": registration.secret,
        }
    )
    return _read(answer, registration.worker_config)


def queue_client(
    root_url: str, credentials: Mapping[str, str], http: aiohttp.ClientSession
) -> Queue:
    """The stock client of the queue."""
    return Queue(_options(root_url, credentials), session=http)


def worker_manager_client(
    root_url: str, credentials: Mapping[str, str], http: aiohttp.ClientSession
) -> WorkerManager:
    """The stock client of the worker manager."""
    return WorkerManager(_options(root_url, credentials), session=http)


def _options(root_url: str, credentials: Mapping[str, str]) -> dict[str, Any]:
    return {"rootUrl": root_url, "credentials": dict(credentials), "maxRetries": 2}


def _read(answer: Mapping[str, Any], known_config: Mapping[str, Any]) -> Registration:
    return Registration(
        credentials=answer["credentials"],
        secret=answer["secret"],
        issued=datetime.now(UTC),
        expires=datetime.fromisoformat(answer["expires"]),
        worker_config=answer.get("workerConfig", known_config),
    )


def _retry_after(response: aiohttp.ClientResponse, otherwise: float) -> float:
    try:
        return float(response.headers.get("Retry-After", otherwise))
    except ValueError:
        return otherwise
