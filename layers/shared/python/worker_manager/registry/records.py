"""How the registry's values are written down in its table.

All of it follows from the values alone.  Read next: ``registry``, which reads and writes them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.activity import Downtime
from worker_manager.core.model import Json, canonical_json
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.registry.entities import (
    Claim,
    Declaration,
    Metadata,
    Outcomes,
    Provisioner,
    QuarantineChange,
    RegistryWorker,
    WorkerGroup,
    WorkerType,
)
from worker_manager.store.registry_rows import StoredName, StoredWorker

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.registry.windows import Windows

BEYOND = timedelta(days=1)
"""For how much longer than it is ever shown a worker's row stays."""

_MOMENTS = (
    "created",
    "first_seen",
    "last_seen",
    "declared",
    "first_claim",
    "explicit_expires",
    "boot_time",
    "quarantine_until",
    "watched_until",
    "gone",
)
_PLAIN = ("extra", "capacity", "quarantine_info", "quarantined_by")


def kept_until(worker: RegistryWorker, windows: Windows) -> datetime:
    """Until when a worker's row must stay: beyond every window in which it may yet be shown.

    Also beyond one that it would get only if its type were declared otherwise later.
    """
    longest = windows.worker if worker.gone else windows.hardware
    ends = [worker.last_active or worker.created, worker.gone, worker.quarantine_until]
    latest = max(end for end in ends if end is not None) + longest
    return max(latest, worker.explicit_expires or latest) + BEYOND


def to_stored(worker: RegistryWorker, windows: Windows) -> StoredWorker:
    """A worker as the table keeps it; what is not there takes no room."""
    body: dict[str, Any] = {name: _wire(getattr(worker, name)) for name in _MOMENTS}
    body |= {name: getattr(worker, name) for name in _PLAIN}
    body["claims"] = [_from_claim(claim) for claim in worker.claims]
    body["actions"] = worker.actions
    body["outcomes"] = {
        day: [of.completed, of.failed, of.exceptions, of.others]
        for day, of in worker.outcomes.items()
    }
    return StoredWorker(
        key=worker.key,
        body=canonical_json({name: value for name, value in body.items() if value}),
        kept=kept_until(worker, windows),
        version=worker.version,
    )


def to_worker(stored: StoredWorker) -> RegistryWorker:
    """Back from the table."""
    body = json.loads(stored.body)
    given: dict[str, Any] = {name: from_wire(body[name]) for name in _MOMENTS if name in body}
    given |= {name: body[name] for name in _PLAIN if name in body}
    return RegistryWorker(
        key=stored.key,
        claims=tuple(_to_claim(claim) for claim in body.get("claims", ())),
        actions=tuple(body.get("actions", ())),
        outcomes={day: Outcomes(*counts) for day, counts in body.get("outcomes", {}).items()},
        version=stored.version,
        **given,
    )


def to_declared(declaration: Declaration, **also: Any) -> Json:
    """What was declared, as JSON; ``also`` is what only a worker type has."""
    window = declaration.window
    return {
        **asdict(declaration),
        "window": window.total_seconds() if window is not None else None,
        "at": _wire(declaration.at),
        **also,
    }


def to_provisioner(stored: StoredName) -> Provisioner:
    """A provisioner, from the table."""
    return Provisioner(
        stored.name,
        created=stored.created,
        first_seen=stored.first_seen,
        last_seen=stored.last_seen,
        declaration=_declaration(stored.declared or {}),
    )


def to_type(stored: StoredName) -> WorkerType:
    """A worker type, from the table."""
    declared = stored.declared or {}
    return WorkerType(
        stored.name,
        created=stored.created,
        first_seen=stored.first_seen,
        last_seen=stored.last_seen,
        declaration=_declaration(declared),
        has_metadata=stored.has_metadata,
        is_hardware=bool(declared.get("is_hardware")),
        is_hardware_said=bool(declared.get("is_hardware_said")),
        downtime=_to_downtime(declared.get("downtime")),
    )


def from_type(worker_type: WorkerType) -> Json:
    """What was declared of a worker type, as the table keeps it."""
    return to_declared(
        worker_type.declaration,
        is_hardware=worker_type.is_hardware,
        is_hardware_said=worker_type.is_hardware_said,
        downtime=_from_downtime(worker_type.downtime),
    )


def to_group(queue_id: str, stored: StoredName) -> WorkerGroup:
    """A worker group, from the table."""
    return WorkerGroup(
        queue_id,
        stored.name,
        first_seen=stored.first_seen or stored.created,
        last_seen=stored.last_seen or stored.created,
    )


def from_metadata(metadata: Metadata) -> Json:
    """Metadata as the table keeps it."""
    return {**asdict(metadata), "updated": to_wire(metadata.updated)}


def to_metadata(stored: Json) -> Metadata:
    """Back from the table."""
    return Metadata(**{**stored, "updated": from_wire(stored["updated"])})


def from_change(change: QuarantineChange) -> Json:
    """A change of a quarantine as the table keeps it."""
    return {**asdict(change), "at": to_wire(change.at), "until": to_wire(change.until)}


def to_change(stored: Json) -> QuarantineChange:
    """Back from the table."""
    moments = {"at": from_wire(stored["at"]), "until": from_wire(stored["until"])}
    return QuarantineChange(**{**stored, **moments})


def _declaration(declared: Json) -> Declaration:
    seconds = declared.get("window")
    return Declaration(
        description=declared.get("description") or "",
        stability=declared.get("stability") or "experimental",
        window=timedelta(seconds=seconds) if seconds is not None else None,
        actions=tuple(declared.get("actions") or ()),
        at=_moment(declared.get("at")),
        by=declared.get("by"),
    )


def _from_downtime(downtime: Downtime | None) -> Json | None:
    if downtime is None:
        return None
    moments = {"until": to_wire(downtime.until), "since": _wire(downtime.since)}
    return {**asdict(downtime), **moments}


def _to_downtime(stored: Json | None) -> Downtime | None:
    if stored is None:
        return None
    moments = {"until": from_wire(stored["until"]), "since": _moment(stored["since"])}
    return Downtime(**{**stored, **moments})


def _from_claim(claim: Claim) -> list[Any]:
    """A list, as there are many: what is not known yet is left off."""
    told = [claim.task_id, claim.run_id, to_wire(claim.claimed)]
    if claim.state is None:
        return told
    return [*told, claim.state, claim.reason, _wire(claim.resolved)]


def _to_claim(stored: list[Any]) -> Claim:
    task_id, run_id, claimed, state, reason, resolved = (*stored, None, None, None)[:6]
    return Claim(task_id, run_id, from_wire(claimed), state, reason, _moment(resolved))


def _wire(moment: datetime | None) -> str | None:
    return to_wire(moment) if moment is not None else None


def _moment(text: str | None) -> datetime | None:
    return from_wire(text) if text else None
