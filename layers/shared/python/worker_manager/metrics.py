"""Numbers for CloudWatch, through Powertools: what the reference's metrics mean, by our dimensions.

A function collects what happened and writes it as it ends, in CloudWatch's embedded format: one
line for what has only the provider as its dimension, one more for each kind of failure.  Without a
namespace nothing is collected and nothing written.

CloudWatch bills every combination of name and dimensions, so pools are a dimension of four metrics
only, and only where a stage asks for it; each line of a pool names it as a field, by which Logs
Insights can tell pools apart.  The numbers of one pool are one value a tick: their average, times
``Pools``, is the sum over all pools, however many ticks a minute has.
See ``infra/decisions/0014`` for the reasons, ``infra.constructs.watching`` for alarms and the
dashboard.
"""

from __future__ import annotations

from functools import wraps
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
    AmazonCloudWatchEMFProvider,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.core.model import Worker

PROVIDER = "Provider"
"""The dimension that every metric has."""

KIND = "Kind"
"""The dimension of ``Failures``: the kinds of ``core.errors`` and of settled workers."""

POOL = "Pool"
"""The dimension that the metrics of ``BY_POOL`` have besides, where a stage wants it."""

NO_PROVIDER = "all"
"""What belongs to no provider."""

BY_POOL = frozenset({"PendingTasks", "ClaimedTasks", "ExistingCapacity", "DesiredCapacity"})
"""Demand and supply: what an owner of a pool looks at."""

REPORTED = "reported"
"""The kind of every error that workers report; theirs are free text."""

