"""The clouds of the benchmarks: what their launch configs look like, and how they are seeded.

Each is simulated in a process of its own and named after its provider type, as is its provider.
Read next: ``world``, which starts them.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.children import LOOPBACK, Child, clean_environment, free_port
from worker_manager.core.model import Location
from worker_manager.providers.aws.listing import (
    DEPLOYMENT_TAG,
    LAUNCH_CONFIG_TAG,
    ORDER_TAG,
    POOL_TAG,
)
from worker_manager.providers.azure.tags import order_tags
from worker_manager.providers.google.labels import order_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.core.model import Json, LaunchOrder

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "simulated-project"
SUBSCRIPTION = "00000000-0000-4000-8000-000000000000"
RESOURCE_GROUP = "rg"


@dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud as a benchmark needs it.

    ``groups`` are the worker groups that launch configs are spread over, ``location_of`` tells
    which list shows a group; ``launch_config`` makes a body for one, ``seed`` the control entry
    that puts machines of an order there.
    """

    name: str
    module: str
    groups: tuple[str, ...]
    location_of: Callable[[str], Location]
    launch_config: Callable[[str, int], dict[str, Any]]
    seed: Callable[[LaunchOrder, str, int], dict[str, Any]]
    options: Mapping[str, str] = field(default_factory=dict)
    identity: Json = field(default_factory=dict)
    """What the row of a seeded machine knows of it."""

    @property
    def locations(self) -> tuple[Location, ...]:
        """What has to be listed."""
        return tuple(dict.fromkeys(map(self.location_of, self.groups)))

    def group_of(self, number: int, index: int) -> str:
        """Where launch config ``index`` of a pool launches."""
        return self.groups[(number + index) % len(self.groups)]


def _ec2_body(group: str, number: int) -> dict[str, Any]:
    return {
        "region": group,
        "launchConfig": {
            "ImageId": f"ami-{number:017x}",
            "InstanceType": ("m5.large", "m6i.large", "c5.large")[number % 3],
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
            "SubnetId": f"subnet-0123456789abcd{number % 4096:03x}",
            "InstanceMarketOptions": {"MarketType": "spot"},
        },
    }


def _ec2_seed(order: LaunchOrder, group: str, number: int) -> dict[str, Any]:
    tags = {
        "Name": order.pool_id,
        "Owner": order.inputs["owner"],
        DEPLOYMENT_TAG: order.inputs["deployment"],
        POOL_TAG: order.pool_id,
        LAUNCH_CONFIG_TAG: order.launch_config_id,
        ORDER_TAG: order.order_id,
    }
    return {"region": group, "number": number, "tags": tags, "volume_tags": tags}


