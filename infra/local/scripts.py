"""What the demos play: pools, tasks for them, and what goes wrong.  Read next: ``demo``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.samples import (
    SILENT_IMAGE,
    azure_machine_config,
    azure_template_config,
    google_launch_config,
    launch_config,
    pool,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Script:
    """Pools and how many tasks each gets.

    ``errors`` are pools whose tasks nobody can do, and the kind of error that must be recorded.
    ``clouds`` are control documents at the start; ``trouble`` is more of them, each with the
    second at which it is told, and kills come every ``kill_seconds``, both for
    ``trouble_seconds`` and in a script that is chaotic.  ``rack`` is a pool of machines in a rack,
    with whom ``mishaps`` happen.
    """

    name: str
    pools: Mapping[str, dict[str, Any]]
    tasks: Mapping[str, int]
    errors: Mapping[str, str] = field(default_factory=dict)
    clouds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    longest_seconds: float
    trouble_seconds: float = 0.0
    kill_seconds: float = 4.0
    rack: str | None = None

    @property
    def doable(self) -> list[str]:
        """Pools whose tasks can be done."""
        return [pool_id for pool_id in self.pools if pool_id not in self.errors]

    @property
    def is_chaotic(self) -> bool:
        """Whether machines are killed on the way."""
        return self.trouble_seconds > 0


STEADY, SCARCE, SILENT = "demo/steady", "demo/scarce", "demo/silent"
GOOGLE, AZURE = "demo/google", "demo/azure"
FULL_REGION = "us-west-1"

PLAIN = Script(
    name="demo",
    pools={
        STEADY: pool(
            [launch_config("lc-east", "us-east-1"), launch_config("lc-west", "us-west-2")],
            maximum=6,
            description="a steady load over two regions",
        ),
        SCARCE: pool(
            [launch_config("lc-full", FULL_REGION), launch_config("lc-free", "us-east-1")],
            maximum=5,
            description="one region has no capacity",
        ),
        SILENT: pool(
            [launch_config("lc-silent", "us-west-2", image=SILENT_IMAGE)],
            maximum=2,
            description="workers that register and never claim",
        ),
        GOOGLE: pool(
            [
                google_launch_config("lc-central", "us-central1-a", model="SPOT"),
                google_launch_config("lc-east", "us-east1-b"),
            ],
            maximum=4,
            description="two zones of Google Cloud",
            provider_id="google",
        ),
        AZURE: pool(
            [
                azure_template_config("lc-template", "eastus"),
                azure_machine_config("lc-machine", "westus2"),
            ],
            maximum=4,
            description="Azure, by a template and without",
            provider_id="azure",
        ),
    },
    tasks={STEADY: 18, SCARCE: 10, SILENT: 2, GOOGLE: 8, AZURE: 8},
    errors={SILENT: "never-claimed"},
    clouds={"ec2": {"capacity": [{"place": FULL_REGION, "count": 0}]}},
    longest_seconds=300,
    rack="demo/rack",
)

_KEPT_VOLUME = {
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 10, "DeleteOnTermination": False}}
    ]
}
_SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}


def _on_ec2(launch_config_id: str, region: str, **more: Any) -> dict[str, Any]:
    config = launch_config(launch_config_id, region)
    return {**config, "launchConfig": {**config["launchConfig"], **more}}


CHAOS = Script(
    name="chaos",
    pools={
        "chaos/aws": pool(
            [
                _on_ec2("lc-spot", "us-east-1", **_SPOT),
                _on_ec2("lc-volume", "us-west-2", **_KEPT_VOLUME),
            ],
            maximum=5,
            description="EC2 in trouble",
        ),
        "chaos/google": pool(
            [
                google_launch_config("lc-spot", "us-central1-a", model="SPOT"),
                google_launch_config("lc-east", "us-east1-b"),
            ],
            maximum=5,
            description="Compute Engine in trouble",
            provider_id="google",
        ),
        "chaos/azure": pool(
            [
                azure_template_config("lc-template", "eastus"),
                azure_machine_config("lc-machine", "westus2"),
            ],
            maximum=5,
            description="Azure in trouble",
            provider_id="azure",
        ),
    },
    tasks={"chaos/aws": 20, "chaos/google": 15, "chaos/azure": 15},
    clouds={
        "ec2": {
            "settings": {"list_lag_seconds": 3},
            "latency": {"*": 0.05},
            "faults": [
                {"kind": "lost", "action": "RunInstances"},
                {"kind": "error", "action": "RunInstances", "code": "InternalError", "times": 2},
                {"kind": "hang", "action": "RunInstances", "seconds": 30, "probability": 0.1},
                {"kind": "error", "action": "DescribeInstances", "times": 8, "probability": 0.3},
                {"kind": "hang", "action": "DescribeInstances", "seconds": 30},
                {"kind": "lost", "action": "TerminateInstances", "times": 2},
                {"kind": "error", "action": "TerminateInstances", "times": 2},
            ],
        },
        "compute": {
            "settings": {"list_lag_seconds": 3},
            "latency": {"*": 0.05},
            "faults": [
                {"kind": "lost", "action": "instances.insert", "times": 2},
                {"kind": "error", "action": "instances.insert", "code": "backendError"},
                {
                    "kind": "error",
                    "action": "instances.insert",
                    "code": "ZONE_RESOURCE_POOL_EXHAUSTED",
                    "late": True,
                    "times": 2,
                    "probability": 0.5,
                },
                {"kind": "hang", "action": "instances.insert", "seconds": 30},
                {
                    "kind": "error",
                    "action": "instances.aggregatedList",
                    "times": 8,
                    "probability": 0.3,
                },
                {"kind": "hang", "action": "instances.aggregatedList", "seconds": 30},
                {"kind": "lost", "action": "instances.delete", "times": 2},
                {"kind": "error", "action": "instances.delete", "times": 2},
            ],
        },
        "arm": {
            "settings": {"list_lag_seconds": 3},
            "latency": {"*": 0.05},
            "faults": [
                {"kind": "lost", "action": "virtualMachines.put"},
                {"kind": "lost", "action": "deployments.put"},
                {
                    "kind": "error",
                    "action": "deployments.put",
                    "code": "TooManyRequests",
                    "status": 429,
                    "retry_after": 2,
                    "times": 2,
                },
                {"kind": "error", "action": "virtualMachines.put", "times": 2},
                {"kind": "hang", "action": "virtualMachines.put", "seconds": 30},
                {
                    "kind": "error",
                    "action": "virtualMachines.listAll",
                    "times": 8,
                    "probability": 0.3,
                },
                {"kind": "hang", "action": "virtualMachines.listAll", "seconds": 30},
                {"kind": "lost", "action": "virtualMachines.delete", "times": 2},
                {"kind": "error", "action": "virtualMachines.delete", "times": 2},
            ],
            "fates": [
                {"step": "create", "outcome": "fail", "kind": "virtualMachines"},
                {"step": "cascade", "outcome": "left_behind", "times": 4},
                {
                    "step": "create",
                    "outcome": "runs_anyway",
                    "kind": "virtualMachines",
                    "code": "OSProvisioningTimedOut",
                },
            ],
        },
    },
    timings={"list_lag": 5, "stray_grace": 15, "leftover_grace": 10, "launch": 60},
    longest_seconds=240,
    trouble_seconds=50,
)
