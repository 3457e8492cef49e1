"""Looking after machines: every few minutes one function judges them all.

Where to read next: ``worker_manager.wiring.examining``, ``worker_manager.reconcile.examine``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from constructs import Construct

from infra.constructs.function import ServiceFunction

if TYPE_CHECKING:
    from aws_cdk import aws_events as events
    from aws_cdk import aws_secretsmanager as secretsmanager

    from infra.constructs.function import Service
    from infra.constructs.tables import Tables

_SECONDS = 300
"""Between two looks, unless a stage says otherwise."""
_TIMEOUT_SECONDS = 270
"""Over before the next one begins."""


class Examining(Construct):
    """How machines are, and what is done about it by itself."""

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
        settings = service.settings
        function = ServiceFunction(
            self, "Function", service=service, folder="examine", timeout_seconds=_TIMEOUT_SECONDS
        )
        self.function = (
            function.reads(tables.pools, tables.workers)
            # What is found, runs of actions, errors that owners are mailed of, and what is told.
            .writes(tables.registry, tables.actions, tables.errors, tables.providers)
            .publishes_to(bus)
            .knows(
                WM_QUEUE_ROOT_URL=queue_root_url,
                WM_QUEUE_BACKEND=settings.queue_kind,
                WM_ACTION_HOSTS=",".join(settings.action_hosts),
            )
            .opens("WM_AUTH_SECRET", auth_secret)
            .runs_every(Duration.minutes(int(settings.timings.get("examine", _SECONDS)) // 60))
            .function
        )
