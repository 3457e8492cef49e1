"""A Lambda function of ours, with a role of its own.

What a function is told of, it may use, and nothing else: each method names a thing in the
environment and allows it in the role, in one line, so that the two cannot drift apart.
Where to read next: ``provider_loop`` and ``api``, which say what each function needs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.permissions import CONSUME, ENCRYPT, READ, WRITE
from infra.settings import PYTHON, StageSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from infra.constructs.tables import NamedTable

_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}
"""CDK's words for the days of ``infra.settings.LOG_DAYS``."""


def _metrics(settings: StageSettings) -> dict[str, str]:
    """Where functions write metrics, if anybody watches."""
    if not settings.is_watched:
        return {}
    by_pool = {"WM_METRICS_BY_POOL": "true"} if settings.metrics_by_pool else {}
    return {"POWERTOOLS_METRICS_NAMESPACE": settings.deployment, **by_pool}


@dataclass(frozen=True, kw_only=True)
class Service:
    """What all functions share; ``key`` encrypts what they read, if a stage has its own."""

    settings: StageSettings
    functions: Path
    hash_of: Callable[[Path], str | None]
    layers: Sequence[lambda_.ILayerVersion]
    environment: Mapping[str, str]
    schedule_state: str
    key: kms.IKey | None = None


class ServiceFunction(Construct):
    """The function of one folder under ``functions/``, for one provider where it has many."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: Service,
        folder: str,
        provider_id: str | None = None,
        timeout_seconds: int = 29,
        memory_mb: int = 512,
        more_layers: Sequence[lambda_.ILayerVersion] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        self._service = service
        self.folder = folder
        suffix = f"-{provider_id}" if provider_id else ""
        self.name = service.settings.resource_name(folder.replace("_", "-") + suffix)
        self.timeout_seconds = timeout_seconds
        folder_path = service.functions / folder
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{self.name}",
            retention=_RETENTION[service.settings.log_days],
            removal_policy=RemovalPolicy.DESTROY,
        )
        # Inside the role: a policy beside it would be one resource more, of which a stack has 500.
        self._allowed = iam.PolicyDocument(minimize=True)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"{self.name}: only what this function needs",
            inline_policies={"Needed": self._allowed},
        ).without_policy_updates()
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=self.name,
            runtime=lambda_.Runtime(f"python{PYTHON}", lambda_.RuntimeFamily.PYTHON),
            architecture=lambda_.Architecture.ARM_64,
            code=lambda_.Code.from_asset(
                str(folder_path),
                exclude=["**/__pycache__"],
                asset_hash=service.hash_of(folder_path),
            ),
            handler="handler.handle",
            layers=[*service.layers, *more_layers],
            role=role,
            log_group=log_group,
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            environment={
                **service.environment,
                "POWERTOOLS_SERVICE_NAME": folder,
                "POWERTOOLS_LOG_LEVEL": service.settings.log_level,
                **_metrics(service.settings),
            },
        )
        if service.key:
            self.allow(ENCRYPT, resources=[service.key.key_arn])
        self.allow(
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        )

    def allow(
        self,
        actions: Sequence[str],
        *,
        resources: Sequence[str],
        conditions: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Self:
        """Add one statement to the role."""
        self._allowed.add_statements(
            iam.PolicyStatement(
                actions=list(actions), resources=list(resources), conditions=conditions
            )
        )
        return self

    def knows(self, **variables: str) -> Self:
        """Set environment variables that need no permission."""
        for name, value in variables.items():
            self.function.add_environment(name, value)
        return self

    def runs_at_most(self, calls: int) -> Self:
        """Answer so many calls at once, of the account's that are reserved for it, and no more."""
        resource = self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)
        resource.reserved_concurrent_executions = calls
        return self

    def reads(self, *tables: NamedTable) -> Self:
        """Get and query items of these tables (never scan)."""
        for named in tables:
            self._use_table(named, READ)
        return self

    def adds_to(self, named: NamedTable, *, partitions: str, removes: bool = False) -> Self:
        """Read items of a table, and put others into the partitions whose keys are so, no more.

        ``removes`` lets it also delete some there again.
        """
        return self.reads(named).allow(
            ["dynamodb:PutItem", *(["dynamodb:DeleteItem"] if removes else [])],
            resources=[named.table.table_arn],
            conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": partitions}},
        )

    def writes(self, *tables: NamedTable) -> Self:
        """Read and change items of these tables."""
        for named in tables:
            self._use_table(named, [*READ, *WRITE])
        return self

    def _use_table(self, named: NamedTable, actions: Sequence[str]) -> None:
        self.knows(**{named.variable: named.table.table_name})
        self.allow(actions, resources=[named.table.table_arn])
        if named.has_index:
            self.allow(["dynamodb:Query"], resources=[f"{named.table.table_arn}/index/*"])

    def sends_to(self, variable: str, queue: sqs.IQueue) -> Self:
        """Send messages to one queue, whose URL is in ``variable``."""
        self.knows(**{variable: queue.queue_url})
        return self.allow(["sqs:SendMessage"], resources=[queue.queue_arn])

    def sends_to_any(self, variable: str, queues: Mapping[str, Mapping[str, sqs.IQueue]]) -> Self:
        """Send to the queues of any provider; ``variable`` maps provider and purpose to URLs."""
        urls = {
            provider: {purpose: queue.queue_url for purpose, queue in purposes.items()}
            for provider, purposes in queues.items()
        }
        self.knows(**{variable: json.dumps(urls, separators=(",", ":"))})
        arns = [queue.queue_arn for purposes in queues.values() for queue in purposes.values()]
        return self.allow(["sqs:SendMessage"], resources=arns) if arns else self

    def publishes_to(self, bus: events.IEventBus) -> Self:
        """Put events on the bus."""
        self.knows(WM_BUS=bus.event_bus_name)
        return self.allow(["events:PutEvents"], resources=[bus.event_bus_arn])

    def opens(self, variable: str, secret: secretsmanager.ISecret) -> Self:
        """Read one secret, whose id is in ``variable``."""
        self.knows(**{variable: secret.secret_arn})
        return self.allow(["secretsmanager:GetSecretValue"], resources=[secret.secret_arn])

    def mails_from(self, address: str) -> Self:
        """Send e-mail from one address; the identity that was verified is it or its domain."""
        identities = f"arn:{Aws.PARTITION}:ses:{Aws.REGION}:{Aws.ACCOUNT_ID}:identity"
        return self.allow(
            ["ses:SendEmail"],
            resources=[f"{identities}/{address}", f"{identities}/{address.partition('@')[2]}"],
            conditions={"StringEquals": {"ses:FromAddress": address}},
        )

    def puts_into(self, bucket: s3.IBucket) -> Self:
        """Write objects."""
        self.knows(WM_BUCKET=bucket.bucket_name)
        return self.allow(["s3:PutObject"], resources=[bucket.arn_for_objects("*")])

    def gets_from(self, bucket: s3.IBucket) -> Self:
        """Read objects; listing is what tells a missing one from a forbidden one."""
        self.knows(WM_BUCKET=bucket.bucket_name)
        self.allow(["s3:ListBucket"], resources=[bucket.bucket_arn])
        return self.allow(["s3:GetObject"], resources=[bucket.arn_for_objects("*")])

    def consumes(
        self,
        queue: sqs.IQueue,
        *,
        batch_size: int = 1,
        concurrency: int = 5,
        batching_seconds: int = 0,
    ) -> Self:
        """Be called with messages of a queue; a failed one is reported, its neighbours are done.

        ``batching_seconds`` is how long messages may wait for others.
        """
        self.allow(CONSUME, resources=[queue.queue_arn])
        self.function.add_event_source(
            sources.SqsEventSource(
                queue,
                batch_size=batch_size,
                max_batching_window=(
                    Duration.seconds(batching_seconds) if batching_seconds else None
                ),
                max_concurrency=concurrency,
                report_batch_item_failures=True,
            )
        )
        return self

    def runs_every(self, interval: Duration) -> Self:
        """Be called by the clock.

        Nothing is retried: what a lost call left undone, the next one finds and does.
        """
        self.function.configure_async_invoke(retry_attempts=0, max_event_age=Duration.seconds(60))
        rule = events.Rule(
            self,
            "Schedule",
            rule_name=self.name,
            schedule=events.Schedule.rate(interval),
            targets=[
                targets.LambdaFunction(
                    self.function, retry_attempts=0, max_event_age=Duration.seconds(60)
                )
            ],
        )
        resource = rule.node.default_child
        assert isinstance(resource, events.CfnRule)
        resource.state = self._service.schedule_state
        return self
