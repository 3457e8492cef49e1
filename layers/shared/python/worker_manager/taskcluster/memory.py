"""Answers that are believed for a while: each until its own end, the oldest given up for new ones.

Where to read next: ``remote_auth``, which keeps what an auth service said, and
``api.queue_workers``, which keeps what a queue listed.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

_T = TypeVar("_T")


class Memory(Generic[_T]):
    """At most ``largest`` answers by key.  Safe to use from threads."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._kept: dict[str, tuple[_T, datetime]] = {}
        self._lock = Lock()

    def get(self, key: str, now: datetime) -> _T | None:
        """What is kept under ``key`` and has not ended."""
        with self._lock:
            answer, until = self._kept.get(key, (None, now))
            if until > now:
                return answer
            self._kept.pop(key, None)
            return None

    def put(self, key: str, answer: _T, *, until: datetime, now: datetime) -> None:
        """Keep ``answer`` until then; one that has ended is not kept at all."""
        with self._lock:
            self._kept.pop(key, None)
            if until <= now:
                return
            if len(self._kept) >= self._largest:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = answer, until
