"""``make demo``: three pools, a script, an end and a verdict.

A steady pool; one whose first region has no capacity; one whose workers never claim.  Exit code 0
only if every task that can be done got done, no limit was broken and no instance is left.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import taskcluster  # type: ignore[import-untyped]

from infra.local.children import free_port
from infra.local.runner import run
from infra.local.samples import (
    MACHINE_RULES,
    SILENT_IMAGE,
    client_options,
    create_tasks,
    launch_config,
    pool,
)
from infra.local.timeline import Timeline, follow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.stage import LocalStage

STEADY, SCARCE, SILENT = "demo/steady", "demo/scarce", "demo/silent"
FULL_REGION = "us-west-1"
LONGEST_SECONDS = 110
"""After which the demo has failed."""

DEFINITIONS = {
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
}
EC2_CONFIG = {"capacity": [{"place": FULL_REGION, "count": 0}]}


@dataclass
class Demo:
    """The script, and what came of it."""

    stage: LocalStage
    tasks: dict[str, list[str]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Clients of the running stage."""
        options = client_options(self.stage.root_url)
        self.queue = taskcluster.Queue(options)
        self.workers = taskcluster.WorkerManager(options)
        self.timeline = Timeline(self.stage)

    def play(self) -> None:
        """Create pools and tasks, wait for the work, let everything go, and judge."""
        began = time.monotonic()

        def late() -> bool:
            return time.monotonic() - began > LONGEST_SECONDS

        for pool_id, definition in DEFINITIONS.items():
            self.workers.createWorkerPool(pool_id, definition)
        self.tasks = {
            STEADY: create_tasks(self.queue, STEADY, 18, seconds=3),
            SCARCE: create_tasks(self.queue, SCARCE, 10, seconds=3),
            SILENT: create_tasks(self.queue, SILENT, 2, seconds=3),
        }
        follow(self.timeline, until=lambda: late() or self._worked())
        print("The work that can be done is done; every pool's maximum goes to 0.", flush=True)
        for pool_id, definition in DEFINITIONS.items():
            config = {**definition["config"], "maxCapacity": 0}
            self.workers.updateWorkerPool(pool_id, {**definition, "config": config})
        follow(self.timeline, until=lambda: late() or not self._instances())
        self._judge()
        self._table()

    def _worked(self) -> bool:
        """Whether all tasks are done but the silent pool's, and that one's workers were seen."""
        for pool_id in (STEADY, SCARCE):
            for task_id in self.tasks[pool_id][self.done[pool_id] :]:
                if self.queue.status(task_id)["status"]["state"] != "completed":
                    return False
                self.done[pool_id] += 1
        return any(error["kind"] == "never-claimed" for error in self._errors(SILENT))

    def _instances(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.stage.ec2_url}/_control/instances") as answer:
            return [i for i in json.load(answer) if i["state"] != "terminated"]

    def _errors(self, pool_id: str) -> Iterator[dict[str, Any]]:
        query: dict[str, str] = {}
        while True:
            page = self.workers.listWorkerPoolErrors(pool_id, query=query)
            yield from page["workerPoolErrors"]
            if "continuationToken" not in page:
                return
            query = {"continuationToken": page["continuationToken"]}

    def _launched(self, pool_id: str) -> int:
        page = self.workers.listWorkersForWorkerPool(pool_id)
        return len(page["workers"])

    def _judge(self) -> None:
        for pool_id in (STEADY, SCARCE):
            missing = len(self.tasks[pool_id]) - self.done[pool_id]
            if missing:
                self.failures.append(f"{pool_id}: {missing} tasks were not done")
        for pool_id, definition in DEFINITIONS.items():
            most = self.timeline.pools[pool_id].most
            if most > definition["config"]["maxCapacity"]:
                self.failures.append(f"{pool_id}: {most} cost money at once, more than its maximum")
        if left := self._instances():
            self.failures.append(f"{len(left)} instances are left")

    def _table(self) -> None:
        print(f"\n{'pool':14} {'tasks done':>10} {'launched':>9} {'most/max':>9}  errors")
        for pool_id, definition in DEFINITIONS.items():
            errors = Counter(
                f"{error.get('launchConfigId', '-')} {error['kind']}"
                for error in self._errors(pool_id)
            )
            told = ", ".join(f"{name} × {count}" for name, count in sorted(errors.items()))
            most = self.timeline.pools[pool_id].most
            limits = f"{most}/{definition['config']['maxCapacity']}"
            tasks = f"{self.done[pool_id]}/{len(self.tasks[pool_id])}"
            print(
                f"{pool_id:14} {tasks:>10} {self._launched(pool_id):>9} {limits:>9}  {told or '-'}"
            )
        for failure in self.failures:
            print(f"FAILED: {failure}")
        print("ok" if not self.failures else "not ok", flush=True)


def main() -> int:
    """Play the demo on a stage of its own."""
    demos: list[Demo] = []

    def watch(stage: LocalStage) -> None:
        demos.append(Demo(stage))
        demos[0].play()

    code = run(
        watch,
        port=free_port(),
        name="demo",
        clouds={"ec2": EC2_CONFIG},
        machine_rules=MACHINE_RULES,
    )
    return code or (1 if not demos or demos[0].failures else 0)


if __name__ == "__main__":
    sys.exit(main())
