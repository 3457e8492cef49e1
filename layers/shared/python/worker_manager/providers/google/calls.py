"""Calls about one machine each, side by side and within a time limit.

Compute Engine has no call for many machines that tells what became of each, so there are as many
calls as machines.  All of them together are over in ``CALL_LIMIT``: whoever begins late gets less
time for its answer, and what could not begin at all waits for another time, as it does after the
cloud asked us to slow down.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from google.api_core.timeout import ConstantTimeout

from worker_manager.core.errors import CloudError, ThrottledError
from worker_manager.providers.google.errors import cloud_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    TimeLeft = Callable[[], ConstantTimeout]
    """Asked right before each call for its timeouts; ``ThrottledError`` if there is no time."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")

CONNECT_TIMEOUT = timedelta(seconds=3)
READ_TIMEOUT = timedelta(seconds=20)
CALL_LIMIT = timedelta(seconds=25)
SHORTEST_READ = timedelta(seconds=5)
"""A call that would have less time for its answer is not begun."""
NOT_BEGUN_RETRY = timedelta(seconds=1)

PARALLEL = 10
"""As many as the SDK's HTTP session keeps connections for."""


class Calls:
    """Makes the calls of one provider, at most ``PARALLEL`` at once, whoever asks for them.

    ``clock`` counts seconds and never goes back.
    """

    def __init__(
        self,
        *,
        read_timeout: timedelta = READ_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_timeout = read_timeout
        self._clock = clock
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="compute")

    @property
    def timeouts(self) -> tuple[float, float]:
        """Seconds that a call on its own may take to connect, and for each read."""
        return CONNECT_TIMEOUT.total_seconds(), self._read_timeout.total_seconds()

    def side_by_side(
        self,
        call: Callable[[Item, TimeLeft], Answer],
        items: Sequence[Item],
        *,
        launching: bool = False,
        hide: str = "",
    ) -> list[Answer | CloudError]:
        """What ``call`` answers to each item, or the error that it met; in their order.

        A throttled call ends the asking, and the items still waiting share its error.
        ``launching`` and ``hide`` are as for ``cloud_errors``.
        """
        began = self._clock()
        throttled: list[ThrottledError] = []

        def ask(item: Item) -> Answer | CloudError:
            try:
                if throttled:
                    return throttled[0]
                with cloud_errors(launching=launching, hide=hide):
                    return call(item, partial(self._time_left, began))
            except ThrottledError as error:
                throttled.append(error)
                return error
            except CloudError as error:
                return error

        if len(items) <= 1:
            return [ask(item) for item in items]
        return list(self._pool.map(ask, items))

    def _time_left(self, began: float) -> ConstantTimeout:
        """What is left for a call that begins now; ``ThrottledError`` if it is too little."""
        connect, most = self.timeouts
        left = CALL_LIMIT.total_seconds() - (self._clock() - began) - connect
        if left < SHORTEST_READ.total_seconds():
            raise ThrottledError(
                "there was no time left for this call", code="NotBegun", retry_after=NOT_BEGUN_RETRY
            )
        return ConstantTimeout((connect, min(most, left)))  # type: ignore[no-untyped-call]
