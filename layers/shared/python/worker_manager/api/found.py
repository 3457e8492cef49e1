"""Workers of all task queues as values: who is wanted, what is known of one, how far one came.

Where to read next: ``everyone``, which goes through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from worker_manager.core.ids import is_identifier, is_pool_id
from worker_manager.registry import figures

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import State, Worker, WorkerKey
    from worker_manager.registry.entities import RegistryWorker

STANDALONE: Literal["standalone"] = "standalone"
"""The state of a worker that has no row of ours."""
NO_PROVIDER = "none"
"""Its provider."""
BEGINNING = "-"
"""Where walks begin, as a text."""

Name = tuple[str, str]
"""A worker's group and id."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of one worker: by the registry, by our row, or by both."""

    key: WorkerKey
    seen: RegistryWorker | None
    row: Worker | None

    @property
    def state(self) -> State | Literal["standalone"]:
        """Its state, as our row has it."""
        return self.row.state if self.row else STANDALONE

    @property
    def provider_id(self) -> str:
        """Who made it."""
        return self.row.provider_id if self.row else NO_PROVIDER

    def is_quarantined(self, now: datetime) -> bool:
        """Whether it gets no tasks."""
        return self.seen is not None and self.seen.is_quarantined(now)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which workers somebody is after; ``None`` where any will do."""

    task_queue_id: str | None = None
    provisioner_id: str | None = None
    worker_group: str | None = None
    worker_id: str = ""
    """What the worker's id begins with, in large or small letters."""
    state: str | None = None
    quarantined: bool | None = None
    health: str | None = None
    cloud_provider_id: str | None = None
    launch_config_id: str | None = None
    is_gone: bool | None = None
    """Whether its machine has ended."""

    @property
    def is_everything(self) -> bool:
        """Whether every worker of the queues in question will do."""
        return self == Wanted(self.task_queue_id, self.provisioner_id)

    def has_queue(self, queue_id: str) -> bool:
        """Whether workers of this queue may be among them."""
        is_it = self.task_queue_id in (None, queue_id)
        return is_it and self.provisioner_id in (None, queue_id.partition("/")[0])

    def has(self, found: Found, now: datetime) -> bool:
        """Whether this worker is one of them."""
        if not found.key.worker_id.lower().startswith(self.worker_id.lower()):
            return False
        launch_config_id = found.row.launch_config_id if found.row else None
        facts = (
            (self.worker_group, found.key.group),
            (self.state, found.state),
            (self.quarantined, found.is_quarantined(now)),
            (self.cloud_provider_id, found.provider_id),
            (self.launch_config_id, launch_config_id),
            (self.is_gone, figures.is_gone(found.seen, found.row)),
            (self.health, self.health and figures.health(found.seen, found.row, now)),
        )
        return all(wanted is None or wanted == value for wanted, value in facts)


class Place(NamedTuple):
    """How far a walk came: to this worker of a queue, or without a name to the queue's end."""

    queue_id: str = ""
    name: Name | None = None

    @classmethod
    def of(cls, key: WorkerKey) -> Place:
        """Just behind a worker."""
        return cls(key.pool_id, (key.group, key.worker_id))

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """Back from its text; without one, where walks begin."""
        if text is None or text == BEGINNING:
            return cls()
        queue_id, *name = text.split("#")
        return cls(queue_id, (name[0], name[1]) if name else None)

    @staticmethod
    def is_one(text: str) -> bool:
        """Whether a text is that of a place."""
        if text == BEGINNING:
            return True
        queue_id, *name = text.split("#")
        return is_pool_id(queue_id) and len(name) in (0, 2) and all(map(is_identifier, name))

    def __str__(self) -> str:
        """For a token."""
        return "#".join((self.queue_id or BEGINNING, *(self.name or ())))

    def precedes(self, key: WorkerKey) -> bool:
        """Whether a worker is still to come."""
        if key.pool_id != self.queue_id:
            return key.pool_id > self.queue_id
        return self.name is not None and (key.group, key.worker_id) > self.name
