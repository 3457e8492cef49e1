"""One visit to Azure: many calls side by side, begun as long as there is time and patience.

Azure has no call for many machines, so an order of a hundred is a hundred calls.  A visit is over
when the last of them must have ended; what it could not begin is told as throttled, so that it is
asked again at once.  Where to read next: ``launching``, ``following``, ``ending``.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from worker_manager.core.errors import BadCredentialsError, CloudError, ThrottledError
from worker_manager.providers.azure.arm import CONNECT_TIMEOUT, READ_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

LONGEST = timedelta(seconds=25)
"""The last call ends by then."""
LEAST_READ = timedelta(seconds=5)
"""A call that could be given less is not begun."""
SOON = timedelta(seconds=1)
PARALLEL = 16
NOT_BEGUN = "NotBegun"


class Visit:
    """``monotonic`` gives seconds; ``read_timeout`` is what a call has at the most."""

    def __init__(
        self,
        *,
        read_timeout: timedelta = READ_TIMEOUT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_timeout = read_timeout
        self._monotonic = monotonic
        self._began = monotonic()
        self._held: CloudError | None = None

    def timeout(self) -> timedelta:
        """How long a call that begins now may wait for its answer."""
        return min(self._read_timeout, self._left())

    def each(
        self, call: Callable[[_Item], _Answer], items: Iterable[_Item]
    ) -> list[_Answer | CloudError]:
        """What ``call`` answers to each item, or its ``CloudError``, in their order.

        Once Azure says to wait, or does not know us, no further call is begun.
        """
        asked = list(items)

        def ask(item: _Item) -> _Answer | CloudError:
            try:
                self._begin()
                return call(item)
            except (ThrottledError, BadCredentialsError) as error:
                self._held = self._held or error
                return error
            except CloudError as error:
                return error

        if len(asked) <= 1:
            return [ask(item) for item in asked]
        with ThreadPoolExecutor(min(PARALLEL, len(asked))) as threads:
            return list(threads.map(ask, asked))

    def _begin(self) -> None:
        """Raise the reason for which no further call is begun, if there is one."""
        if self._held is not None:
            raise self._held
        if self._left() < min(self._read_timeout, LEAST_READ):
            raise ThrottledError(
                f"{NOT_BEGUN}: too many calls for one visit", code=NOT_BEGUN, retry_after=SOON
            )

    def _left(self) -> timedelta:
        spent = timedelta(seconds=self._monotonic() - self._began)
        return LONGEST - CONNECT_TIMEOUT - spent
