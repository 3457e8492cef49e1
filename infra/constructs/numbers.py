"""Metrics as alarms and dashboard ask for them; ``worker_manager.metrics`` writes ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from worker_manager.metrics import KIND, NO_PROVIDER, PROVIDER

if TYPE_CHECKING:
    from infra.settings import StageSettings

FIVE_MINUTES = Duration.minutes(5)


@dataclass(frozen=True)
class Numbers:
    """The metrics of one stage."""

    settings: StageSettings

    @property
    def namespace(self) -> str:
        """Where the functions of the stage write."""
        return self.settings.deployment

    def of(
        self,
        name: str,
        provider_id: str = NO_PROVIDER,
        *,
        statistic: str,
        period: Duration = FIVE_MINUTES,
        kind: str | None = None,
        label: str | None = None,
    ) -> cloudwatch.Metric:
        """One of our own metrics, of one provider or of what belongs to none."""
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=name,
            dimensions_map={PROVIDER: provider_id, **({KIND: kind} if kind else {})},
            statistic=statistic,
            period=period,
            label=label,
        )

    def over_pools(self, name: str, provider_id: str, *, label: str) -> cloudwatch.MathExpression:
        """A number that every pool tells each tick, summed over all pools."""
        average = name[0].lower() + name[1:]
        return cloudwatch.MathExpression(
            expression=f"{average} * pools",
            using_metrics={
                average: self.of(name, provider_id, statistic="Average"),
                "pools": self.of("Pools", provider_id, statistic="Maximum"),
            },
            label=label,
            period=FIVE_MINUTES,
        )
