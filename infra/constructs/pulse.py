"""Our events on an AMQP broker as well, for a Taskcluster queue to hear of dead workers at once.

Bus → queue → function → broker.  While the broker is away the queue keeps what it misses; an event
of which no message can be made goes to the dead letters at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.constructs.function import ServiceFunction
from infra.constructs.queues import dead_letters, with_dead_letters
from worker_manager.bus import SOURCE
from worker_manager.core.pulse import SCHEMAS

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_

    from infra.constructs.function import Service
    from infra.settings import PulseSettings

_TIMEOUT_SECONDS = 60
"""Ten messages, each confirmed; a connection that has to be made anew takes seconds."""

_ATTEMPTS = 1000
"""With one every 90 seconds, a day: brokers are down for hours, and nothing repeats an event."""


class Pulse(Construct):
    """The way from the bus to the broker."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: Service,
        settings: PulseSettings,
        bus: events.IEventBus,
        layer: lambda_.ILayerVersion,
    ) -> None:
        super().__init__(scope, construct_id)
        name = service.settings.resource_name("pulse")
        dead = dead_letters(self, "Dead", name=name)
        queue = with_dead_letters(
            self,
            "Queue",
            name=name,
            dead=dead,
            timeout_seconds=_TIMEOUT_SECONDS,
            kept=Duration.days(4),
            attempts=_ATTEMPTS,
        )
        events.Rule(
            self,
            "Rule",
            rule_name=name,
            event_bus=bus,
            event_pattern=events.EventPattern(source=[SOURCE], detail_type=sorted(SCHEMAS)),
            targets=[targets.SqsQueue(queue, dead_letter_queue=dead)],
        )
        secret = secretsmanager.Secret(
            self,
            "Secret",
            secret_name=name,
            encryption_key=service.key,
            description="username and password of the AMQP broker, as JSON; to be filled in",
        )
        function = ServiceFunction(
            self,
            "Function",
            service=service,
            folder="pulse",
            timeout_seconds=_TIMEOUT_SECONDS,
            more_layers=[layer],
        )
        function.knows(WM_PULSE_URL=settings.full_url, WM_PULSE_NAMESPACE=settings.namespace)
        function.opens("WM_PULSE_SECRET", secret).sends_to("WM_QUEUE_DEAD", dead)
        self.function = function.consumes(queue, batch_size=10, concurrency=2).function
