"""Every waiting time that decides something, in one place, so that a faster stage is consistent.

Values are AWS-scale defaults; ``settings`` may scale them for a local stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits and graces.  All are durations."""

    tick: timedelta = timedelta(seconds=30)
    """Between two provision ticks of a pool."""
    scan: timedelta = timedelta(seconds=60)
    """Between two scans of a location."""
    list_lag: timedelta = timedelta(seconds=30)
    """How far a cloud's list may lag behind its launches."""
    resend: timedelta = timedelta(minutes=10)
    """How long after its first send an order may be sent again with the same token."""
    stray_grace: timedelta = timedelta(minutes=10)
    """How old a machine of ours without row or order must be before it is terminated."""
    leftover_grace: timedelta = timedelta(minutes=20)
    """How old what outlived its machine must be before it is removed."""
    slots_kept: timedelta = timedelta(hours=4)
    """After which an order no longer holds room for what it was to make."""
    stopping_limit: timedelta = timedelta(minutes=20)
    """After which a machine that is still being deleted is alarmed and stops counting."""
    repeat: timedelta = timedelta(minutes=10)
    """A registration repeated within this time gets an answer instead of a refusal."""
    launch: timedelta = timedelta(minutes=30)
    """How long a cloud may take from an order until the machine runs, at least."""
    sighting: timedelta = timedelta(minutes=30)
    """How much earlier than it was a worker's last call may be told."""
    reboot: timedelta = timedelta(seconds=45)
    """From when a cloud was told to reboot a machine until that is surely down: who is heard of
    later is back."""
    comes_back: timedelta = timedelta(minutes=30)
    """How long a worker may take from when its machine is up again until it is heard of."""
    examine: timedelta = timedelta(minutes=5)
    """Between two looks at all machines; whole minutes, one at least."""
    shortest_inactivity: timedelta = timedelta(seconds=1200)
    """Least that a pool may set as ``queueInactivityTimeout``."""
    plan_kept: timedelta = timedelta(days=14)
    worker_kept: timedelta = timedelta(days=8)
    """How long a stopped worker's row stays."""
    errors_kept: timedelta = timedelta(days=7)
    audit_kept: timedelta = timedelta(days=400)
    """How long it is known who changed what: a year, and some weeks to look back on it."""
    launch_config_kept: timedelta = timedelta(days=8)
    """How long an archived launch config's body stays without workers."""
    location_kept: timedelta = timedelta(days=30)
    """How long a location without live rows is still listed."""

    @property
    def location_stale(self) -> timedelta:
        """A location not listed to its end for this long is stale."""
        return 3 * self.scan
