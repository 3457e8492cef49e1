"""How runs are written down.  Read next: ``ledger``, which reads and writes them."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from worker_manager.actions.entities import (
    Action,
    Attempt,
    Context,
    Kind,
    Lease,
    Level,
    LogLine,
    Result,
    Run,
    RunState,
    Target,
)
from worker_manager.core.model import Json, canonical_json
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.action_rows import StoredRun

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = timedelta(days=400)
"""How long a run is remembered: it is the record of who did what."""
AGENT = "agent#"
OURS = "ours"

_MOMENTS = ("requested", "taken", "verified", "ended")
_PLAIN = ("requested_by", "reason", "params", "bulk_id", "was_silent", "message")


def to_stored(run: Run) -> StoredRun:
    """A run as the table keeps it."""
    target = run.target
    is_worker = target.context is Context.WORKER
    limited = target.queue_id or target.provisioner_id
    return StoredRun(
        run_id=run.run_id,
        body=canonical_json(_body(run)),
        requested=run.requested,
        kept=run.requested + KEPT,
        target=str(target),
        lock="any" if is_worker else run.action.name,
        queue_id=target.queue_id,
        todo=todo_of(run.action.agent_id),
        place=f"{limited}#{run.action.name}",
        places=run.action.most_at_once,
        bulk_id=run.bulk_id,
        is_open=not run.state.is_final,
        is_taken=run.lease is not None,
        has_place=run.is_under_way,
        version=run.version,
    )


def todo_of(agent_id: str | None) -> str:
    """The list from which an agent takes its runs; without one, ours."""
    return OURS if agent_id is None else f"{AGENT}{agent_id}"


def from_stored(run_id: str, body: str, version: int) -> Run:
    """Back from the table."""
    given = json.loads(body)
    plain: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    plain |= {name: from_wire(given[name]) for name in _MOMENTS if name in given}
    return Run(
        run_id=run_id,
        action=_to_action(given["action"]),
        level=Level(given["level"]),
        target=Target(*given["target"]),
        state=RunState(given["state"]),
        lease=_to_lease(given["lease"]) if "lease" in given else None,
        attempts=tuple(_to_attempt(one) for one in given.get("attempts", ())),
        log=tuple(LogLine(from_wire(at), text) for at, text in given.get("log", ())),
        version=version,
        **plain,
    )


def _body(run: Run) -> Json:
    body: dict[str, Any] = {name: _wire(getattr(run, name)) for name in _MOMENTS}
    body |= {name: getattr(run, name) for name in _PLAIN}
    target = run.target
    body |= {
        "action": {field.name: _plain(getattr(run.action, field.name)) for field in fields(Action)},
        "level": str(run.level),
        "target": [
            target.provisioner_id,
            target.worker_type,
            target.worker_group,
            target.worker_id,
        ],
        "state": str(run.state),
        "lease": _from_lease(run.lease) if run.lease else None,
        "attempts": [_from_attempt(attempt) for attempt in run.attempts],
        "log": [[to_wire(line.at), line.text] for line in run.log],
    }
    # What is not there takes no room.
    return {name: value for name, value in body.items() if value not in (None, "", [], {}, False)}


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return value.total_seconds()
        case StrEnum():
            return str(value)
        case tuple():
            return list(value)
    return value


def _to_action(given: Mapping[str, Any]) -> Action:
    known = {field.name for field in fields(Action)}
    values = {name: value for name, value in given.items() if name in known}
    return Action(
        **{
            **values,
            "context": Context(values["context"]),
            "kind": Kind(values["kind"]),
            "required_scopes": tuple(values["required_scopes"]),
            "cooldown": timedelta(seconds=values["cooldown"]),
            "timeout": timedelta(seconds=values["timeout"]),
        }
    )


def _from_lease(lease: Lease) -> list[str]:
    return [lease.lease_id, lease.holder, to_wire(lease.until)]


def _to_lease(given: list[str]) -> Lease:
    lease_id, holder, until = given
    return Lease(lease_id, holder, from_wire(until))


def _from_attempt(attempt: Attempt) -> list[Any]:
    told = [attempt.number, attempt.method, to_wire(attempt.started)]
    if attempt.result is None:
        return told
    return [*told, _wire(attempt.ended), str(attempt.result), attempt.message]


def _to_attempt(given: list[Any]) -> Attempt:
    number, method, started, ended, result, message = (*given, None, None, "")[:6]
    return Attempt(
        number,
        method,
        from_wire(started),
        from_wire(ended) if ended else None,
        Result(result) if result else None,
        message,
    )


def _wire(moment: datetime | None) -> str | None:
    return to_wire(moment) if moment is not None else None
