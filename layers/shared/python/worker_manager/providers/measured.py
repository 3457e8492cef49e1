"""A provider that counts what is asked of another: calls, errors and seconds, by method.

A scan's report says with it what the cloud cost.  Where to read next: ``protocol``.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from worker_manager.core.model import (
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )
    from worker_manager.providers.protocol import CloudProvider, Launched, Terminated


@dataclass(slots=True)
class Usage:
    """What one method cost so far.  ``seconds`` of parallel calls add up."""

    calls: int = 0
    errors: int = 0
    seconds: float = 0.0


class MeasuredProvider:
    """``inner`` with its ``usage`` counted by method name.

    ``monotonic`` gives seconds that never go back.  Threads may share it.
    """

    def __init__(self, inner: CloudProvider, *, monotonic: Callable[[], float]) -> None:
        self.provider_id = inner.provider_id
        self.usage: dict[str, Usage] = {}
        self._inner = inner
        self._monotonic = monotonic
        self._lock = Lock()

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """As ``inner``; asks no cloud, so it is not counted."""
        return self._inner.locations(heads)

    def instances(self, location: Location) -> Iterator[Sighting]:
        """As ``inner``, as one call; what the reader does between two machines is not counted."""
        with self._counted("instances"):
            sightings = iter(self._inner.instances(location))
        while True:
            with self._counted("instances", calls=0):
                seen = next(sightings, None)
            if seen is None:
                return
            yield seen

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """As ``inner``."""
        with self._counted("lookup"):
            return self._inner.lookup(location, workers)

    def launch(self, order: LaunchOrder) -> Launched:
        """As ``inner``."""
        with self._counted("launch"):
            return self._inner.launch(order)

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """As ``inner``."""
        with self._counted("terminate"):
            return self._inner.terminate(workers)

    @contextmanager
    def _counted(self, method: str, *, calls: int = 1) -> Iterator[None]:
        """Add what happens inside to the method's usage."""
        began = self._monotonic()
        errors = 1
        try:
            yield
            errors = 0
        finally:
            seconds = self._monotonic() - began
            with self._lock:
                usage = self.usage.setdefault(method, Usage())
                usage.calls += calls
                usage.errors += errors
                usage.seconds += seconds
