"""The clouds that the provider contract runs over: the fakes, and EC2 simulated over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from infra.local.clouds.ec2 import (
    CapacityScope,
    Ec2Cloud,
    Ec2Server,
    Fault,
    FaultKind,
    Settings,
)
from tests.providers.contract import HANGS_SECONDS, IMPATIENCE
from tests.providers.orders import (
    BODY,
    DEPLOYMENT,
    NOW,
    OREGON,
    OTHER_DEPLOYMENT,
    a_worker,
    an_order,
)
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.providers.aws.provider import AwsProvider
from worker_manager.providers.fake import FakeProvider, Method
from worker_manager.providers.fake_cloud import FakeCloud
from worker_manager.providers.fake_names import NamingFake
from worker_manager.providers.fake_slow import SlowCloud
from worker_manager.providers.fake_steps import Part, SteppingFake

if TYPE_CHECKING:
    import boto3

    from worker_manager.core.model import LaunchOrder, WorkerKey

ACTIONS = {
    Method.INSTANCES: "DescribeInstances",
    Method.LOOKUP: "DescribeInstances",
    Method.RECOGNISE: "DescribeInstances",
    Method.LAUNCH: "RunInstances",
    Method.TERMINATE: "TerminateInstances",
    Method.REBOOT: "RebootInstances",
}
CODES = {
    OutOfCapacityError: "InsufficientInstanceCapacity",
    QuotaExceededError: "VcpuLimitExceeded",
    InvalidLaunchConfigError: "InvalidAMIID.NotFound",
    ThrottledError: "RequestLimitExceeded",
    CloudUnavailableError: "InternalError",
    NotAuthorizedError: "UnauthorizedOperation",
}


class VirtualClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def timestamp(self) -> float:
        return self.now.astimezone(UTC).timestamp()


class Regional:
    """What stages of clouds of regions have in common."""

    location = OREGON
    group = str(OREGON)
    absent = a_worker("i-0123456789abcdef0")

    def order(self, **given: Any) -> LaunchOrder:
        return an_order(**given)


class FakeStage(Regional):
    """A fake cloud as a stage."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cloud = self._cloud()
        self.provider = self._provider(DEPLOYMENT)
        self.elsewhere = self._provider(OTHER_DEPLOYMENT)

    def _cloud(self) -> FakeCloud:
        return FakeCloud(clock=self.clock)

    def _provider(self, deployment: str) -> FakeProvider:
        return FakeProvider(provider_id="aws", deployment=deployment, cloud=self.cloud)

    def allow(self, count: int) -> None:
        self.cloud.capacity["lc-6350aa384f6ab04fc4d1"] = count

    def stop(self, key: WorkerKey) -> None:
        self.cloud.stop(key)

    def vanish(self, key: WorkerKey) -> None:
        self.cloud.vanish(key)

    def reboots(self, key: WorkerKey) -> int:
        return self.cloud.machines[key].reboots

    def hide_new_machines(self, lag: timedelta) -> None:
        self.cloud.list_lag = lag

    def pass_time(self, time: timedelta) -> None:
        self.clock.now += time

    def refuse(self, method: Method, error: type[CloudError]) -> None:
        self.provider.fail(method, error("refused", code=CODES[error]))

    def lose_answer(self, method: Method) -> None:
        self.provider.fail(method, CloudUnavailableError("answer lost"), after_acting=True)

    @property
    def impatient(self) -> FakeProvider:
        return self.provider

    def hang(self, method: Method) -> None:
        self.provider.fail(method, CloudUnavailableError("no answer"))


class SteppingStage(FakeStage):
    """The fake that accepts machines one by one and makes them afterwards."""

    cloud: SlowCloud
    provider: SteppingFake

    def _cloud(self) -> SlowCloud:
        return SlowCloud(clock=self.clock)

    def _provider(self, deployment: str) -> SteppingFake:
        return SteppingFake(provider_id="aws", deployment=deployment, cloud=self.cloud)

    def lose_one_answer(self) -> None:
        self.provider.partly.append(Part(accepted=1, unknown=1, acted=True))

    def slow_down(self) -> None:
        self.cloud.creation_time = timedelta(minutes=1)

    def fail_next_creation(self, error: type[CloudError]) -> None:
        self.cloud.fail_next(error("refused", code=CODES[error]))


class NamingStage(SteppingStage):
    """The fake that takes names from us."""

    provider: NamingFake

    def _provider(self, deployment: str) -> NamingFake:
        return NamingFake(provider_id="aws", deployment=deployment, cloud=self.cloud)


class Ec2Stage(Regional):
    """The simulated EC2 as a stage."""

    def __init__(self, server: Ec2Server, session: boto3.Session) -> None:
        self.clock = VirtualClock()
        settings = Settings(pending_seconds=0, shutting_down_seconds=0, stopping_seconds=0)
        self.cloud = Ec2Cloud(settings, clock=self.clock.timestamp, rng=Random(7))
        server.cloud = self.cloud
        self.session = session
        self.provider = AwsProvider(provider_id="aws", deployment=DEPLOYMENT, session=session)
        self.elsewhere = AwsProvider(
            provider_id="aws", deployment=OTHER_DEPLOYMENT, session=session
        )

    def allow(self, count: int) -> None:
        scope = CapacityScope(OREGON, BODY["launchConfig"]["InstanceType"])
        self.cloud.limits.capacity[scope] = count

    def stop(self, key: WorkerKey) -> None:
        self.cloud.stop(key.group, [key.worker_id])

    def vanish(self, key: WorkerKey) -> None:
        self.cloud.forget([key.worker_id])

    def reboots(self, key: WorkerKey) -> int:
        return self.cloud.instance(key.worker_id).reboots

    def hide_new_machines(self, lag: timedelta) -> None:
        self.cloud.change_settings(list_lag_seconds=lag.total_seconds())

    def pass_time(self, time: timedelta) -> None:
        self.clock.now += time

    def refuse(self, method: Method, error: type[CloudError]) -> None:
        self.cloud.faults.add(Fault(FaultKind.ERROR, ACTIONS[method], code=CODES[error]))

    def refuse_always(self, action: str, code: str) -> None:
        self.cloud.faults.add(Fault(FaultKind.ERROR, action, code=code, times=None))

    def lose_answer(self, method: Method) -> None:
        self.cloud.faults.add(Fault(FaultKind.LOST, ACTIONS[method]))

    @property
    def impatient(self) -> AwsProvider:
        return AwsProvider(
            provider_id="aws",
            deployment=DEPLOYMENT,
            session=self.session,
            read_timeout=IMPATIENCE,
        )

    def hang(self, method: Method) -> None:
        self.cloud.faults.add(Fault(FaultKind.HANG, ACTIONS[method], seconds=HANGS_SECONDS))
