"""The wire: audit trails.  Where to read next: ``core.audit`` (what the fields mean)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from worker_manager.api.schemas import Slugid  # noqa: TC001 - pydantic reads it
from worker_manager.api.validation import Answer, Moment, PoolId
from worker_manager.core.audit import Action, Entity  # noqa: TC001 - pydantic reads it


class AuditChange(Answer):
    """One field: what was there before, unless nothing was, and after, unless it is gone.

    What looks like a secret is `(OMITTED)`; of a very long value the beginning is told, as text.
    """

    path: str
    before: Any = None
    after: Any = None


class AuditEntry(Answer):
    """Who changed what; `leftOut` further changes did not fit."""

    audit_id: Slugid
    worker_pool_id: PoolId
    entity: Entity
    entity_id: str
    action: Action
    client_id: str | None = None
    time: Moment
    changes: list[AuditChange]
    left_out: int = Field(ge=0)
    request_id: str | None = None


class WorkerPoolAudit(Answer):
    """A page of a pool's audit trail, newest first."""

    audit_history: list[AuditEntry]
    continuation_token: str | None = None
