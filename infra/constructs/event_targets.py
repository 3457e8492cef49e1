"""Where events go besides: into a queue for whoever reads along, to HTTPS endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy, SecretValue
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.queues import dead_letters
from worker_manager.api.event_schemas import EVENTS
from worker_manager.bus import SOURCE

if TYPE_CHECKING:
    from infra.settings import EventDestination, StageSettings


class EventCopies(Construct):
    """Every event in a queue, for a day."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        bus: events.IEventBus,
    ) -> None:
        super().__init__(scope, construct_id)
        name = settings.resource_name("event-copies")
        copies = sqs.Queue(
            self,
            "Queue",
            queue_name=name,
            enforce_ssl=True,
            retention_period=Duration.days(1),
            removal_policy=RemovalPolicy.DESTROY,
        )
        events.Rule(
            self,
            "Rule",
            rule_name=name,
            event_bus=bus,
            event_pattern=events.EventPattern(source=[SOURCE]),
            targets=[
                targets.SqsQueue(copies, dead_letter_queue=dead_letters(self, "Dead", name=name))
            ],
        )


class HttpsDestination(Construct):
    """Bus → rule → endpoint; what it does not take within a day goes to the dead letters.

    Raises ``ValueError`` for events that do not exist: nobody would miss them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        destination: EventDestination,
        bus: events.IEventBus,
    ) -> None:
        super().__init__(scope, construct_id)
        if unknown := set(destination.event_names) - EVENTS.keys():
            raise ValueError(f"{destination.name}: there are no events {sorted(unknown)}")
        name = settings.resource_name(f"events-{destination.name}")
        connection = events.Connection(
            self,
            "Connection",
            connection_name=name,
            authorization=events.Authorization.api_key(
                destination.header, SecretValue.secrets_manager(destination.secret_name)
            ),
        )
        endpoint = events.ApiDestination(
            self,
            "Endpoint",
            api_destination_name=name,
            connection=connection,
            endpoint=destination.url,
            http_method=events.HttpMethod.POST,
            rate_limit_per_second=destination.per_second,
        )
        events.Rule(
            self,
            "Rule",
            rule_name=name,
            event_bus=bus,
            event_pattern=events.EventPattern(
                source=[SOURCE], detail_type=list(destination.event_names) or None
            ),
            targets=[
                targets.ApiDestination(
                    endpoint,
                    dead_letter_queue=dead_letters(self, "Dead", name=name),
                    max_event_age=Duration.days(1),
                    retry_attempts=185,
                )
            ],
        )
