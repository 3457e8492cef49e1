"""The credentials that a registered worker gets: temporary, named, and only for its own pool.

They are a stock client's temporary credentials, made by the stock package.  Where to read next:
``certificates`` (how they are verified), ``clients`` (whose name they are issued in).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

from worker_manager.taskcluster.certificates import MAX_VALIDITY

if TYPE_CHECKING:
    from worker_manager.core.model import WorkerKey

BACKDATED = timedelta(minutes=15)
"""Credentials begin this long before now, for machines whose clocks are behind."""

_SCOPES = (
    "assume:worker-type:{pool}",
    "assume:worker-pool:{pool}",
    "assume:worker-id:{group}/{worker}",
    "queue:worker-id:{group}/{worker}",
    "secrets:get:worker-type:{pool}",
    "secrets:get:worker-pool:{pool}",
    "queue:claim-work:{pool}",
    "worker-manager:remove-worker:{pool}/{group}/{worker}",
    "worker-manager:reregister-worker:{pool}/{group}/{worker}",
    "worker-manager:should-worker-terminate:{pool}/{group}/{worker}",
)

ISSUER_SCOPES = (
    "auth:create-client:worker/*",
    *(template.partition("{")[0] + "*" for template in _SCOPES),
)
"""What the issuing client must hold, as nobody can hand out what it does not have."""

QUEUE_SCOPES = (
    "queue:claimed-count:*",
    "queue:claimed-list:*",
    "queue:list-workers:*",
    "queue:pending-count:*",
)
"""With what the loops ask the queue, in the issuer's name too."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """The client in whose name workers get their credentials."""

    client_id: str
    access_token: str = field(repr=False)


class WorkerCredentials(TypedDict):
    """As a worker expects them in the answer to its registration; all text."""

    clientId: str
    accessToken: str
    certificate: str


def worker_scopes(worker: WorkerKey) -> list[str]:
    """What a worker may do, in the order in which the reference lists it."""
    return [
        template.format(pool=worker.pool_id, group=worker.group, worker=worker.worker_id)
        for template in _SCOPES
    ]


def worker_client_id(worker: WorkerKey, *, provider_id: str) -> str:
    """The name under which a worker appears in logs, unique over all pools and providers."""
    return f"worker/{provider_id}/{worker.pool_id}/{worker.group}/{worker.worker_id}"


def issue_worker_credentials(
    worker: WorkerKey, *, provider_id: str, issuer: Issuer, now: datetime, expires: datetime
) -> WorkerCredentials:
    """Make credentials for ``worker`` that last until ``expires``.

    Each call gives others: the seed is random.  Raises ``ValueError`` when they would last longer
    than the 31 days, counted from 15 minutes ago, that every verifier allows.
    """
    # Costs up to 90 ms when first imported, and only registrations need it.
    from taskcluster import (  # type: ignore[import-untyped]  # noqa: PLC0415
        createTemporaryCredentials,
    )

    start = now - BACKDATED
    if expires - start > MAX_VALIDITY:
        raise ValueError(f"worker credentials cannot last until {expires}: more than 31 days")
    made = createTemporaryCredentials(
        issuer.client_id,
        issuer.access_token,
        start,
        expires,
        worker_scopes(worker),
        name=worker_client_id(worker, provider_id=provider_id),
    )
    return WorkerCredentials(
        clientId=made["clientId"],
        accessToken=made["accessToken"].decode("ascii"),
        certificate=made["certificate"],
    )
