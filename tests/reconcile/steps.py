"""Counting every step that leaves a trace, and stopping the world at one of them.

A step is a write to a table, a cloud call that acts, an event or a message.  ``Fuse`` raises at the
step it is set to and, as a dead process does nothing more, at every later one until it is reset.
Where to read next: ``world``, which passes all of its steps through one fuse.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.event_shapes import check_shapes
from worker_manager.core.errors import NotStoredError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from worker_manager.core.model import Json
    from worker_manager.queues import Message

READS = frozenset({"GetItem", "Query", "BatchGetItem", "Scan"})


class CrashError(BaseException):
    """The process under test died here; nothing in it could have caught that."""


@dataclass
class Fuse:
    """Counts steps and requests; ``on_step`` and ``on_request`` hear of each before it happens."""

    crash_at: int | None = None
    steps: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    on_request: Callable[[str], None] | None = None
    blown: bool = False
    muted: bool = False

    def step(self, name: str) -> None:
        if self.muted:
            return
        if self.blown:
            raise CrashError(name)
        self.steps.append(name)
        if self.crash_at == len(self.steps):
            self.blown = True
            raise CrashError(f"step {self.crash_at}: {name}")
        self._tell(name)

    def request(self, model: Any, **_: Any) -> None:
        """A hook for botocore's ``before-call.dynamodb``."""
        if self.muted:
            return
        self.requests[model.name] += 1
        if model.name in READS:
            if self.blown:
                raise CrashError(model.name)
            self._tell(model.name)
        else:
            self.step(model.name)

    def reset(self, crash_at: int | None = None) -> None:
        self.crash_at = crash_at
        self.blown = False
        self.steps.clear()
        self.requests.clear()

    def _tell(self, name: str) -> None:
        if self.on_request is not None:
            self.on_request(name)


@dataclass
class Clock:
    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class MemoryBus:
    """Accepts events unless told not to."""

    fuse: Fuse
    published: list[Json] = field(default_factory=list)
    refusing: bool = False

    def publish(self, events: Sequence[Json]) -> set[str]:
        if not events:
            return set()
        check_shapes(events)
        self.fuse.step("publish")
        if self.refusing:
            return set()
        self.published.extend(events)
        return {event["id"] for event in events}

    def names(self, worker_id: str | None = None) -> list[str]:
        return [
            event["name"]
            for event in self.published
            if worker_id is None or event["detail"].get("workerId") == worker_id
        ]


@dataclass(frozen=True)
class Delivery:
    """A message on its way to a queue's function, due at ``due``."""

    provider_id: str
    queue: str
    body: Json
    due: datetime


@dataclass
class MemorySender:
    """One queue of one provider; everything lands in ``mail``."""

    provider_id: str
    queue: str
    mail: list[Delivery]
    clock: Clock
    fuse: Fuse

    def send(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.fuse.step(f"send {self.queue}")
            due = self.clock.now + timedelta(seconds=message.delay)
            self.mail.append(Delivery(self.provider_id, self.queue, message.body, due))


@dataclass
class MemoryBlobs:
    texts: dict[str, str] = field(default_factory=dict)
    refusing: bool = False

    def put(self, key: str, text: str) -> None:
        if self.refusing:
            raise NotStoredError(key)
        self.texts[key] = text

    def get(self, key: str) -> str | None:
        return self.texts.get(key)
