"""The queues of one provider, and what becomes of a message that nobody can handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_sqs as sqs
from constructs import Construct

if TYPE_CHECKING:
    from infra.settings import ProviderSettings, StageSettings

GRACE_SECONDS = 30
"""By how much a message stays hidden longer than its function may run."""


def dead_letters(
    scope: Construct, construct_id: str, *, name: str, fifo: bool = False
) -> sqs.Queue:
    """A queue for what could not be handled, kept as long as SQS keeps anything."""
    return sqs.Queue(
        scope,
        construct_id,
        queue_name=f"{name}-dead" + (".fifo" if fifo else ""),
        fifo=fifo or None,
        enforce_ssl=True,
        retention_period=Duration.days(14),
        removal_policy=RemovalPolicy.DESTROY,
    )


def with_dead_letters(
    scope: Construct,
    construct_id: str,
    *,
    name: str,
    dead: sqs.Queue,
    timeout_seconds: int,
    kept: Duration,
    attempts: int,
) -> sqs.Queue:
    """A standard queue before a function that runs so long, and tries a message so often."""
    return sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        enforce_ssl=True,
        retention_period=kept,
        visibility_timeout=Duration.seconds(timeout_seconds + GRACE_SECONDS),
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=attempts),
        removal_policy=RemovalPolicy.DESTROY,
    )


class LoopQueues(Construct):
    """What one provider's functions tell each other.

    ``provision`` and ``scan`` are FIFO: one pool (or pool and location) at a time, in order, while
    others go on.  Their messages are ticks, worthless after minutes: kept for five, so that a
    backlog dissolves by itself; one that kills its function three times goes to the dead letters
    rather than hold up its pool.  ``provision_ticks`` and ``scan_ticks`` carry each tick function's
    delayed messages to itself; the next minute replaces a lost one, so they have no dead letters.
    ``advance`` carries deletes and second steps, which nobody would repeat: kept four days, then
    dead letters.  ``notices`` carries what the cloud tells of machines; the next list tells it too.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        provider: ProviderSettings,
        timeouts: dict[str, int],
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._provider_id = provider.provider_id
        self.provision_ticks = self._ticks("provision", timeouts["provision_tick"])
        self.scan_ticks = self._ticks("scan", timeouts["scan_tick"])
        self.provision = self._fifo("provision", timeouts["provision_pool"])
        self.scan = self._fifo("scan", timeouts["scan_pool"])
        self.advance = self._standard(
            "advance", timeouts["advance"], kept=Duration.days(4), attempts=5
        )
        self._notices_timeout = timeouts["notices"]

    def _name(self, purpose: str) -> str:
        return self._settings.resource_name(f"{purpose}-{self._provider_id}")

    def _ticks(self, verb: str, timeout_seconds: int) -> sqs.Queue:
        return sqs.Queue(
            self,
            f"{verb.title()}Ticks",
            queue_name=self._name(f"{verb}-ticks"),
            enforce_ssl=True,
            retention_period=Duration.minutes(5),
            visibility_timeout=Duration.seconds(timeout_seconds + GRACE_SECONDS),
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _fifo(self, verb: str, timeout_seconds: int) -> sqs.Queue:
        name = self._name(verb)
        return sqs.Queue(
            self,
            verb.title(),
            queue_name=f"{name}.fifo",
            fifo=True,
            content_based_deduplication=False,
            deduplication_scope=sqs.DeduplicationScope.MESSAGE_GROUP,
            fifo_throughput_limit=sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
            enforce_ssl=True,
            retention_period=Duration.minutes(5),
            visibility_timeout=Duration.seconds(timeout_seconds + GRACE_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=dead_letters(self, f"{verb.title()}Dead", name=name, fifo=True),
                max_receive_count=3,
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )

    def notices(self) -> sqs.Queue:
        """Made for clouds that give notice only."""
        return self._standard("notices", self._notices_timeout, kept=Duration.hours(1), attempts=3)

    def _standard(
        self, verb: str, timeout_seconds: int, *, kept: Duration, attempts: int
    ) -> sqs.Queue:
        name = self._name(verb)
        return with_dead_letters(
            self,
            verb.title(),
            name=name,
            dead=dead_letters(self, f"{verb.title()}Dead", name=name),
            timeout_seconds=timeout_seconds,
            kept=kept,
            attempts=attempts,
        )
