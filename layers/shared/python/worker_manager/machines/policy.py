"""What a pool's people say of the health of its machines: limits, and what is done by itself.

Nothing is, unless they say so; and nothing ever releases a machine from quarantine.
Read next: ``verdicts`` and ``remedies``, which go by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.moments import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From when on something is wrong with a machine."""

    busy_silent: timedelta = timedelta(minutes=20)
    """Without a word from a machine that holds a task, which has to renew its claim by then."""
    idle_stuck: timedelta = timedelta(minutes=30)
    """Without a claim, while tasks wait and others claim."""
    pending: timedelta = timedelta(minutes=15)
    """For which tasks must have waited, that a machine without claims is stuck."""
    missing: timedelta = timedelta(hours=2)
    """Without a word."""
    dead: timedelta = timedelta(hours=24)
    """Without a word, whatever was tried."""
    bad_in_a_row: int = 5
    """Runs that did not complete, one after the other."""
    bad_factor: float = 3.0
    """Times the share of bad runs that is usual among a machine's siblings."""
    least_runs: int = 10
    """Within a week, before anything is said of their outcomes."""
    registrations: int = 6
    """Within an hour, without a claim."""
    stale_config: timedelta = timedelta(days=7)
    """With a launch config that is no longer its pool's."""
    reformat: timedelta = timedelta(days=14)
    """Within which a machine that is flaky a second time is beyond help from afar."""
    breaker_share: float = 0.2
    """Of a pool; when more turns bad within an hour, it is not the machines."""
    breaker_least: int = 2
    """Machines that must have; one alone is no outage."""
    reboots_a_day: int = 2
    """Of one machine."""
    at_once: float = 0.05
    """Of a pool; so much is rebooted, or replaced within an hour, at most; but always one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is done by itself in a pool, and from when on."""

    reboot: bool = False
    """Reboot machines that are missing."""
    quarantine: bool = False
    """Give no more tasks to machines that fail unlike their siblings, or only ever register."""
    replace: bool = False
    """Put such machines of clouds aside, and end them once they hold no task."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    mix: Json | None = None
    """What the recommended mix goes by; it has its own words."""
    updated: datetime | None = None
    """``None`` for a pool of which nobody said anything."""
    updated_by: str = ""


def to_json(policy: Policy) -> Json:
    """As it is stored; what is usual is left out, so that it can change."""
    usual = Thresholds()
    limits = {
        one.name: _plain(getattr(policy.thresholds, one.name))
        for one in fields(Thresholds)
        if getattr(policy.thresholds, one.name) != getattr(usual, one.name)
    }
    return {
        "reboot": policy.reboot,
        "quarantine": policy.quarantine,
        "replace": policy.replace,
        "thresholds": limits,
        "updated_by": policy.updated_by,
        **({"mix": policy.mix} if policy.mix is not None else {}),
        **({"updated": to_wire(policy.updated)} if policy.updated else {}),
    }


def from_json(stored: Json) -> Policy:
    """Back from what is stored."""
    return Policy(
        reboot=stored["reboot"],
        quarantine=stored["quarantine"],
        replace=stored["replace"],
        thresholds=Thresholds(**_limits(stored["thresholds"])),
        mix=stored.get("mix"),
        updated=from_wire(stored["updated"]) if "updated" in stored else None,
        updated_by=stored["updated_by"],
    )


def _limits(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are known: a version after this one, or before, may have others."""
    usual = Thresholds()
    return {
        name: timedelta(seconds=value) if isinstance(getattr(usual, name), timedelta) else value
        for name, value in stored.items()
        if hasattr(usual, name)
    }


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
