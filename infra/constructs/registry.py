"""How the registry hears of workers besides their own calls: from the queue, and from their ends.

Bus → queue → function: hundreds of workers end at once when a region fails, and what a function
cannot do then comes again.
Where to read next: ``worker_manager.wiring.registry``, ``pulse`` (the same way, to a broker).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.constructs.function import ServiceFunction
from infra.constructs.queues import dead_letters, with_dead_letters
from worker_manager.bus import SOURCE
from worker_manager.core.events import WORKER_REMOVED, WORKER_STOPPED
from worker_manager.store.outbox_items import OUTBOX

if TYPE_CHECKING:
    from aws_cdk import aws_secretsmanager as secretsmanager

    from infra.constructs.function import Service
    from infra.constructs.tables import Tables

_MINUTES = 5
"""Between two looks at a Taskcluster queue."""

_TIMEOUT_SECONDS = 30
_AT_ONCE = 10
_ATTEMPTS = 10
"""In as many minutes; after twenty a claim runs out by itself."""


class Observing(Construct):
    """Every few minutes, what a Taskcluster queue knows of workers."""

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
    ) -> None:
        super().__init__(scope, construct_id)
        function = ServiceFunction(
            self,
            "Function",
            service=service,
            folder="observe",
            # Over before the next one begins.
            timeout_seconds=_MINUTES * 60 - 30,
        )
        self.function = (
            function.writes(tables.registry)
            # Of a quarantine that was changed there it tells.
            .publishes_to(bus)
            .adds_to(tables.providers, partitions=OUTBOX, removes=True)
            .knows(WM_QUEUE_ROOT_URL=queue_root_url, WM_QUEUE_BACKEND=service.settings.queue_kind)
            .opens("WM_AUTH_SECRET", auth_secret)
            .runs_every(Duration.minutes(_MINUTES))
            .function
        )


class WorkerEnds(Construct):
    """What becomes of the claims of workers whose machines end."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: Service,
        tables: Tables,
        bus: events.IEventBus,
    ) -> None:
        super().__init__(scope, construct_id)
        name = service.settings.resource_name("worker-gone")
        dead = dead_letters(self, "Dead", name=name)
        queue = with_dead_letters(
            self,
            "Queue",
            name=name,
            dead=dead,
            timeout_seconds=_TIMEOUT_SECONDS,
            kept=Duration.hours(1),
            attempts=_ATTEMPTS,
        )
        events.Rule(
            self,
            "Rule",
            rule_name=name,
            event_bus=bus,
            event_pattern=events.EventPattern(
                source=[SOURCE], detail_type=[WORKER_STOPPED, WORKER_REMOVED]
            ),
            targets=[targets.SqsQueue(queue, dead_letter_queue=dead)],
        )
        function = ServiceFunction(
            self,
            "Function",
            service=service,
            folder="worker_gone",
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        function.writes(tables.registry, *([tables.queue] if tables.queue else []))
        # Of a quarantine that ends with its machine it tells.
        function.publishes_to(bus).adds_to(tables.providers, partitions=OUTBOX, removes=True)
        function.consumes(queue, batch_size=_AT_ONCE, concurrency=5)
