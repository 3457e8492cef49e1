"""The breaker over a launch config, an offering or a whole provider: when to try again.

Closed while all is well, *open* after a failure that the next try would repeat, *half-open* while
one probe finds out.  What opens it says how long: no capacity comes back in minutes, a launch
config that the cloud refuses stays refused.  Each failed probe doubles the wait, up to a limit of
its kind; a probe that succeeds closes it, and what failed before is forgotten.

Refusals that any other pool would meet too are kept per *offering* (location, zone, machine type,
spot or not), so that one pool's failure spares all others the same call; credentials that do not
hold close a location as a whole; everything else is the launch config's own.

Where to read next: ``health`` (the outcomes that are judged), ``standing`` (what a breaker does to
a launch config), ``store.offerings``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from worker_manager.core.health import BOOT_KINDS, REMEMBERED, WINDOW, Health, failure_kind
from worker_manager.core.model import State
from worker_manager.core.moments import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker_manager.core.model import Json, LaunchConfigHead, Worker


def credentials_key(location: str) -> str:
    """Offering under which the breaker of the credentials is kept: all that is in a location.

    One call a location finds out that they hold nowhere; and a region that the account may not
    use takes nothing from the others.
    """
    return f"{location}/*"


SHARED_KINDS = frozenset({"no-capacity", "quota-exceeded"})
"""Refusals that say something about the offering, whoever asks."""

MINUTE = timedelta(minutes=1)

BACK_OFF: dict[str, tuple[timedelta, timedelta]] = {
    "no-capacity": (2 * MINUTE, 30 * MINUTE),
    "quota-exceeded": (10 * MINUTE, 30 * MINUTE),
    "invalid-launch-config": (30 * MINUTE, 240 * MINUTE),
    "not-authorized": (2 * MINUTE, 30 * MINUTE),
    "never-registered": (10 * MINUTE, 60 * MINUTE),
    "never-claimed": (10 * MINUTE, 60 * MINUTE),
    "lost": (1 * MINUTE, 15 * MINUTE),
    "other": (1 * MINUTE, 15 * MINUTE),
}
"""First and longest wait, by kind of failure."""

CALM = timedelta(minutes=10)
"""One that opens again so soon after it closed waits as long as it did before."""

REFUSAL_PATIENCE = 5 * MINUTE
"""How long a probe's answer may take; after it another one is due."""
BOOT_PATIENCE = 90 * MINUTE
"""The same for a machine that has to boot, register and claim before it proves anything."""

TREND = 3
"""So many machines that never came up open a breaker while others of the launch config run."""

LONGEST_REASON = 200
"""Bytes of a reason: many breakers share an item, and a message."""


class BreakerState(StrEnum):
    """Whether machines may be ordered."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is known of something that failed.

    ``since`` is when it came into its state; ``next_try`` when an open one may be probed, or when
    the probe of a half-open one is given up.  ``step`` counts how often the wait has doubled.
    ``machines`` is, for a quota, how many there may be: as many as there were when it was hit, and
    fewer each time that proves too many.  ``is_freed`` is told by a tick while there are fewer
    than that: one machine more is a small risk then, and proves nothing.  ``opened`` is when it
    left the closed state; ``kept`` the next try of one that is being probed before its time.
    """

    state: BreakerState
    kind: str
    reason: str
    since: datetime
    next_try: datetime | None = None
    step: int = 0
    machines: int | None = None
    is_freed: bool = False
    opened: datetime | None = None
    kept: datetime | None = None

    @property
    def failing_since(self) -> datetime:
        """When it opened, whatever was probed since; of a closed one, when it closed."""
        return self.since if self.is_closed or self.opened is None else self.opened

    @property
    def is_closed(self) -> bool:
        """Whether it stands in nobody's way."""
        return self.state is BreakerState.CLOSED

    def is_due(self, now: datetime) -> bool:
        """Whether a probe may be made now."""
        if self.is_closed:
            return False
        return self.is_freed or self.next_try is None or self.next_try <= now

    def to_json(self) -> dict[str, Any]:
        """As it is stored and sent."""
        values = {
            "state": self.state.value,
            "kind": self.kind,
            "reason": self.reason,
            "since": to_wire(self.since),
            "nextTry": to_wire(self.next_try) if self.next_try else None,
            "step": self.step or None,
            "machines": self.machines,
            "isFreed": self.is_freed or None,
            "opened": to_wire(self.opened) if self.opened else None,
            "kept": to_wire(self.kept) if self.kept else None,
        }
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, stored: Json) -> Breaker:
        """From what ``to_json`` made."""
        return cls(
            state=BreakerState(stored["state"]),
            kind=stored["kind"],
            reason=stored["reason"],
            since=from_wire(stored["since"]),
            next_try=from_wire(stored["nextTry"]) if "nextTry" in stored else None,
            step=int(stored.get("step", 0)),
            machines=stored.get("machines"),
            is_freed=bool(stored.get("isFreed")),
            opened=from_wire(stored["opened"]) if "opened" in stored else None,
            kept=from_wire(stored["kept"]) if "kept" in stored else None,
        )


def shortened(reason: str) -> str:
    """A reason, cut to what is kept of one."""
    return reason.encode()[:LONGEST_REASON].decode(errors="ignore")


def trip(before: Breaker | None, kind: str, reason: str, at: datetime) -> Breaker:
    """Open after a failure of ``kind`` at ``at``.

    A failed probe doubles the wait, but one before its time leaves it as it was.  One that is open
    already stays as it is: what was under way when it opened tells nothing new.
    """
    kind = failure_kind(kind)
    if before is not None and before.state is BreakerState.OPEN:
        return _lower(before, at)
    after = _opened(before, kind, at, shortened(reason))
    is_early = before is not None and before.kept is not None and before.kept > at
    if before is not None and is_early and _are_alike(before.kind, kind):
        return replace(after, next_try=before.kept, step=before.step)
    return after


