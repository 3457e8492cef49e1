"""For how long what was seen, or declared, is shown: decided when somebody looks.

So a change of what it depends on acts at once, and no row says by itself that it is over; rows
are kept for longer than they are shown (``registry_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.registry.entities import (
        Declaration,
        Provisioner,
        RegistryWorker,
        WorkerType,
    )


@dataclass(frozen=True, slots=True)
class Windows:
    """How long something is shown after it was last seen."""

    unseen: timedelta = timedelta(days=5)
    """A provisioner or worker type of which nothing else is known."""
    kept: timedelta = timedelta(days=30)
    """One with metadata, and the most for any."""
    shortest: timedelta = timedelta(hours=1)
    """The least that a declaration may say."""
    worker: timedelta = timedelta(days=1)
    hardware: timedelta = timedelta(days=14)
    """A worker of a type whose machines stay."""
    retention: timedelta = timedelta(days=180)
    """For how long declarations and metadata are kept after the last word or sighting."""

    def declared(self, window: timedelta) -> timedelta:
        """What a declaration says, within limits."""
        return max(self.shortest, min(window, self.kept))


def type_expires(worker_type: WorkerType, windows: Windows) -> datetime:
    """Until when a worker type is shown; of one never seen, when it would have been no longer."""
    window = _window(worker_type.declaration, windows, sticks=worker_type.has_metadata)
    return (worker_type.last_seen or worker_type.created) + window


def provisioner_expires(
    provisioner: Provisioner, windows: Windows, *, has_metadata: bool
) -> datetime:
    """The same of a provisioner; ``has_metadata`` is whether any of its types has."""
    sticks = has_metadata or provisioner.declaration.at is not None
    window = _window(provisioner.declaration, windows, sticks=sticks)
    return (provisioner.last_seen or provisioner.created) + window


def worker_expires(worker: RegistryWorker, windows: Windows, *, is_hardware: bool) -> datetime:
    """Until when a worker is shown; one that is gone is no hardware that waits.

    A declared end counts where it is the later one, and so does that of a quarantine.
    """
    window = windows.hardware if is_hardware and worker.gone is None else windows.worker
    window_ends = (worker.last_active or worker.created) + window
    ends = (window_ends, worker.explicit_expires, worker.quarantine_until)
    return max(end for end in ends if end is not None)


def is_type_listed(worker_type: WorkerType, now: datetime, windows: Windows) -> bool:
    """Whether lists show a worker type."""
    return worker_type.last_seen is not None and now < type_expires(worker_type, windows)


def is_provisioner_listed(
    provisioner: Provisioner, now: datetime, windows: Windows, *, has_metadata: bool
) -> bool:
    """Whether lists show a provisioner."""
    return provisioner.last_seen is not None and now < provisioner_expires(
        provisioner, windows, has_metadata=has_metadata
    )


def is_worker_listed(
    worker: RegistryWorker, now: datetime, windows: Windows, *, is_hardware: bool
) -> bool:
    """Whether lists show a worker: one in quarantine always, one never seen nor declared only
    then."""
    if worker.is_quarantined(now):
        return True
    return worker.last_active is not None and now < worker_expires(
        worker, windows, is_hardware=is_hardware
    )


def _window(declaration: Declaration, windows: Windows, *, sticks: bool) -> timedelta:
    if declaration.window is not None:
        return windows.declared(declaration.window)
    return windows.kept if sticks else windows.unseen