_FACTS = {
    "pending": "PendingTasks",
    "claimed": "ClaimedTasks",
    "requested": "RequestedCapacity",
    "stopping": "StoppingCapacity",
    "quarantined": "QuarantinedCapacity",
    "target": "DesiredCapacity",
    "breakersOpen": "BreakersOpen",
}
"""Numbers of a decision → metric; those that a decision lacks are not known, which is not zero."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Value(NamedTuple):
    dimensions: tuple[tuple[str, str], ...]
    name: str
    unit: MetricUnit
    value: float


class Meter:
    """Collects the numbers of one invocation; safe to use from the threads of one function."""

    def __init__(self) -> None:
        self._namespace = ""
        self._by_pool = False
        self._owner = NO_PROVIDER
        self._values: list[_Value] = []
        self._pools: set[str] = set()

    def configure(self, *, namespace: str, by_pool: bool = False, owner: str = NO_PROVIDER) -> None:
        """Say where the numbers belong; an empty ``namespace`` means that nobody wants them.

        ``owner`` is the provider that this function works for, if it is one's.
        """
        self._namespace = namespace
        self._by_pool = by_pool
        self._owner = owner
        self._values.clear()
        self._pools.clear()

    def provisioned(
        self,
        provider_id: str,
        pool_id: str,
        *,
        facts: Mapping[str, Any] | None,
        ordered: int,
        seconds: float,
    ) -> None:
        """A pool was looked at: its decision's numbers, instances ordered, and how long that took.

        ``facts`` are those of ``core.planning``; ``None`` where nothing was decided.
        """
        self._add(provider_id, "ProvisionSeconds", seconds, unit=MetricUnit.Seconds)
        self._add(provider_id, "InstancesOrdered", ordered)
        self._pools.add(pool_id)
        if facts is None:
            return
        for key, name in _FACTS.items():
            if key in facts:
                self._add(provider_id, name, facts[key], pool_id=pool_id)
        existing = facts.get("running", 0) + facts.get("requested", 0)
        self._add(provider_id, "ExistingCapacity", existing, pool_id=pool_id)
        others = facts.get("stopping", 0) + facts.get("quarantined", 0)
        beyond = facts.get("costing", existing + others) - facts.get("maxCapacity", inf)
        self._add(provider_id, "OverMaximum", max(0, beyond))

    def provision_ticked(self, provider_id: str, report: Mapping[str, Any]) -> None:
        """A tick told its pools to look at themselves (``reconcile.ticks``)."""
        if not report["stale"]:
            self._add(provider_id, "ProvisionTicks", 1)
            self._add(provider_id, "Pools", report["pools"])

    def scan_ticked(self, provider_id: str, report: Mapping[str, Any], *, seconds: float) -> None:
        """A tick listed its locations (``reconcile.listing``), some to a list that is believed.

        One that shared them out listed none.
        """
        if not report["stale"] and not report.get("shared"):
            self._add(provider_id, "ScanTicks", 1)
            self._add(provider_id, "ListSeconds", seconds, unit=MetricUnit.Seconds)
            self._add(provider_id, "StaleLocations", report["locations"] - report["believed"])
            self._add(provider_id, "Machines", report["machines"])

    def scanned(self, provider_id: str, report: Mapping[str, Any], *, seconds: float) -> None:
        """A pool's workers in one location were held against a list (``reconcile.scan``)."""
        if report.get("stale"):
            return
        self._pools.add(report["pool"])
        self._add(provider_id, "ScanSeconds", seconds, unit=MetricUnit.Seconds)
        self._add(provider_id, "SeenMachines", report["seen"])
        self._add(provider_id, "MissingMachines", report["missing"])
        self._add(provider_id, "StrayMachines", report["strays"])

    def launched(self, provider_id: str, *, instances: int) -> None:
        """An order was settled, and so many of its instances came about."""
        self._add(provider_id, "InstancesLaunched", instances)

    def failed(self, provider_id: str, kind: str, *, count: int = 1) -> None:
        """An error of a pool was recorded, which stands for ``count`` machines.

        ``kind`` is one of our own; for what workers report it is ``REPORTED``.
        """
        self._add(provider_id, "Failures", count, kind=kind)

    def throttled(self, provider_id: str) -> None:
        """The cloud told us to slow down."""
        self._add(provider_id, "CloudThrottles", 1)

    def leftovers(self, provider_id: str, count: int) -> None:
        """So many things outlived the machines that they were made for."""
        self._add(provider_id, "Leftovers", count)

    def breaker_opened(self, provider_id: str) -> None:
        """A launch config is not ordered from for a while."""
        self._add(provider_id, "BreakersOpened", 1)

    def crashed(self) -> None:
        """One message of this function failed for a reason that nobody foresaw."""
        self._add(self._owner, "Crashes", 1)

    def provider_failed(self) -> None:
        """This function's provider as a whole cannot work: it does not start, or may not act."""
        self._add(self._owner, "ProviderFailures", 1)

    def mail_failed(self) -> None:
        """A mail to a pool's owner could not be sent; what it tells of is recorded all the same."""
        self._add(NO_PROVIDER, "MailFailures", 1)

    def examined(self, report: Mapping[str, int]) -> None:
        """The health of machines was looked at (``reconcile.examine``)."""
        self._add(NO_PROVIDER, "BadMachines", report.get("bad", 0))
        self._add(NO_PROVIDER, "MachineRemedies", report.get("remedies", 0))
        self._add(NO_PROVIDER, "MachineOutages", report.get("outages", 0))

    def registered(self, worker: Worker) -> None:
        """A machine registered for the first time.

        Seconds from its row to registering, and, where it says when it booted, both parts of them.
        """
        if worker.registered is None:
            return
        waited = (worker.registered - worker.created).total_seconds()
        self._seconds(worker, "RegistrationSeconds", waited)
        if worker.boot_time is not None:
            booted = (worker.boot_time - worker.created).total_seconds()
            self._seconds(worker, "BootSeconds", booted)
            self._seconds(worker, "StartupSeconds", waited - booted)

    def stopped(self, worker: Worker, at: datetime) -> None:
        """A machine is gone: seconds since its row was made."""
        self._seconds(worker, "LifetimeSeconds", (at - worker.created).total_seconds())

    def flush(self) -> None:
        """Write what was collected, a line for each set of dimensions, and forget it."""
        values, pools = self._values[:], sorted(self._pools)
        self._values.clear()
        self._pools.clear()
        for dimensions in dict.fromkeys(value.dimensions for value in values):
            line = AmazonCloudWatchEMFProvider(
                namespace=self._namespace,
                service="",  # the function's name is no dimension of ours
                dimension_set=dict(dimensions),
            )
            if len(pools) == 1 and POOL not in line.dimension_set:
                line.add_metadata("pool", pools[0])
            for value in values:
                if value.dimensions == dimensions:
                    line.add_metric(value.name, value.unit, value.value)
            if line.metric_set:
                line.flush_metrics()

    def written(self, handle: Callable[_P, _R]) -> Callable[_P, _R]:
        """Have a handler's numbers written as it ends, however it ends."""

        @wraps(handle)
        def handle_and_write(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return handle(*args, **kwargs)
            finally:
                self.flush()

        return handle_and_write

    def _seconds(self, worker: Worker, name: str, seconds: float) -> None:
        """A duration of a worker's life; clocks of machines may be ahead of ours."""
        self._add(worker.provider_id, name, max(0.0, seconds), unit=MetricUnit.Seconds)

    def _add(
        self,
        provider_id: str,
        name: str,
        value: float,
        *,
        unit: MetricUnit = MetricUnit.Count,
        pool_id: str | None = None,
        kind: str | None = None,
    ) -> None:
        if not self._namespace:
            return
        dimensions: tuple[tuple[str, str], ...] = ((PROVIDER, provider_id),)
        if kind is not None:
            dimensions = (*dimensions, (KIND, kind))
        self._values.append(_Value(dimensions, name, unit, value))
        if self._by_pool and pool_id is not None and name in BY_POOL:
            self._values.append(_Value((*dimensions, (POOL, pool_id)), name, unit, value))


meter = Meter()
"""The one meter, as there is one logger; ``wiring`` configures it."""
