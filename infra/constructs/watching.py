"""Alarms: what nobody may learn from an angry user.  What to do about each is in the README.

They go to one topic.  They are a stack inside the stage's: CloudFormation takes 500 resources a
stack, and a provider has more than a dozen alarms.  Metrics that are written only when something
happens count as fine while they are missing; ticks count as broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, NestedStack, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.numbers import FIVE_MINUTES, Numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_lambda as lambda_

    from infra.settings import StageSettings

_MINUTE = Duration.minutes(1)
_FAULTS = 5
"""Answers with 5xx within a minute."""
_LEFTOVERS = 10
"""Things without a machine, at each look within an hour: they cannot be removed, or come again."""
_UNKNOWN_FAILURES = 5
"""Messages within five minutes that failed for a reason that nobody foresaw."""


class Watching(Construct):
    """The alarms of a stage, and the topic that they go to."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        faults: Sequence[cloudwatch.IMetric],
        functions: Mapping[str, lambda_.IFunction],
    ) -> None:
        """``faults`` are the front door's 5xx answers.

        ``functions`` are those that nobody waits for, and no other alarm tells of.
        """
        super().__init__(scope, construct_id)
        self._alarms = NestedStack(self, "Alarms", description="Worker manager: alarms")
        self._settings = settings
        self._numbers = Numbers(settings)
        self.topic = sns.Topic(
            self, "Topic", topic_name=settings.resource_name("alarms"), enforce_ssl=True
        )
        # Demanding TLS gives the topic a policy, which then must allow what is usual without one.
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        if settings.alarm_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(settings.alarm_email))
        self._service(faults, functions)
        for provider in settings.providers:
            if provider.has_loop:
                self._ticks(provider.provider_id)
                self._provider(provider.provider_id)
                self._machines(provider.provider_id)
        self._dead_letters()

    def _service(
        self, faults: Sequence[cloudwatch.IMetric], functions: Mapping[str, lambda_.IFunction]
    ) -> None:
        for number, metric in enumerate(faults, start=1):
            self._alarm("faults", str(number), metric, at=_FAULTS, periods=3, of=5)
        for name, function in functions.items():
            self._alarm("failing", name, function.metric_errors(period=FIVE_MINUTES))
        mail = self._numbers.of("MailFailures", statistic="Sum")
        self._alarm("failing", "mail", mail, periods=2)
        outages = self._numbers.of("MachineOutages", statistic="Sum")
        self._alarm("machine-outage", "pools", outages)

    def _ticks(self, provider_id: str) -> None:
        """No tick for three intervals: nothing is launched, or nothing is noticed."""
        for verb in ("Provision", "Scan"):
            self._alarm(
                "no-ticks",
                f"{verb.lower()}-{provider_id}",
                self._numbers.of(f"{verb}Ticks", provider_id, statistic="Sum", period=_MINUTE),
                compare=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                periods=3,
                missing=cloudwatch.TreatMissingData.BREACHING,
            )

    def _provider(self, provider_id: str) -> None:
        numbers = self._numbers
        self._alarm(
            "provider-failing",
            provider_id,
            numbers.of("ProviderFailures", provider_id, statistic="Sum"),
            periods=2,
        )
        self._alarm(
            "stale-locations",
            provider_id,
            numbers.of("StaleLocations", provider_id, statistic="Minimum"),
            periods=3,
        )
        self._alarm(
            "crashes",
            provider_id,
            numbers.of("Crashes", provider_id, statistic="Sum"),
            at=_UNKNOWN_FAILURES,
        )

    def _machines(self, provider_id: str) -> None:
        numbers = self._numbers
        ten_minutes = Duration.minutes(10)
        self._alarm(
            "breaker-storm",
            provider_id,
            numbers.of("BreakersOpened", provider_id, statistic="Sum", period=ten_minutes),
            at=self._settings.breaker_storm,
        )
        self._alarm(
            "over-maximum",
            provider_id,
            numbers.of("OverMaximum", provider_id, statistic="Maximum"),
            periods=6,
        )
        self._alarm(
            "stuck-machines",
            provider_id,
            numbers.of("Failures", provider_id, kind="stuck-stopping", statistic="Sum"),
        )
        self._alarm(
            "leftovers",
            provider_id,
            numbers.of("Leftovers", provider_id, statistic="Minimum"),
            at=_LEFTOVERS,
            periods=12,
        )

    def _dead_letters(self) -> None:
        """One for every such queue of the stack, whoever made it."""
        for found in Stack.of(self).node.find_all():
            if not isinstance(found, sqs.CfnQueue):
                continue
            name = (found.queue_name or "").removesuffix(".fifo")
            if name.endswith("-dead"):
                metric = cloudwatch.Metric(
                    namespace="AWS/SQS",
                    metric_name="ApproximateNumberOfMessagesVisible",
                    dimensions_map={"QueueName": found.queue_name or ""},
                    statistic="Maximum",
                    period=FIVE_MINUTES,
                )
                prefix = self._settings.resource_name("")
                self._alarm("dead-letters", name.removeprefix(prefix).removesuffix("-dead"), metric)

    def _alarm(
        self,
        kind: str,
        of_what: str,
        metric: cloudwatch.IMetric,
        *,
        at: float = 1,
        periods: int = 1,
        of: int | None = None,
        compare: cloudwatch.ComparisonOperator = (
            cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        ),
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        """Tell the topic when ``periods`` (of the last ``of``) are as bad as ``at``, or worse.

        What each ``kind`` means is in the README.
        """
        name = f"{kind}-{of_what}"
        alarm = cloudwatch.Alarm(
            self._alarms,
            name.title().replace("-", ""),
            alarm_name=self._settings.resource_name(f"alarm-{name}"),
            alarm_description=f"What it means and what to do: README, Operations, {kind}",
            metric=metric,
            threshold=at,
            comparison_operator=compare,
            evaluation_periods=of or periods,
            datapoints_to_alarm=periods,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        alarm.add_ok_action(actions.SnsAction(self.topic))
