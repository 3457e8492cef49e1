"""``make demo``: pools on three clouds and machines in a rack, a script, an end and a verdict.

Exit code 0 only if every task that can be done got done, no pool was ever over its maximum,
nothing is left in any cloud, and all ended well in the rack.  Read next: ``scripts`` (what is
played), ``mishaps`` (what happens in the rack), ``trouble`` (what ``make demo CHAOS=1`` does to the
clouds meanwhile).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import taskcluster  # type: ignore[import-untyped]

from infra.local.children import free_port
from infra.local.hardware import Hardware
from infra.local.mishaps import Mishaps
from infra.local.runner import run
from infra.local.samples import MACHINE_RULES, client_options, create_tasks
from infra.local.scripts import CHAOS, PLAIN, Script
from infra.local.standing import Standing, look
from infra.local.timeline import Timeline, follow
from infra.local.trouble import Trouble
from infra.settings import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.stage import LocalStage

SWEEP_SECONDS = 5
"""Between two sweeps at the end, which otherwise come every few minutes."""


class Demo:
    """A script being played on a running stage, and what came of it."""

    def __init__(self, stage: LocalStage, script: Script) -> None:
        options = client_options(stage.root_url)
        self.stage = stage
        self.script = script
        self.queue = taskcluster.Queue(options)
        self.manager = taskcluster.WorkerManager(options)
        self.timeline = Timeline(stage)
        self.trouble = Trouble(stage.cloud_urls, script)
        self.mishaps = Mishaps(stage, Hardware(stage, script.rack)) if script.rack else None
        self.open: dict[str, list[str]] = {}
        self.done: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.failures: list[str] = []
        self._began = time.monotonic()
        self._swept = 0.0

    def play(self) -> None:
        """Create pools and tasks, wait for the work, let everything go, and judge."""
        if self.mishaps:
            self.mishaps.start()
        for pool_id, definition in self.script.pools.items():
            self.manager.createWorkerPool(pool_id, definition)
        self.open = {
            pool_id: create_tasks(self.queue, pool_id, count, seconds=3)
            for pool_id, count in self.script.tasks.items()
        }
        follow(self.timeline, until=lambda: self._is_late() or self._worked())
        self.trouble.end()
        print("The work that can be done is done; every pool's maximum goes to 0.", flush=True)
        for pool_id, definition in self.script.pools.items():
            config = {**definition["config"], "maxCapacity": 0}
            self.manager.updateWorkerPool(pool_id, {**definition, "config": config})
        follow(self.timeline, until=lambda: self._is_late() or self._is_empty())
        self._judge()
        self._table()

    def _is_late(self) -> bool:
        return time.monotonic() - self._began > self.script.longest_seconds

    def _worked(self) -> bool:
        """Whether all tasks that can be done are, and what was to go wrong has."""
        standing = self._look()
        self.trouble.go_on(standing)
        for pool_id in self.script.doable:
            self._follow_tasks(pool_id)
        if any(self.open[pool_id] for pool_id in self.script.doable) or self.trouble.is_on:
            return False
        return all(
            any(error["kind"] == kind for error in self._errors(pool_id))
            for pool_id, kind in self.script.errors.items()
        )

    def _look(self) -> Standing:
        """See what runs, and remember the most of each pool."""
        standing = look(self.stage.cloud_urls)
        self.most |= standing.running
        return standing

    def _follow_tasks(self, pool_id: str) -> None:
        """Count what is done, up to the first task that is not.

        A task whose machine is gone is created once more.  Taskcluster's queue starts it anew when
        it hears of the machine's end, ours 20 minutes later, when the claim runs out.
        """
        waiting = self.open[pool_id]
        while waiting:
            status = self.queue.status(waiting[0])["status"]
            if status["state"] == "completed":
                self.done[pool_id] += 1
            elif status["state"] == "running" and self._is_gone(pool_id, status["runs"][-1]):
                self.lost[pool_id] += 1
                waiting += create_tasks(self.queue, pool_id, 1, seconds=3)
            else:
                return
            del waiting[0]

    def _is_gone(self, pool_id: str, task_run: dict[str, Any]) -> bool:
        if not self.script.is_chaotic:
            return False
        name = (pool_id, task_run["workerGroup"], task_run["workerId"])
        return bool(self.manager.worker(*name)["state"] == "stopped")

    def _is_empty(self) -> bool:
        """Whether nothing is left or goes on; what outlived its machine is swept meanwhile."""
        if not self._look().in_words():
            return not (self.mishaps and self.mishaps.is_playing)
        if self.script.is_chaotic and time.monotonic() - self._swept > SWEEP_SECONDS:
            self._swept = time.monotonic()
            for provider in STAGES["local"].providers:
                if provider.has_loop:
                    self.stage.tick(f"sweep-{provider.provider_id}", at=datetime.now(UTC))
        return False

    def _errors(self, pool_id: str) -> Iterator[dict[str, Any]]:
        query: dict[str, str] = {}
        while True:
            page = self.manager.listWorkerPoolErrors(pool_id, query=query)
            yield from page["workerPoolErrors"]
            if "continuationToken" not in page:
                return
            query = {"continuationToken": page["continuationToken"]}

    def _judge(self) -> None:
        for pool_id in self.script.doable:
            if left := len(self.open[pool_id]):
                self.failures.append(f"{pool_id}: {left} tasks were not done")
        for pool_id, definition in self.script.pools.items():
            maximum = definition["config"]["maxCapacity"]
            if (most := self.timeline.pools[pool_id].most) > maximum:
                self.failures.append(f"{pool_id}: {most} cost money at once, over {maximum}")
            if (most := self.most[pool_id]) > maximum:
                self.failures.append(f"{pool_id}: {most} machines ran at once, over {maximum}")
        if left_over := self._look().in_words():
            self.failures.append(f"left in the clouds: {left_over}")
        if self.mishaps:
            self.mishaps.stop()
            self.failures += self.mishaps.judge()

    def _table(self) -> None:
        print(f"\n{'pool':14} {'tasks done':>10} {'launched':>9} {'most/max':>9}  errors")
        for pool_id, definition in self.script.pools.items():
            errors = Counter(
                f"{error.get('launchConfigId', '-')} {error['kind']}"
                for error in self._errors(pool_id)
            )
            told = ", ".join(f"{name} × {count}" for name, count in sorted(errors.items()))
            most = self.timeline.pools[pool_id].most
            limits = f"{most}/{definition['config']['maxCapacity']}"
            tasks = f"{self.done[pool_id]}/{self.script.tasks[pool_id]}"
            launched = len(self.manager.listWorkersForWorkerPool(pool_id)["workers"])
            print(f"{pool_id:14} {tasks:>10} {launched:>9} {limits:>9}  {told or '-'}")
        for line in self.mishaps.table() if self.mishaps else ():
            print(line)
        if self.script.is_chaotic:
            lost = sum(self.lost.values())
            print(
                f"{self.trouble.in_words()}; {lost} tasks died with their machine, and were redone"
            )
        for failure in self.failures:
            print(f"FAILED: {failure}")
        print("ok" if not self.failures else "not ok", flush=True)


def main(arguments: list[str]) -> int:
    """Play the demo on a stage of its own."""
    parser = argparse.ArgumentParser(prog="make demo")
    parser.add_argument("--chaos", action="store_true", help="much goes wrong in all clouds")
    script = CHAOS if parser.parse_args(arguments).chaos else PLAIN
    demos: list[Demo] = []

    def watch(stage: LocalStage) -> None:
        demos.append(Demo(stage, script))
        demos[0].play()

    code = run(
        watch,
        port=free_port(),
        name=script.name,
        clouds=script.clouds,
        timings=script.timings,
        machine_rules=MACHINE_RULES,
    )
    return code or (1 if not demos or demos[0].failures else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
