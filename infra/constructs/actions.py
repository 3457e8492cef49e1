"""Actions on workers that no agent does: our own, and requests to other services.

The API writes a run down and sends its name; should that message be lost, the function finds the
run itself, within a minute.
Where to read next: ``worker_manager.reconcile.act``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.function import ServiceFunction
from infra.constructs.queues import dead_letters, with_dead_letters
from worker_manager.store.audit import TRAIL
from worker_manager.store.outbox_items import OUTBOX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_events as events
    from aws_cdk import aws_secretsmanager as secretsmanager

    from infra.constructs.function import Service
    from infra.constructs.tables import Tables

_TIMEOUT_SECONDS = 60
"""Longer than another service may take to answer."""
_ATTEMPTS = 5
_AT_ONCE = 5
"""Runs that are done side by side, of all kinds together."""


class Acting(Construct):
    """The queue of runs that are for us to do, and the function that does them."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: Service,
        tables: Tables,
        bus: events.IEventBus,
        auth_secret: secretsmanager.ISecret,
        queue_root_url: str,
        inboxes: Mapping[str, Mapping[str, sqs.IQueue]],
    ) -> None:
        """``inboxes`` are the queues ``advance`` of providers, by provider and purpose."""
        super().__init__(scope, construct_id)
        settings = service.settings
        name = settings.resource_name("actions")
        self.queue = with_dead_letters(
            self,
            "Queue",
            name=name,
            dead=dead_letters(self, "Dead", name=name),
            timeout_seconds=_TIMEOUT_SECONDS,
            # Whatever is not done by then has timed out.
            kept=Duration.hours(4),
            attempts=_ATTEMPTS,
        )
        function = ServiceFunction(
            self, "Function", service=service, folder="act", timeout_seconds=_TIMEOUT_SECONDS
        )
        self.function = (
            function.writes(tables.actions, tables.registry, tables.workers)
            .adds_to(tables.pools, partitions=f"*{TRAIL}")
            .adds_to(tables.providers, partitions=OUTBOX, removes=True)
            .publishes_to(bus)
            .sends_to("WM_QUEUE_ACTIONS", self.queue)
            .sends_to_any("WM_QUEUES", inboxes)
            .knows(
                WM_QUEUE_ROOT_URL=queue_root_url,
                WM_QUEUE_BACKEND=settings.queue_kind,
                WM_ACTION_HOSTS=",".join(settings.action_hosts),
            )
            .opens("WM_AUTH_SECRET", auth_secret)
            .consumes(self.queue, concurrency=_AT_ONCE)
            .runs_every(Duration.minutes(1))
            .function
        )
