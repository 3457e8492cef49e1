"""Decisions as they are kept: plans and their orders, and what a pool's control item remembers.

Where to read next: ``planning`` (who makes them), ``store.plans`` (how they are written).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.breaker import Breaker
    from worker_manager.core.model import Json, Location


class OrderState(StrEnum):
    """What became of a noted order."""

    NOTED = "noted"
    SENT = "sent"
    SETTLED = "settled"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Order:
    """A decision to launch ``count`` machines of one launch config, as noted in a plan.

    ``doubtful`` once it is sent again although an earlier answer was lost: machines of it may
    exist whatever later calls answer.  ``is_probe`` if it is to find out whether an open breaker
    may close.  Of an open one ``launched`` have rows and ``refused`` were refused; of the others
    nobody knows yet.  The ``barred`` among the refused will never be: where names are ours, the
    order is sent again without them, and else with all.
    """

    order_id: str
    launch_config_id: str
    location: Location
    count: int
    capacity_per_instance: int
    state: OrderState = OrderState.NOTED
    doubtful: bool = False
    is_probe: bool = False
    offering: str = ""
    first_sent: datetime | None = None
    last_sent: datetime | None = None
    not_before: datetime | None = None
    launched: int = 0
    refused: int = 0
    barred: int = 0
    error: Json | None = None

    @property
    def is_open(self) -> bool:
        """Whether machines of this order may still appear."""
        return self.state in (OrderState.NOTED, OrderState.SENT)


@dataclass(frozen=True, slots=True)
class Plan:
    """The write-ahead record of one provision tick: facts, reasons and orders.

    ``inputs`` are the parts of its requests that could not be derived again later (``owner``,
    ``rootUrl``, ``deployment``): with them a re-send is equal to the byte.
    """

    pool_id: str
    tick: str
    provider_id: str
    now: datetime
    orders: tuple[Order, ...]
    facts: Json
    reasons: tuple[str, ...]
    inputs: Json = field(default_factory=dict)
    version: int = 0
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """A launch config that somebody took out of use for a while; it ends by itself."""

    until: datetime
    reason: str
    by: str
    since: datetime


def pause_json(pause: Pause) -> dict[str, str]:
    """A pause as it is stored and compared."""
    return {
        "until": to_wire(pause.until),
        "reason": pause.reason,
        "by": pause.by,
        "since": to_wire(pause.since),
    }


@dataclass(frozen=True, slots=True)
class Control:
    """A pool's control item: the fence that only one planner passes, and what it remembers.

    ``open_plans`` are tick → provider id; ``breakers`` the launch configs' own, and ``pauses``
    what operators asked for, by launch config id.  ``probed`` is when the pool last probed although
    all of its launch configs were closed off, ``probe_wait`` how long it waits before the next.
    """

    pool_id: str
    version: int = 0
    open_plans: Mapping[str, str] = field(default_factory=dict)
    reasons_hash: str = ""
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    probed: datetime | None = None
    probe_wait: timedelta = timedelta(0)
