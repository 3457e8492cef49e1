"""The dashboard: pools, demand and supply, launches, failures, registrations, clouds, the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.constructs.numbers import FIVE_MINUTES, Numbers
from worker_manager.metrics import KIND, PROVIDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.settings import StageSettings

_HALF, _WHOLE = 12, 24
"""Widths, of the 24 columns that a dashboard has."""

_BUSIEST_POOLS = (
    "filter ispresent(PendingTasks.0)",
    "stats latest(PendingTasks.0) as pending, latest(ClaimedTasks.0) as claimed,"
    " latest(ExistingCapacity.0) as existing, latest(DesiredCapacity.0) as desired by pool",
    "sort pending desc",
    "limit 20",
)


class Dashboard(Construct):
    """One page for the whole stage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        faults: Sequence[cloudwatch.IMetric],
        requests: Sequence[cloudwatch.IMetric],
    ) -> None:
        """``faults`` and ``requests`` are those of the front door."""
        super().__init__(scope, construct_id)
        self._numbers = Numbers(settings)
        self._page = cloudwatch.Dashboard(
            self, "Page", dashboard_name=settings.resource_name("overview")
        )
        for provider in settings.providers:
            if provider.has_loop:
                self._supply(provider.provider_id)
                self._launches(provider.provider_id)
                self._loops(provider.provider_id)
                self._pools(provider.provider_id, settings)
        self._page.add_widgets(
            _graph("Requests", requests),
            _graph("Answers with 5xx", faults),
        )

    def _supply(self, provider_id: str) -> None:
        numbers = self._numbers
        demand = {"PendingTasks": "pending", "ClaimedTasks": "claimed"}
        supply = {
            "ExistingCapacity": "existing",
            "DesiredCapacity": "desired",
            "RequestedCapacity": "requested",
            "StoppingCapacity": "stopping",
        }
        self._page.add_widgets(
            _graph(
                f"{provider_id}: demand and supply",
                [
                    numbers.over_pools(name, provider_id, label=label)
                    for name, label in {**demand, **supply}.items()
                ],
            ),
            _graph(
                f"{provider_id}: pools and machines",
                [
                    numbers.of("Pools", provider_id, statistic="Maximum"),
                    numbers.of("Machines", provider_id, statistic="Maximum"),
                    numbers.of("OverMaximum", provider_id, statistic="Maximum"),
                ],
            ),
        )

    def _launches(self, provider_id: str) -> None:
        numbers = self._numbers
        by_kind = (
            f'SEARCH(\'{{"{numbers.namespace}",{KIND},{PROVIDER}}} '
            f'MetricName="Failures" {PROVIDER}="{provider_id}"\', \'Sum\', 300)'
        )
        self._page.add_widgets(
            _graph(
                f"{provider_id}: launches",
                [
                    numbers.of(name, provider_id, statistic="Sum")
                    for name in ("InstancesOrdered", "InstancesLaunched", "BreakersOpened")
                ],
            ),
            _graph(
                f"{provider_id}: failures by kind",
                [cloudwatch.MathExpression(expression=by_kind, label="", period=FIVE_MINUTES)],
            ),
        )

    def _loops(self, provider_id: str) -> None:
        numbers = self._numbers
        self._page.add_widgets(
            _graph(
                f"{provider_id}: seconds of a machine's start",
                [
                    numbers.of(name, provider_id, statistic=statistic, label=f"{name} {statistic}")
                    for name in ("RegistrationSeconds", "BootSeconds", "StartupSeconds")
                    for statistic in ("p50", "p95")
                ],
            ),
            _graph(
                f"{provider_id}: seconds of our work",
                [
                    numbers.of(name, provider_id, statistic="p95")
                    for name in ("ProvisionSeconds", "ListSeconds", "ScanSeconds")
                ],
            ),
        )
        self._page.add_widgets(
            _graph(
                f"{provider_id}: the cloud",
                [
                    numbers.of("CloudThrottles", provider_id, statistic="Sum"),
                    numbers.of("ProviderFailures", provider_id, statistic="Sum"),
                    numbers.of("StaleLocations", provider_id, statistic="Maximum"),
                ],
            ),
            _graph(
                f"{provider_id}: lists",
                [
                    numbers.of("MissingMachines", provider_id, statistic="Sum"),
                    numbers.of("StrayMachines", provider_id, statistic="Sum"),
                    numbers.of("Leftovers", provider_id, statistic="Maximum"),
                    numbers.of("Crashes", provider_id, statistic="Sum"),
                ],
            ),
        )

    def _pools(self, provider_id: str, settings: StageSettings) -> None:
        """Pools are told apart in the log lines that the metrics come from, which costs nothing."""
        function = settings.resource_name(f"provision-pool-{provider_id}")
        self._page.add_widgets(
            cloudwatch.LogQueryWidget(
                title=f"{provider_id}: pools with most pending tasks",
                log_group_names=[f"/aws/lambda/{function}"],
                query_lines=list(_BUSIEST_POOLS),
                width=_WHOLE,
            )
        )


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=_HALF)
