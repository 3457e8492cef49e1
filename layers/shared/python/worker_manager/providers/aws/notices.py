"""EC2's events on EventBridge, as notices.

Their forms are in the EC2 User Guide, "Automate Amazon EC2 using EventBridge".  They come for
every instance of an account; whose an instance is, its tags tell (``listing.find_deployment``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.model import Location
from worker_manager.core.notices import Notice
from worker_manager.providers.aws.listing import STATUS

if TYPE_CHECKING:
    from worker_manager.core.model import Json

SOURCE = "aws.ec2"
STATE_CHANGE = "EC2 Instance State-change Notification"
INTERRUPTION = "EC2 Spot Instance Interruption Warning"
STATES = ("shutting-down", "stopped", "stopping", "terminated")
"""Of the states that instances change to, those in which they work no more."""


def read_notice(event: Json) -> Notice:
    """A notice from an event; ``ValueError`` or ``KeyError`` for one that we did not ask for."""
    detail, kind = event["detail"], event["detail-type"]
    status = None
    if kind == STATE_CHANGE:
        status = STATUS[detail["state"]]
    elif kind != INTERRUPTION:
        raise ValueError(f"unknown kind of event {kind!r}")
    return Notice(event["id"], Location(event["region"]), detail["instance-id"], status)
