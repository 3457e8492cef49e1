"""The wire: what a pool's people want of the mix of machines, and what is recommended.

Where to read next: ``mix``, which answers; ``machine_schemas``, whose policies have a part here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, model_validator

from worker_manager.api.validation import (
    NO_DISGUISE,
    Answer,
    Identifier,
    Moment,
    PoolId,
    WholeNumber,
    Wire,
)
from worker_manager.mix.entities import DEFAULT_CLASS, Wishes


class MixPolicy(Wire):
    """Takes a pool into the recommended mix, and says what is wanted there.

    ``weight`` is how much its waiting counts beside that of others; ``waitSeconds`` how long tasks
    may wait before waiting counts in full; ``machineClasses`` which machines can do its tasks.
    """

    weight: Annotated[float, Field(ge=0.01, le=100), NO_DISGUISE] = 1.0
    minimum: WholeNumber = 0
    maximum: WholeNumber | None = None
    wait_seconds: WholeNumber = 0
    machine_classes: list[Identifier] = Field(default=[DEFAULT_CLASS], min_length=1, max_length=20)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.maximum is not None and self.maximum < self.minimum:
            raise ValueError("maximum is less than minimum")
        return self

    def wishes(self) -> Wishes:
        """As the recommender takes them."""
        return Wishes(
            weight=self.weight,
            minimum=self.minimum,
            maximum=self.maximum,
            target=timedelta(seconds=self.wait_seconds),
            classes=tuple(self.machine_classes),
        )


class MixLine(Answer):
    """One pool: its machines that can work, how many it had better have, and the waits of both.

    ``unusable`` machines are in quarantine, or silent.  ``demand`` is how many would be at work
    95 % of the time; ``waitSeconds`` what 95 of 100 tasks do not wait longer than, left out where
    they wait for ever; ``weeklyWaitSeconds`` what all tasks of a week wait together.
    """

    task_queue_id: PoolId
    machines: int
    unusable: int
    proposed: int
    change: int
    demand: float | None = None
    task_seconds: float | None = None
    wait_seconds: float | None = None
    proposed_wait_seconds: float | None = None
    weekly_wait_seconds: float | None = None
    proposed_weekly_wait_seconds: float | None = None
    reason: str


class MixMove(Answer):
    """One machine that had better work for another pool."""

    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    machine_class: str
    to_task_queue_id: PoolId
    reason: str


class MixResponse(Answer):
    """A mix, to be carried out by people or not; ``reason`` says what it saves, or why there is
    none.  ``most`` is how many machines may be moved in a week."""

    at: Moment
    weeks: int
    most: int
    reason: str
    pools: list[MixLine]
    moves: list[MixMove]
