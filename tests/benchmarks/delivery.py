"""Queues of this process: what SQS does to our messages, as far as a benchmark needs it.

FIFO messages go one at a time a group and once a deduplication id; delayed ones when they are
due, in real time.  Bodies travel as JSON text, so that writing and reading them is measured too.
"""

from __future__ import annotations

import heapq
import json
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from worker_manager.queues import Message


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message on its way."""

    queue: str
    text: str
    group: str | None


@dataclass(frozen=True, slots=True)
class QueueSender:
    """The ``Sender`` of one queue."""

    delivery: Delivery
    queue: str

    def send(self, messages: Iterable[Message]) -> None:
        """As ``Sender``; never refuses."""
        for message in messages:
            self.delivery.put(self.queue, message)


@dataclass
class Delivery:
    """Hands messages to ``threads`` workers until it is closed.

    ``handlers`` are by queue; set them before the first message.  The first exception of one is
    raised by ``drain``.  ``apart`` are queues with so many workers of their own, as each function
    has concurrency of its own; ``speed`` shortens delays so many times.
    """

    threads: int
    apart: Mapping[str, int] = field(default_factory=dict)
    speed: float = 1.0
    handlers: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    delivered: int = 0
    _changed: Condition = field(default_factory=Condition)
    _ready: deque[Waiting] = field(default_factory=deque)
    _delayed: list[tuple[float, int, Waiting]] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _busy: set[tuple[str, str]] = field(default_factory=set)
    _in_flight: int = 0
    _numbers: count[int] = field(default_factory=count)
    _error: Exception | None = None
    _closed: bool = False
    _workers: list[Thread] = field(default_factory=list)

    def sender(self, queue: str) -> QueueSender:
        """Where to send to this queue."""
        return QueueSender(self, queue)

    def put(self, queue: str, message: Message) -> None:
        """Take one message; a repeated deduplication id is dropped."""
        waiting = Waiting(queue, json.dumps(message.body, separators=(",", ":")), message.group)
        with self._changed:
            if message.dedup is not None:
                if (queue, message.dedup) in self._seen:
                    return
                self._seen.add((queue, message.dedup))
            if message.delay:
                due = time.monotonic() + message.delay / self.speed
                heapq.heappush(self._delayed, (due, next(self._numbers), waiting))
            else:
                self._ready.append(waiting)
            self._changed.notify_all()

    def drain(self, *, seconds: float) -> bool:
        """Wait until nothing is left, delayed messages included; false if that takes longer."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._error, timeout=seconds)
            if self._error:
                raise self._error
            return self._idle

    def __enter__(self) -> Self:
        shares = [(None, self.threads), *self.apart.items()]
        self._workers = [
            Thread(target=self._work, args=[queue], daemon=True)
            for queue, threads in shares
            for _ in range(threads)
        ]
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    @property
    def _idle(self) -> bool:
        return not (self._ready or self._delayed or self._in_flight)

    def _work(self, only: str | None) -> None:
        while (waiting := self._take(only)) is not None:
            error = None
            try:
                self.handlers[waiting.queue](json.loads(waiting.text))
            except Exception as raised:
                error = raised
            self._done(waiting, error)

    def _take(self, only: str | None) -> Waiting | None:
        """The next message whose group is free; waits for one, ``None`` when closed.

        It is of the queue ``only``, or of any that has no workers of its own.
        """
        with self._changed:
            while not self._closed:
                self._wake_delayed()
                for index, waiting in enumerate(self._ready):
                    home = waiting.queue if waiting.queue in self.apart else None
                    if home == only and _lane(waiting) not in self._busy:
                        del self._ready[index]
                        if waiting.group is not None:
                            self._busy.add((waiting.queue, waiting.group))
                        self._in_flight += 1
                        return waiting
                self._changed.wait(self._until_due())
            return None

    def _done(self, waiting: Waiting, error: Exception | None) -> None:
        with self._changed:
            self._in_flight -= 1
            self.delivered += 1
            self._error = self._error or error
            if (lane := _lane(waiting)) is not None:
                self._busy.discard(lane)
            self._changed.notify_all()

    def _wake_delayed(self) -> None:
        now = time.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[2])

    def _until_due(self) -> float | None:
        return max(0.0, self._delayed[0][0] - time.monotonic()) if self._delayed else None


def _lane(waiting: Waiting) -> tuple[str, str] | None:
    return (waiting.queue, waiting.group) if waiting.group is not None else None
