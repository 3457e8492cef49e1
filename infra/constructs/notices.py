"""What EC2 tells of machines of its own accord, on EventBridge: which of it, and whereto.

EC2 tells of every instance of the account, on the default bus of the instance's own region.  The
function behind asks whose an instance is: events carry no tags that a rule could look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Environment, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets

from worker_manager.providers.aws.notices import INTERRUPTION, SOURCE, STATE_CHANGE, STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constructs import Construct

    from infra.settings import StageSettings


def notice_pattern() -> events.EventPattern:
    """Ends of instances, and warnings that spot instances are about to be taken back."""
    return events.EventPattern(
        source=[SOURCE],
        detail_type=[STATE_CHANGE, INTERRUPTION],
        detail={"$or": [{"state": list(STATES)}, {"instance-action": [{"exists": True}]}]},
    )


def hand_over_notices(
    scope: Construct,
    *,
    name: str,
    target: events.IRuleTarget,
    buses: Sequence[events.IEventBus | None],
) -> None:
    """Send the notices of these buses to a target; ``None`` is the region's default bus."""
    for bus in buses:
        events.Rule(
            scope,
            "NoticeRule" if bus is None else "ForwardedNoticeRule",
            rule_name=name if bus is None else f"{name}-forwarded",
            event_bus=bus,
            event_pattern=notice_pattern(),
            targets=[target],
        )


class NoticeForwarding(Stack):
    """In a region without our functions: its notices go to the stage's own bus, where they are."""

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: StageSettings, region: str
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.resource_name("notices"),
            env=Environment(account=settings.account, region=region),
            description="Worker manager: notices of this region's machines",
        )
        bus = events.EventBus.from_event_bus_arn(
            self,
            "Bus",
            f"arn:{self.partition}:events:{settings.region}:{settings.account}"
            f":event-bus/{settings.resource_name('events')}",
        )
        hand_over_notices(
            self,
            name=settings.resource_name("notices"),
            target=targets.EventBus(bus),
            buses=[None],
        )
