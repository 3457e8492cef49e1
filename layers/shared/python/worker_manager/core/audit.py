"""Who changed what: entries of a pool's audit trail, and the difference that each tells.

A difference is a list of changes, each with the path of a field and what was there before and
after; a key that is absent from a change was absent from the definition.  Paths are JSON pointers
into the definition as the API shows it, but that launch configs are named by their ids, as their
order has no meaning.  What looks like a secret is never told, only that it changed.

Where to read next: ``store.audit`` (how they are kept), ``api.audit`` (who writes and lists them).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from worker_manager.core.model import Json, LaunchConfigHead, Pool, Worker

Entity = Literal["worker-pool", "launch-config", "worker"]
Action = Literal["created", "updated", "deleted", "paused", "resumed", "removed"]

OMITTED = "(OMITTED)"
"""Stands for a secret."""
LONGEST_VALUE = 10_000
"""Characters of a value as JSON; of a longer one the beginning is told, as text."""
MOST_CHANGES = 500
LARGEST = 80_000
"""Bytes of all changes of an entry as JSON; the rest is counted."""

_SECRET = re.compile(
    r"(secrets?|passwords?|passwd|passphrase|(?<!http)tokens?|credentials?"
    r"|(access|account|api|master|private|shared)keys?)$"
)
_NOT_LETTERS = re.compile(r"[^a-z]")


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes in the order of their paths, and how many more there are than fit."""

    changes: tuple[Json, ...]
    left_out: int = 0

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes) or self.left_out > 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One change that somebody made.

    ``entity_id`` is the pool's, the launch config's or ``<group>/<worker id>``; ``client_id`` is
    ``None`` for a caller who need not sign.  ``request_id`` finds the request in the logs.
    """

    audit_id: str
    pool_id: str
    entity: Entity
    entity_id: str
    action: Action
    client_id: str | None
    time: datetime
    difference: Difference
    request_id: str | None = None


def difference(before: Json, after: Json) -> Difference:
    """What differs between two JSON objects, secrets left out, cut to what an item can hold."""
    told: list[Json] = []
    total = taken = 0
    for change in _changes(before, after, ""):
        total += 1
        size = len(json.dumps(change, ensure_ascii=False).encode())
        if len(told) < MOST_CHANGES and taken + size <= LARGEST:
            told.append(change)
            taken += size
    return Difference(tuple(told), left_out=total - len(told))


def pool_difference(before: Pool | None, after: Pool, bodies: Mapping[str, Json]) -> Difference:
    """What a change of a definition changed; ``before`` is ``None`` for a new pool.

    ``bodies`` are those of launch configs that come or go; one that is missing is told without its
    content.  The content of those that stay never changes.
    """
    old = {} if before is None else {head.launch_config_id: head for head in before.heads}
    new = {head.launch_config_id: head for head in after.heads}
    gone_or_come = {name: body for name, body in bodies.items() if (name in old) != (name in new)}
    nothing: Json = {"config": {"launchConfigs": {}}}
    return difference(
        nothing if before is None else _shown(before, old, gone_or_come),
        _shown(after, new, gone_or_come),
    )


def worker_difference(before: Worker | None, after: Worker) -> Difference:
    """What somebody changed of a worker; ``before`` is ``None`` for a new one."""
    return difference({} if before is None else _worker(before), _worker(after))


def _worker(worker: Worker) -> dict[str, Any]:
    shown: dict[str, Any] = {"state": worker.state.value, "capacity": worker.capacity}
    if worker.expires is not None:
        shown["expires"] = to_wire(worker.expires)
    if worker.identity:
        # Only that it changed is told: of the secret we know no more than a hash.
        shown["providerInfo"] = {"staticSecret": dict(worker.identity)}
    return shown


def _shown(
    pool: Pool, heads: Mapping[str, LaunchConfigHead], bodies: Mapping[str, Json]
) -> dict[str, Any]:
    configs = {
        name: {**bodies.get(name, {}), "workerManager": head.manager}
        for name, head in heads.items()
    }
    return {
        "providerId": pool.provider_id,
        "description": pool.description,
        "owner": pool.owner,
        "emailOnError": pool.email_on_error,
        "config": {**pool.config, "launchConfigs": configs},
    }


def _changes(before: Json, after: Json, path: str) -> Iterator[Json]:
    for key in sorted(before.keys() | after.keys()):
        here = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        values = {
            name: side[key] for name, side in (("before", before), ("after", after)) if key in side
        }
        match list(values.values()):
            case [old, new] if _is_same(old, new):
                continue
            case [dict() as old, dict() as new] if not _is_secret(key):
                yield from _changes(old, new, here)
            case _:
                yield {"path": here, **{name: _told(key, it) for name, it in values.items()}}


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: ``1``, ``1.0`` and ``true`` are three values."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _told(key: str, value: Any) -> Any:
    shown = _without_secrets(key, value)
    text = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return shown
    return f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"


def _without_secrets(key: str, value: Any) -> Any:
    if _is_secret(key) and value is not None and not isinstance(value, bool):
        return OMITTED
    if isinstance(value, dict):
        return {name: _without_secrets(name, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets("", inner) for inner in value]
    return value


def _is_secret(key: str) -> bool:
    """Whether a key ends in a word for secrets, however it is written: ``adminPassword``.

    EC2's ``HttpTokens`` says whether tokens are required, and is worth knowing.
    """
    return _SECRET.search(_NOT_LETTERS.sub("", key.lower())) is not None
