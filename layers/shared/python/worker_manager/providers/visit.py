"""One visit to a cloud: calls side by side, begun as long as there is time and patience.

Some clouds have no call for many machines that tells what became of each, so an order of a hundred
is a hundred calls.  A visit is over when the last of them must have ended: whoever begins late gets
less time for its answer, and what could not begin at all is told as throttled, so that it is asked
again at once.  Where to read next: ``answers`` (what all the calls of an order come to).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    NotBegunError,
    ThrottledError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    TimeLeft = Callable[[], timedelta]
    """Asked right before each call for how long its answer may take; may raise a ``CloudError``."""

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

CONNECT_TIMEOUT = timedelta(seconds=3)
READ_TIMEOUT = timedelta(seconds=20)
"""What a call has to connect, and for each read, if there is time."""
LONGEST = timedelta(seconds=25)
"""The last call of a visit ends by then."""
LEAST_READ = timedelta(seconds=5)
"""A call that could be given less is not begun."""
SOON = timedelta(seconds=1)
NOT_BEGUN = "NotBegun"


class Visits:
    """The visits of one provider, which together make at most ``parallel`` calls at once.

    ``least_read`` is the whole ``read_timeout`` where a call cannot be given less.  ``monotonic``
    gives seconds.
    """

    def __init__(
        self,
        *,
        parallel: int,
        read_timeout: timedelta = READ_TIMEOUT,
        least_read: timedelta = LEAST_READ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.read_timeout = read_timeout
        self.least_read = min(read_timeout, least_read)
        self.monotonic = monotonic
        self.threads = ThreadPoolExecutor(parallel, thread_name_prefix="visit")

    def begin(self) -> Visit:
        """A visit whose time runs from now on."""
        return Visit(self)


class Visit:
    """One visit; ``Visits`` begins it.  Its time is over ``LONGEST`` after that."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        self._began = visits.monotonic()
        self._held: CloudError | None = None

    def timeout(self) -> timedelta:
        """How long a call that begins now may wait for its answer; ``NotBegunError`` if too short.

        For every call, the second and third about the same thing, too.
        """
        spent = timedelta(seconds=self._visits.monotonic() - self._began)
        left = LONGEST - CONNECT_TIMEOUT - spent
        if left < self._visits.least_read:
            raise NotBegunError(
                f"{NOT_BEGUN}: too many calls for one visit", code=NOT_BEGUN, retry_after=SOON
            )
        return min(self._visits.read_timeout, left)

    def each(
        self, call: Callable[[_Item], _Answer], items: Iterable[_Item]
    ) -> list[_Answer | CloudError]:
        """What ``call`` answers to each item, or its ``CloudError``, in their order.

        Once the cloud says to wait, or does not know us, no further call of the visit is begun.
        ``call`` may not ask for ``each`` in its turn.
        """
        asked = list(items)

        def ask(item: _Item) -> _Answer | CloudError:
            try:
                if self._held is not None:
                    return self._held
                self.timeout()
                return call(item)
            except (ThrottledError, BadCredentialsError) as error:
                self._held = self._held or error
                return error
            except CloudError as error:
                return error

        if len(asked) <= 1:
            return [ask(item) for item in asked]
        return list(self._visits.threads.map(ask, asked))
