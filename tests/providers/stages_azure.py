"""The simulated Azure as a stage, for both shapes of launch configs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm import ArmCloud, ArmFault, Fate, Kind, Outcome, Power, Settings
from infra.local.clouds.arm import Step as Stage
from infra.local.clouds.capacity import CapacityScope
from infra.local.clouds.faults import FaultKind
from tests.providers.contract import HANGS_SECONDS, IMPATIENCE
from tests.providers.orders import DEPLOYMENT, OTHER_DEPLOYMENT, a_worker, an_order
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
from worker_manager.core.model import Location, WorkerKey
from worker_manager.providers.azure.setup import start
from worker_manager.providers.fake import Method
from worker_manager.providers.protocol import Setup

if TYPE_CHECKING:
    from infra.local.clouds.arm import SimulatedArm
    from worker_manager.core.model import LaunchOrder, Worker
    from worker_manager.providers.azure.provider import AzureProvider

GROUP = "eastus"
SIZE = "Standard_D2s_v5"
SUBNET = (
    "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/rg-net/providers"
    "/Microsoft.Network/virtualNetworks/vn-east/subnets/sn-east"
)
IMAGE = (
    "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/rg-images/providers"
    "/Microsoft.Compute/galleries/win2022/images/win2022/versions/1.3.5"
)
TEMPLATE = (
    "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/template-spec/providers"
    "/Microsoft.Resources/templateSpecs/taskcluster-arm-template/versions/1.0"
)
AZURE_BODY: dict[str, Any] = {
    "location": GROUP,
    "subnetId": SUBNET,
    "hardwareProfile": {"vmSize": SIZE},
    "priority": "Spot",
    "evictionPolicy": "Deallocate",
    "billingProfile": {"maxPrice": -1},
    "storageProfile": {
        "imageReference": {"id": IMAGE},
        "osDisk": {"createOption": "FromImage", "name": "theirs", "diskSizeGB": 75},
        "dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 32}],
    },
    "tags": {"team": "a", "worker-pool-id": "theirs"},
    "workerConfig": {"shutdown": {}},
    "capacityPerInstance": 1,
}
AZURE_TEMPLATE_BODY: dict[str, Any] = {
    "armDeployment": {
        "mode": "Incremental",
        "templateLink": {"id": TEMPLATE},
        "parameters": {
            "location": {"value": GROUP},
            "vmSize": {"value": SIZE},
            "priority": {"value": "Spot"},
            "imageId": {"value": IMAGE},
            "subnetId": {"value": SUBNET},
        },
    },
    "armDeploymentResourceGroup": "RG-Templates",
    "location": GROUP,
    "tags": {"team": "a"},
    "workerConfig": {"shutdown": {}},
}
CODES = {
    OutOfCapacityError: "AllocationFailed",
    QuotaExceededError: "QuotaExceeded",
    InvalidLaunchConfigError: "InvalidParameter",
    ThrottledError: "TooManyRequests",
    CloudUnavailableError: "InternalServerError",
    NotAuthorizedError: "LinkedAuthorizationFailed",
}
AT_ONCE: dict[str, Any] = {
    name: 0.0
    for name in (
        "vm_create_seconds",
        "vm_delete_seconds",
        "nic_create_seconds",
        "nic_delete_seconds",
        "ip_create_seconds",
        "ip_delete_seconds",
        "disk_create_seconds",
        "disk_delete_seconds",
        "deployment_start_seconds",
        "deployment_delete_seconds",
    )
}


class AzureStage:
    """The simulated Azure, with launch configs of one shape."""

    group = GROUP

    def __init__(self, server: SimulatedArm, body: dict[str, Any]) -> None:
        self.clock = VirtualClock()
        settings = Settings(resource_groups=("rg", "RG-Templates"), **AT_ONCE)
        self.cloud = ArmCloud(settings, clock=self.clock.timestamp, rng=Random(7))
        server.cloud = self.cloud
        self.body = body
        self.location = Location(self.cloud.settings.subscription_id)
        self.absent = self._absent()
        self.url = server.url
        self.slept = 0.0
        """Seconds that the providers slept, on the cloud's clock."""
        self.provider = self._provider(server.url, DEPLOYMENT)
        self.elsewhere = self._provider(server.url, OTHER_DEPLOYMENT)

    def order(self, **given: Any) -> LaunchOrder:
        ours = {"provider_id": "azure", "location": self.location, "body": self.body}
        return an_order(**{**ours, **given})

    def allow(self, count: int) -> None:
        self.cloud.capacity[CapacityScope(GROUP, SIZE)] = count

    def stop(self, key: WorkerKey) -> None:
        self.cloud.machine(key.worker_id).power = Power.DEALLOCATED

    def vanish(self, key: WorkerKey) -> None:
        self.cloud.forget([key.worker_id], Kind.VM)

    def reboots(self, key: WorkerKey) -> int:
        return self.cloud.machine(key.worker_id).reboots

    def hide_new_machines(self, lag: timedelta) -> None:
        self.cloud.change_settings(list_lag_seconds=lag.total_seconds())

    def pass_time(self, time: timedelta) -> None:
        self.clock.now += time

    def refuse(self, method: Method, error: type[CloudError]) -> None:
        self._fault(FaultKind.ERROR, method, code=CODES[error])

    def lose_answer(self, method: Method) -> None:
        self._fault(FaultKind.LOST, method)

    @property
    def impatient(self) -> AzureProvider:
        return self._provider(self.url, DEPLOYMENT, IMPATIENCE)

    def hang(self, method: Method) -> None:
        self._fault(FaultKind.HANG, method, seconds=HANGS_SECONDS)

    def lose_one_answer(self) -> None:
        self.cloud.faults.add(ArmFault(FaultKind.LOST, self._action(Method.LAUNCH)))

    def records(self) -> list[str]:
        """Names of the records of deployments."""
        with self.cloud.present():
            return [record.name for record in self.cloud.deployments.all()]

    def lose_records(self) -> None:
        """Delete all of them behind our back."""
        with self.cloud.present() as now:
            for record in self.cloud.deployments.all():
                self.cloud.deployments.delete(record.group, record.name, now=now)

    def slow_down(self) -> None:
        self.cloud.change_settings(vm_create_seconds=60.0)

    def fail_next_creation(self, error: type[CloudError]) -> None:
        self.cloud.fates.add(
            Fate(Stage.CREATE, Outcome.FAIL, kind="virtualMachines", code=CODES[error])
        )

    def _fault(self, kind: FaultKind, method: Method, **given: Any) -> None:
        times = self.order().count if method is Method.LAUNCH else 1
        self.cloud.faults.add(ArmFault(kind, self._action(method), times=times, **given))

    def _action(self, method: Method) -> str:
        launched_as = "deployments" if "armDeployment" in self.body else "virtualMachines"
        return {
            Method.INSTANCES: "virtualMachines.listAll",
            Method.LOOKUP: f"{launched_as}.get",
            Method.LAUNCH: f"{launched_as}.put",
            Method.TERMINATE: "virtualMachines.delete",
            Method.REBOOT: "virtualMachines.restart",
        }[method]

    def _absent(self) -> Worker:
        identity = {"resourceGroup": "rg"}
        if "armDeployment" in self.body:
            identity["deployment"] = "deploy-0"
        key = WorkerKey("proj/linux", GROUP, "vm-0")
        return replace(a_worker("vm-0"), key=key, location=self.location, identity=identity)

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.clock.now += timedelta(seconds=seconds)

    def _provider(
        self, url: str, deployment: str, read_timeout: timedelta | None = None
    ) -> AzureProvider:
        return start(
            Setup(
                provider_id="azure",
                deployment=deployment,
                options={"subscription": self.location, "resourceGroup": "rg"},
                secret=lambda: "{}",
                endpoint=url,
                read_timeout=read_timeout,
            ),
            sleep=self._sleep,
        )
