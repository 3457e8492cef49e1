"""Throttling by token buckets, off until asked for.

Which call draws on which bucket, and its published rate, is each cloud's own matter.  Read next: a
cloud's ``service``, which takes the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rate:
    """A bucket's size in tokens and its refill in tokens a second."""

    size: float
    refill: float


@dataclass(slots=True)
class _Bucket:
    rate: Rate
    tokens: float
    updated: float

    def take(self, count: float, now: float) -> float:
        refilled = self.tokens + (now - self.updated) * self.rate.refill
        self.tokens, self.updated = min(self.rate.size, refilled), now
        if self.tokens >= count:
            self.tokens -= count
            return 0.0
        return (count - self.tokens) / self.rate.refill if self.rate.refill else inf


class Buckets:
    """All buckets of one account.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self) -> None:
        self.enabled = False
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._overrides: dict[str, Rate] = {}

    def enable(self, overrides: Mapping[str, Rate] | None = None) -> None:
        """Start throttling with full buckets.  ``overrides`` replace rates, by bucket name."""
        self.enabled = True
        self._buckets = {}
        self._overrides = dict(overrides or {})

    def disable(self) -> None:
        """Stop throttling."""
        self.enabled = False

    def take(self, name: str, rate: Rate, *, place: str, now: float, count: float = 1) -> float:
        """Pay for a call: 0 when the bucket of that place had enough, and nothing is taken else.

        Then it is the seconds until there would be enough; infinite without refill.
        """
        if not self.enabled:
            return 0.0
        rate = self._overrides.get(name, rate)
        bucket = self._buckets.get((place, name))
        if bucket is None:
            bucket = self._buckets[place, name] = _Bucket(rate, rate.size, now)
        return bucket.take(count, now)
