"""Lists that are of use only together, read side by side.

Where to read next: ``listing`` and ``leftovers``, which do so.
"""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from worker_manager.core.errors import CloudUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from worker_manager.providers.visit import TimeLeft

_Answer = TypeVar("_Answer")

MOST = 4


class Together:
    """Up to ``MOST`` reads, each page of which has ``timeout`` for its answer.

    The first that fails ends the others before their next page, and nobody waits for them.
    """

    def __init__(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(MOST)
        self._reads: list[Future[Any]] = []
        self._has_failed = Event()

    def begin(self, read: Callable[[TimeLeft], _Answer]) -> Future[_Answer]:
        """Begin a read; it gets what is to be asked before each page."""
        begun = self._threads.submit(read, self._time_left)
        self._reads.append(begun)
        return begun

    def wait(self) -> None:
        """Wait until all are read; raises what the first to fail raised."""
        done, _ = wait(self._reads, return_when=FIRST_EXCEPTION)
        self._threads.shutdown(wait=False, cancel_futures=True)
        errors = [error for one in done if (error := one.exception()) is not None]
        if errors:
            self._has_failed.set()
            raise errors[0]

    def _time_left(self) -> timedelta:
        if self._has_failed.is_set():
            raise CloudUnavailableError("a list beside this one failed", code="NotRead")
        return self._timeout
