"""What the worker manager says of runs, as far as the agent needs it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class _Answer(BaseModel):
    """Fields that are not known are new, and none of ours."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class Action(_Answer):
    """What is to be done."""

    name: str
    operation: str | None = None
    params: dict[str, Any] = {}


class Target(_Answer):
    """To which machine."""

    task_queue_id: str | None = None
    worker_group: str | None = None
    worker_id: str | None = None

    def __str__(self) -> str:
        """Its names with slashes."""
        return "/".join(filter(None, (self.task_queue_id, self.worker_group, self.worker_id)))


class Attempt(_Answer):
    """What was tried before; ``result`` is ``unknown`` if nobody knows whether it was done."""

    number: int
    method: str
    started: datetime
    result: str | None = None
    message: str = ""


class Run(_Answer):
    """One time that something is to be done."""

    run_id: str
    action: Action
    target: Target
    state: str
    requested_by: str = ""
    reason: str = ""
    attempts: list[Attempt] = []


class Claimed(_Answer):
    """A run that is ours until its lease ends."""

    run: Run
    lease_id: str


class Claims(_Answer):
    """What is to be done now."""

    runs: list[Claimed]


class Beat(_Answer):
    """What is answered to a heartbeat."""

    state: str
    worker_seen: datetime | None = None