def _compute_body(group: str, number: int) -> dict[str, Any]:
    image = f"projects/images/global/images/linux-{number}"
    return {
        "region": group.rpartition("-")[0],
        "zone": group,
        "machineType": f"zones/{group}/machineTypes/n2-standard-{(2, 4, 8)[number % 3]}",
        "disks": [
            {
                "autoDelete": True,
                "boot": True,
                "initializeParams": {"diskSizeGb": 75, "sourceImage": image},
                "type": "PERSISTENT",
            }
        ],
        "networkInterfaces": [{"accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
        "scheduling": {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"},
    }


def _compute_seed(order: LaunchOrder, group: str, number: int) -> dict[str, Any]:
    labels = order_labels(order)
    return {
        "zone": group,
        "number": number,
        "labels": labels,
        "disk_labels": labels,
        "prefix": f"seeded-{order.order_id[:8].lower().strip('_-')}",
    }


def _arm_id(kind: str, name: str) -> str:
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers/{kind}/{name}"


def arm_inline_body(group: str, number: int) -> dict[str, Any]:
    """A launch config of the older shape: one PUT of a VM."""
    return {
        "location": group,
        "subnetId": _arm_id("Microsoft.Network/virtualNetworks", f"{group}/subnets/workers"),
        "hardwareProfile": {"vmSize": f"Standard_D{(2, 4, 8)[number % 3]}s_v5"},
        "storageProfile": {
            "imageReference": {"id": _arm_id("Microsoft.Compute/images", f"win-{number}")},
            "osDisk": {
                "caching": "ReadOnly",
                "createOption": "FromImage",
                "diffDiskSettings": {"option": "Local"},
            },
        },
        "osProfile": {"windowsConfiguration": {"enableAutomaticUpdates": False}},
        "priority": "Spot",
        "evictionPolicy": "Delete",
        "billingProfile": {"maxPrice": -1},
    }


def arm_template_body(group: str, number: int) -> dict[str, Any]:
    """A launch config as all real pools have it: the deployment of a template."""
    subnet = _arm_id("Microsoft.Network/virtualNetworks", f"{group}/subnets/workers")
    parameters = {
        "imageId": _arm_id("Microsoft.Compute/images", f"win-{number}"),
        "location": group,
        "priority": "Spot",
        "subnetId": subnet,
        "vmSize": f"Standard_D{(2, 4, 8)[number % 3]}s_v5",
    }
    template = _arm_id("Microsoft.Resources/templateSpecs", "taskcluster-arm-template/versions/1.0")
    return {
        "location": group,
        "armDeployment": {
            "mode": "Incremental",
            "parameters": {name: {"value": value} for name, value in parameters.items()},
            "templateLink": {"id": template},
        },
    }


def _arm_seed(order: LaunchOrder, group: str, number: int) -> dict[str, Any]:
    tags = order_tags(order, group=group, machine="seeded")
    return {"group": RESOURCE_GROUP, "number": number, "tags": tags, "location": group}


AWS = Cloud(
    name="aws",
    module="infra.local.clouds.ec2",
    groups=("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    location_of=Location,
    launch_config=_ec2_body,
    seed=_ec2_seed,
    identity={"accountId": "123456789012", "imageId": "ami-1"},
)
GOOGLE = Cloud(
    name="google",
    module="infra.local.clouds.compute",
    groups=("us-central1-a", "us-central1-b", "us-west1-a", "us-east1-b"),
    location_of=lambda _: Location(PROJECT),
    launch_config=_compute_body,
    seed=_compute_seed,
    options={
        "project": PROJECT,
        "serviceAccountId": "107001234567890123456",
        "serviceAccountEmail": f"workers@{PROJECT}.iam.gserviceaccount.com",
    },
)
AZURE = Cloud(
    name="azure",
    module="infra.local.clouds.arm",
    groups=("eastus", "eastus2", "centralus", "northcentralus", "westus2", "uksouth"),
    location_of=lambda _: Location(SUBSCRIPTION),
    launch_config=arm_template_body,
    seed=_arm_seed,
    options={"subscription": SUBSCRIPTION, "resourceGroup": RESOURCE_GROUP},
    identity={"resourceGroup": RESOURCE_GROUP},
)
CLOUDS = (AWS, AZURE, GOOGLE)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated cloud that listens at ``url``."""

    cloud: Cloud
    url: str

    def control(self, **document: Any) -> Any:
        """Change it; what the document's keys answer."""
        body = json.dumps(document).encode()
        request = urllib.request.Request(f"{self.url}/_control", body, method="POST")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def look(self, what: str = "state") -> Any:
        """What its control side tells: ``state`` has instances, calls and refusals, counted."""
        with urllib.request.urlopen(f"{self.url}/_control/{what}", timeout=60) as answer:
            return json.load(answer)

    def calls(self, *actions: str) -> int:
        """Calls of these actions (of any, if none is given) since the counts were reset."""
        counted: Mapping[str, Json] = self.look()["calls"]
        return sum(
            sum(places.values())
            for action, places in counted.items()
            if not actions or action in actions
        )


def start(cloud: Cloud, folder: Path) -> tuple[Child, Simulated]:
    """Run it in a process of its own, whose log is in ``folder``; answers when it listens."""
    port = free_port()
    child = Child(
        cloud.name,
        [sys.executable, "-m", cloud.module, "--port", str(port)],
        environment=clean_environment(
            home=folder / cloud.name,
            path=str(Path(sys.executable).parent),
            PYTHONPATH=str(ROOT),
        ),
        log=folder / f"{cloud.name}.log",
    )
    child.wait_for_port(port)
    return child, Simulated(cloud, f"http://{LOOPBACK}:{port}")
