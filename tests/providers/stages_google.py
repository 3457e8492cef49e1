"""Compute Engine, simulated over HTTP, as a stage of the provider contract."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from google.auth.credentials import AnonymousCredentials

from infra.local.clouds.compute import (
    CapacityScope,
    ComputeCloud,
    Fault,
    FaultKind,
    Settings,
    SimulatedCompute,
)
from tests.providers.contract import HANGS_SECONDS, IMPATIENCE
from tests.providers.google import wire
from tests.providers.orders import OTHER_DEPLOYMENT
from tests.providers.stages import VirtualClock
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.providers.fake import Method
from worker_manager.providers.google.clients import Clients

if TYPE_CHECKING:
    from datetime import timedelta

    from worker_manager.core.model import LaunchOrder, WorkerKey

ACTIONS = {
    Method.INSTANCES: "instances.aggregatedList",
    Method.LOOKUP: "instances.get",
    Method.LAUNCH: "instances.insert",
    Method.TERMINATE: "instances.delete",
    Method.REBOOT: "instances.reset",
}
REASONS = {
    OutOfCapacityError: "ZONE_RESOURCE_POOL_EXHAUSTED",
    QuotaExceededError: "quotaExceeded",
    InvalidLaunchConfigError: "invalid",
    ThrottledError: "rateLimitExceeded",
    CloudUnavailableError: "backendError",
    NotAuthorizedError: "forbidden",
}
LATE_CODES = {
    OutOfCapacityError: "ZONE_RESOURCE_POOL_EXHAUSTED",
    QuotaExceededError: "QUOTA_EXCEEDED",
    InvalidLaunchConfigError: "INVALID_USAGE",
    CloudUnavailableError: "INTERNAL_ERROR",
    NotAuthorizedError: "PERMISSIONS_ERROR",
}
"""Codes of operations that fail after they were accepted."""
CALLS = {Method.LAUNCH: 2}
"""Of a method that is a call for each machine: those of an order as tests make it."""


class GoogleStage:
    """The simulated Compute Engine as a stage."""

    location = wire.PROJECT
    group = wire.ZONE
    absent = wire.a_worker("1234567890123456789")

    def __init__(self, server: SimulatedCompute) -> None:
        self.clock = VirtualClock()
        settings = Settings(
            project=wire.PROJECT,
            provisioning_seconds=0,
            insert_seconds=0,
            delete_seconds=0,
            stopping_seconds=0,
            failing_seconds=1,
            refuses_late=False,
        )
        self.cloud = ComputeCloud(settings, clock=self.clock.timestamp, rng=Random(7))
        server.cloud = self.cloud
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
        clients = Clients(credentials, endpoint=server.url)
        self.provider = wire.a_provider(clients)
        self.impatient = wire.a_provider(clients, read_timeout=IMPATIENCE)
        self.elsewhere = wire.a_provider(clients, deployment=OTHER_DEPLOYMENT)

    def order(self, **given: Any) -> LaunchOrder:
        return wire.an_order(**{"order_id": "wm-0123456789abcdef", **given})

    def allow(self, count: int) -> None:
        scope = CapacityScope(wire.ZONE, "n2-standard-2", spot=True)
        self.cloud.capacity[scope] = count

    def stop(self, key: WorkerKey) -> None:
        self.cloud.stop([key.worker_id])

    def vanish(self, key: WorkerKey) -> None:
        self.cloud.forget([key.worker_id])

    def reboots(self, key: WorkerKey) -> int:
        return self.cloud.instance(key.worker_id).reboots

    def hide_new_machines(self, lag: timedelta) -> None:
        self.cloud.change_settings(list_lag_seconds=lag.total_seconds())

    def pass_time(self, time: timedelta) -> None:
        self.clock.now += time

    def refuse(self, method: Method, error: type[CloudError]) -> None:
        self._befall(method, FaultKind.ERROR, code=REASONS[error])

    def hang(self, method: Method) -> None:
        self._befall(method, FaultKind.HANG, seconds=HANGS_SECONDS)

    def lose_answer(self, method: Method) -> None:
        self._befall(method, FaultKind.LOST)

    def lose_one_answer(self) -> None:
        self.cloud.faults.add(Fault(FaultKind.LOST, ACTIONS[Method.LAUNCH]))

    def slow_down(self) -> None:
        self.cloud.change_settings(insert_seconds=60)

    def fail_next_creation(self, error: type[CloudError]) -> None:
        self.cloud.change_settings(refuses_late=True)
        code = LATE_CODES[error]
        self.cloud.faults.add(Fault(FaultKind.ERROR, "instances.insert", code=code, late=True))

    def _befall(self, method: Method, kind: FaultKind, **given: Any) -> None:
        times = CALLS.get(method, 1)
        self.cloud.faults.add(Fault(kind, ACTIONS[method], times=times, **given))
