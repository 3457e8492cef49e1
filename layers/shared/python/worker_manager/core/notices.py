"""What a cloud tells of single machines of its own accord, between two lists.

Notices come unordered, twice, late or never, and of everybody's machines: each is a reason to look
at a machine, and only what cannot be undone is believed without looking.  Where to read next:
``reconcile.notices`` (what is done about them), ``providers.aws.notices`` (how EC2 says it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.model import MachineStatus

if TYPE_CHECKING:
    from collections.abc import Collection

    from worker_manager.core.model import Location


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice: ``status`` is what the machine has become.

    ``None`` warns that the cloud is about to take the machine back.
    """

    notice_id: str
    location: Location
    worker_id: str
    status: MachineStatus | None


IRREVERSIBLE = (MachineStatus.GONE, MachineStatus.STOPPING)
"""The last states of a machine, the very last one first."""


def fate(told: Collection[MachineStatus | None], seen: MachineStatus) -> MachineStatus:
    """What has become of a machine that a cloud gave notice of and, asked, showed as ``seen``.

    A machine that is being deleted, or is gone, never comes back, whichever of the two says so
    first; for the rest the answer counts, because a stopped machine may have been started again.
    """
    for status in IRREVERSIBLE:
        if status is seen or status in told:
            return status
    return seen
