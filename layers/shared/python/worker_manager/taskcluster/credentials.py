"""The credentials that a registered worker gets: temporary, named, and only for its own pool.

Those of tasks are made alike (``queue.credentials``): a stock client's temporary credentials, by
the stock package.  Where to read next: ``certificates`` (how they are verified), ``clients`` (whose
name they are issued in).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

from worker_manager.taskcluster.certificates import MAX_VALIDITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

RUN_SCOPES = ("queue:reclaim-task:{run}", "queue:resolve-task:{run}", "queue:create-artifact:{run}")
"""What whoever works on a task's run may do with it, beside the task's own scopes."""


def _for_all(templates: Iterable[str]) -> tuple[str, ...]:
    return tuple(template.partition("{")[0] + "*" for template in templates)


ISSUER_SCOPES = ("auth:create-client:worker/*", *_for_all(_SCOPES))
"""What the issuing client must hold, as nobody can hand out what it does not have."""

TASK_ISSUER_SCOPES = ("auth:create-client:task-client/*", *_for_all(RUN_SCOPES))
"""With what the embedded queue issues credentials of tasks, besides every scope they carry."""

QUEUE_SCOPES = (
    "queue:claimed-count:*",
    "queue:claimed-list:*",
    "queue:get-worker:*",
    "queue:list-workers:*",
    "queue:pending-count:*",
)
"""With what the loops and the API ask the queue, in the issuer's name too."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """The client in whose name workers get their credentials."""

    client_id: str
    access_token: str = field(repr=False)


class Credentials(TypedDict):
    """Temporary credentials as a stock client takes them; all text."""

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
) -> Credentials:
    """Make credentials for ``worker`` that last until ``expires``; see ``issue``."""
    name = worker_client_id(worker, provider_id=provider_id)
    return issue(name, worker_scopes(worker), issuer=issuer, now=now, expires=expires)


def issue(
    name: str, scopes: Sequence[str], *, issuer: Issuer, now: datetime, expires: datetime
) -> Credentials:
    """Make credentials for ``name`` that hold ``scopes`` until ``expires``.

    Each call gives others: the seed is random.  Raises ``ValueError`` when they would last longer
    than the 31 days, counted from 15 minutes ago, that every verifier allows.
    """
    # Costs up to 90 ms when first imported, and only who gives out credentials needs it.
    from taskcluster import (  # type: ignore[import-untyped]  # noqa: PLC0415
        createTemporaryCredentials,
    )

    start = now - BACKDATED
    if expires - start > MAX_VALIDITY:
        raise ValueError(f"credentials cannot last until {expires}: more than 31 days")
    made = createTemporaryCredentials(
        issuer.client_id, issuer.access_token, start, expires, list(scopes), name=name
    )
    return Credentials(
        clientId=made["clientId"],
        accessToken=made["accessToken"].decode("ascii"),
        certificate=made["certificate"],
    )
