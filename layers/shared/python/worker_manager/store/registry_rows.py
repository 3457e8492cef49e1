"""What the registry's table holds, as values.  Read next: ``registry_table``, which keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Json, WorkerKey


@dataclass(frozen=True, slots=True)
class StoredWorker:
    """One worker, as a text; ``version`` is the one to be replaced, ``kept`` until when."""

    key: WorkerKey
    body: str
    kept: datetime
    version: int = 0


@dataclass(frozen=True, slots=True)
class StoredName:
    """A provisioner, a worker type or a worker group: what was seen and what was declared.

    ``declared`` is JSON of the ``registry``'s own; ``None`` where nothing was said.
    """

    name: str
    created: datetime
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    declared: Json | None = None
    has_metadata: bool = False
    version: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """A worker type whose downtime is in force, or over and not yet told of."""

    queue_id: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A worker whose quarantine is in force, or over and not yet told of."""

    key: WorkerKey
    until: datetime
