"""What a test of the provider contract needs of each cloud, besides its provider.

Where to read next: ``test_contract`` (the contract), ``stages`` (the clouds it runs over).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import LaunchOrder, Location, Worker, WorkerKey
    from worker_manager.providers.fake import Method
    from worker_manager.providers.protocol import CloudProvider


IMPATIENCE = timedelta(milliseconds=200)
"""How long an impatient provider waits for an answer."""
HANGS_SECONDS = 3600.0
"""Longer than any test may take: whoever does not give up is noticed by that."""


class Stage(Protocol):
    """One cloud under a test's control.  Its machines run as soon as they are launched."""

    location: Location
    """Where its machines are listed."""
    group: str
    """The worker group of its machines."""
    absent: Worker
    """A worker of which the cloud knows nothing."""

    def order(self, **given: Any) -> LaunchOrder:
        """An order of two machines there, with fields changed."""

    @property
    def provider(self) -> CloudProvider:
        """The provider under test."""

    @property
    def elsewhere(self) -> CloudProvider:
        """The same cloud's provider in another deployment."""

    @property
    def impatient(self) -> CloudProvider:
        """The provider under test, with ``IMPATIENCE``."""

    def allow(self, count: int) -> None:
        """Have room for so many machines of the orders' kind in all."""

    def stop(self, key: WorkerKey) -> None:
        """Power a machine off without deleting it."""

    def vanish(self, key: WorkerKey) -> None:
        """Take a machine away so that nobody remembers it."""

    def reboots(self, key: WorkerKey) -> int:
        """How often a machine booted anew since it was launched."""

    def hide_new_machines(self, lag: timedelta) -> None:
        """Let answers know of a machine only so long after its launch."""

    def pass_time(self, time: timedelta) -> None:
        """Move the cloud's clock."""

    def refuse(self, method: Method, error: type[CloudError]) -> None:
        """Let the next call, or all calls of the next order, fail before they act, meaning this."""

    def hang(self, method: Method) -> None:
        """Let the next call, or all calls of the next order, neither act nor be answered."""

    def lose_answer(self, method: Method) -> None:
        """Let the next call, or all calls of the next order, act and their answers get lost."""


class StepwiseStage(Stage, Protocol):
    """A cloud that accepts launches first, under a test's control."""

    def lose_one_answer(self) -> None:
        """Let one machine of the next order be accepted, and the answer get lost."""

    def slow_down(self) -> None:
        """Let machines take a minute to be made from now on."""

    def fail_next_creation(self, error: type[CloudError]) -> None:
        """Let the next machine's creation be accepted, and fail then, meaning this error."""