def _opened(before: Breaker | None, kind: str, at: datetime, reason: str) -> Breaker:
    step = _step(before, kind, at)
    first, longest = BACK_OFF[kind]
    wait = min(first * 2 ** min(step, 10), longest)
    opened = at if before is None or before.is_closed else before.failing_since
    return Breaker(BreakerState.OPEN, kind, reason, at, at + wait, step, opened=opened)


def _lower(before: Breaker, at: datetime) -> Breaker:
    """Still open; a quota that was hit below its level has a lower one, as others use it too."""
    if before.machines is None:
        return before
    return replace(before, since=at, machines=before.machines * 2 // 3)


def _step(before: Breaker | None, kind: str, at: datetime) -> int:
    if before is None or not _are_alike(before.kind, kind):
        return 0
    if before.is_closed:
        return before.step if at - before.since <= CALM else 0
    return before.step + 1


def _are_alike(one: str, other: str) -> bool:
    """Whether a wait goes on: a place that has nothing may say so in either of two ways."""
    return one == other or SHARED_KINDS.issuperset({one, other})


def probe(before: Breaker, at: datetime) -> Breaker:
    """Half-open: one machine was ordered at ``at`` to find out.

    Where a quota has room it stays open: the machine only takes what is free.
    """
    if before.is_freed:
        return replace(before, since=at, is_freed=False)
    patience = BOOT_PATIENCE if before.kind in BOOT_KINDS else REFUSAL_PATIENCE
    kept = None if before.is_due(at) else before.next_try
    return replace(
        before, state=BreakerState.HALF_OPEN, since=at, next_try=at + patience, kept=kept
    )


def recover(before: Breaker, at: datetime) -> Breaker:
    """Closed: it works again.  It is remembered for a while, so that a relapse waits longer."""
    return replace(
        before,
        state=BreakerState.CLOSED,
        since=at,
        next_try=None,
        machines=None,
        opened=None,
        kept=None,
    )


def judge(before: Breaker | None, health: Health, *, running: int, now: datetime) -> Breaker | None:
    """A launch config's own breaker after what happened to it; ``None`` once all is forgotten.

    ``health`` are its outcomes since the breaker last closed (``health.add_up``); ``running`` how
    many of its machines run.
    """
    if before is None or before.is_closed:
        if tripped := _trips(before, health, running, now):
            return trip(before, *tripped)
        if before is not None and now - before.since > REMEMBERED:
            return None
        return before
    proof = _proof(before.kind, health)
    if before.state is BreakerState.OPEN:
        return recover(before, proof) if proof is not None and proof > before.since else before
    # What a probe comes to may bear the very time of its order.
    if proof is not None and proof >= before.since:
        return recover(before, proof)
    return _judge_probe(before, health, now)


def _judge_probe(before: Breaker, health: Health, now: datetime) -> Breaker:
    """A half-open breaker whose probe has not succeeded by now."""
    failed = health.failed_at
    if failed is not None and failed >= before.since:
        if not _is_shared(health.failed_kind):
            return trip(before, health.failed_kind, health.failed_reason, now)
        # The place had no machine for the probe: it tells nothing, and is to be made again.
        return replace(before, state=BreakerState.OPEN, since=now, next_try=now)
    launched = health.launched_at is not None and health.launched_at >= before.since
    if not launched and REFUSAL_PATIENCE < now - before.since < WINDOW:
        # No machine came of it, as where it was never sent: no need to wait for its boot.
        return replace(before, next_try=before.since + REFUSAL_PATIENCE)
    return before


def _trips(
    before: Breaker | None, health: Health, running: int, now: datetime
) -> tuple[str, str, datetime] | None:
    """Kind, reason and time, if the outcomes open a closed breaker.

    Machines that never came up are judged by their number, whatever failed last: in a place that
    is short of machines too, a broken image is still one.
    """
    bad, good = health.boot_failures, health.came_up
    if bad > good and (not running or bad >= TREND):
        kind = max(sorted(BOOT_KINDS), key=lambda one: health.failed.get(one, 0))
        last = health.failed_reason if health.failed_kind == kind else ""
        return kind, last or f"{bad} machines never came up, {good} did", now
    failed, kind = health.failed_at, health.failed_kind
    if failed is None or kind in BOOT_KINDS or _is_shared(kind):
        return None
    if before is not None and failed <= before.since:
        return None
    if health.launched_at is not None and health.launched_at > failed:
        return None
    return kind, health.failed_reason, now


def _is_shared(kind: str) -> bool:
    return kind in SHARED_KINDS


def _proof(kind: str, health: Health) -> datetime | None:
    """When the contrary of ``kind`` last happened."""
    if kind == "never-claimed":
        return health.claimed_at
    if kind == "never-registered":
        return health.registered_at
    return health.launched_at


def judge_all(
    heads: Iterable[LaunchConfigHead],
    breakers: Mapping[str, Breaker],
    health: Mapping[str, Health],
    workers: Iterable[Worker],
    now: datetime,
) -> dict[str, Breaker]:
    """The launch configs' own breakers after what happened to them; forgotten ones left out."""
    running = Counter(
        worker.launch_config_id for worker in workers if worker.state is State.RUNNING
    )
    judged = {}
    for head in heads:
        name = head.launch_config_id
        seen = health.get(name, Health())
        after = judge(breakers.get(name), seen, running=running[name], now=now)
        if after is not None:
            judged[name] = after
    return judged
