"""A pool's definition, taken apart into what planning reads and what only launches read.

The caller's ``config`` becomes a root without launch configs, one *head* and one *body* a launch
config; ``assemble`` puts them together again, in the caller's order, so that tools that compare
whole definitions find no difference.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager.core.ids import launch_config_id
from worker_manager.core.model import Json, LaunchConfigHead, Location, canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime


class DuplicateLaunchConfigError(ValueError):
    """Two launch configs of one definition have the same id."""

    def __init__(self, launch_config_id: str) -> None:
        super().__init__(f"launch config id {launch_config_id!r} occurs more than once")
        self.launch_config_id = launch_config_id


@dataclass(frozen=True, slots=True)
class Parts:
    """A config taken apart.  ``bodies`` are by launch config id."""

    root: Json
    heads: tuple[LaunchConfigHead, ...]
    bodies: Mapping[str, Json]


def group_of(body: Json, location: Location) -> str:
    """The worker group of a launch config's machines: a zone, an Azure location, a region.

    ``location`` is what stands for it where the body does not say.
    """
    template = body.get("armDeployment") or {}
    told = (template.get("parameters") or {}).get("location") or {}
    group = body.get("zone") or told.get("value") or body.get("location") or location
    return str(group)


def take_apart(
    pool_id: str,
    config: Json,
    *,
    now: datetime,
    location_of: Callable[[Json], Location],
    offering_of: Callable[[Json], str] = lambda _: "",
) -> Parts:
    """Split ``config``; ids that the caller did not give are derived from the bodies.

    ``location_of`` and ``offering_of`` read from a body what the head keeps of it.
    Raises ``DuplicateLaunchConfigError`` for two launch configs that share an id (as two do that
    differ only in ``workerManager``).
    """
    heads, bodies = [], {}
    for given in config.get("launchConfigs", ()):
        body = {key: value for key, value in given.items() if key != "workerManager"}
        manager = dict(given.get("workerManager") or {})
        name = manager.pop("launchConfigId", None) or launch_config_id(pool_id, body)
        if name in bodies:
            raise DuplicateLaunchConfigError(name)
        bodies[name] = body
        capacity = manager.get("capacityPerInstance") or body.get("capacityPerInstance") or 1
        heads.append(
            LaunchConfigHead(
                launch_config_id=name,
                location=location_of(body),
                manager=manager,
                capacity_per_instance=int(capacity),
                modified=now,
                digest=digest(body),
                offering=offering_of(body),
            )
        )
    root = {key: value for key, value in config.items() if key != "launchConfigs"}
    return Parts(root=root, heads=tuple(heads), bodies=bodies)


def digest(body: Json) -> str:
    """Short fingerprint of a body; equal for equal content."""
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()[:16]


def launch_config_json(head: LaunchConfigHead, body: Json) -> dict[str, Any]:
    """One launch config as the API shows it: its id is always told."""
    return {**body, "workerManager": {**head.manager, "launchConfigId": head.launch_config_id}}


def assemble(
    root: Json, heads: Sequence[LaunchConfigHead], bodies: Mapping[str, Json]
) -> dict[str, Any]:
    """The whole config; without launch configs the key is absent, as in the reference."""
    config = dict(root)
    if heads:
        config["launchConfigs"] = [
            launch_config_json(head, bodies[head.launch_config_id]) for head in heads
        ]
    return config


@dataclass(frozen=True, slots=True)
class Difference:
    """Ids of launch configs by what an update does to them, each in the caller's order."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    archived: tuple[str, ...]


def compare(before: Sequence[LaunchConfigHead], after: Sequence[LaunchConfigHead]) -> Difference:
    """What becomes of each launch config when ``before`` is replaced by ``after``."""
    old = {head.launch_config_id for head in before}
    new = {head.launch_config_id for head in after}
    return Difference(
        created=tuple(h.launch_config_id for h in after if h.launch_config_id not in old),
        updated=tuple(h.launch_config_id for h in after if h.launch_config_id in old),
        archived=tuple(h.launch_config_id for h in before if h.launch_config_id not in new),
    )


def _content(head: LaunchConfigHead) -> tuple[Json, Location, str, str]:
    return head.manager, head.location, head.digest, head.offering


def keep_modified(
    before: Sequence[LaunchConfigHead], after: Sequence[LaunchConfigHead]
) -> tuple[LaunchConfigHead, ...]:
    """``after``, where a head that did not change keeps its time of modification."""
    old = {head.launch_config_id: head for head in before}

    def same(head: LaunchConfigHead) -> LaunchConfigHead:
        was = old.get(head.launch_config_id)
        if was and _content(was) == _content(head):
            return was
        return head

    return tuple(same(head) for head in after)
