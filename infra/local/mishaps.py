"""What happens to machines in a rack while ``make demo`` plays, and whether all of it ended well.

One hangs: it is found missing, and the agent brings it back by the second of its ways.  One is put
into quarantine by an operator, keeps its task and gets no other.  One lets its tasks fail: that is
found, and it gets no more.  Read next: ``hardware``, which sets them up.
"""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import taskcluster  # type: ignore[import-untyped]

from infra.local.samples import create_tasks
from infra.local.standing import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from infra.local.hardware import Hardware
    from infra.local.stage import LocalStage

PAUSE_SECONDS = 1.0
"""Between two steps."""
TICK_SECONDS = 3.0
"""Between two looks at the machines, which otherwise come every minute or less."""
HELD_SECONDS = 20.0
"""The task that a machine keeps in quarantine takes so long: less than to find one missing."""
WAITING = 4
"""Short tasks that wait at any time until somebody is found flaky, so that all claim."""
WAYS = [("ssh", "error"), ("redfish-reset", "ok")]
"""How a machine that hangs comes back."""
DONE = ("completed", "failed")


@dataclass
class Cast:
    """Which machine plays whom."""

    held: str
    hung: str
    flaky: str


class Mishaps:
    """Let it all happen to ``hardware``, a step with each ``go_on``; then ``judge``.

    ``start`` does so in a thread, so that nobody has to wait for it, the setting up included.
    """

    def __init__(
        self,
        stage: LocalStage,
        hardware: Hardware,
        *,
        tick_seconds: float = TICK_SECONDS,
        held_seconds: float = HELD_SECONDS,
    ) -> None:
        self.is_over = False
        self.cast: Cast | None = None
        self._put_aside: datetime | None = None
        self.tasks: list[str] = []
        """All that were created, the first of which is the one to keep."""
        self._stage = stage
        self._hardware = hardware
        self._registry, self._queue = hardware.registry, hardware.queue
        self._tick_seconds, self._held_seconds = tick_seconds, held_seconds
        self._ticked = time.monotonic()
        self._scene = "nothing has begun"
        self._story = self._play()
        self._stopping = Event()
        self._fault: str | None = None
        self._thread = Thread(target=self._live, name="mishaps", daemon=True)

    def start(self) -> None:
        """Set the machines up and let it happen."""
        self._thread.start()

    @property
    def is_playing(self) -> bool:
        """Whether what was started goes on."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Let nothing more happen; what is not over is a failure."""
        self._stopping.set()
        self._thread.join()

    def go_on(self) -> None:
        """Do and look at what is due."""
        is_due = self.cast is not None and not self.is_over
        if is_due and time.monotonic() - self._ticked >= self._tick_seconds:
            self._ticked = time.monotonic()
            for name in ("examine", "act"):
                self._stage.tick(name, at=datetime.now(UTC))
        self.is_over = next(self._story, "over") == "over"

    def judge(self) -> list[str]:
        """What is not as it should be, in words; nothing if all went well."""
        if self._fault is not None:
            return [f"{self._hardware.pool_id}: {self._scene}: {self._fault}"]
        if self.cast is None or not self.is_over:
            return [f"{self._hardware.pool_id}: it got no further than: {self._scene}"]
        found = [
            *self._judge_hung(self.cast.hung),
            *self._judge_held(self.cast.held),
            *self._judge_flaky(self.cast.flaky),
        ]
        return [f"{self._hardware.pool_id}: {words}" for words in found]

    def table(self) -> list[str]:
        """A line for each machine: what it went through."""
        if self.cast is None:
            return []
        run, health = self._run(self.cast.hung), self._why(self.cast.flaky, "flaky")
        told = {
            self.cast.hung: f"hung; {_attempts(run)}; {run.get('message', 'no run')}",
            self.cast.held: f"quarantined by an operator; kept its task: {self._kept()}",
            self.cast.flaky: f"flaky: {health}",
        }
        width = max(len(name) for name in self._hardware.names)
        return [f"{name:{width}}  {told.get(name, 'well')}" for name in self._hardware.names]

    def _live(self) -> None:
        try:
            self._hardware.set_up()
            while not self.is_over and not self._stopping.wait(PAUSE_SECONDS):
                self.go_on()
        except Exception as error:  # whatever it is, it is told at the end
            self._fault = f"{type(error).__name__}: {error}"

    def _play(self) -> Iterator[str]:
        machines = self._hardware.names
        yield from self._until("all machines register", self._all_registered)
        self._create(1, seconds=self._held_seconds)
        yield from self._until("a machine takes a task", self._holder)
        held = str(self._holder())
        hung, flaky = [name for name in machines if name != held][:2]
        self.cast = Cast(held, hung, flaky)
        until = taskcluster.stringDate(datetime.now(UTC) + timedelta(hours=1))
        aside = {"quarantineUntil": until, "quarantineInfo": "its fan is loud"}
        self._queue.quarantineWorker(*self._hardware.path_of(held), aside)
        self._put_aside = datetime.now(UTC)
        tell(self._hardware.url, {"hang": [hung], "fail": [flaky]})
        self._say(f"{held} is quarantined with a task, {hung} hangs, {flaky} lets tasks fail")
        yield from self._until(f"{flaky} is found flaky", self._is_found_flaky)
        self._say(f"{flaky} is flaky: {self._why(flaky, 'flaky')}")
        yield from self._until(f"{hung} is found missing", lambda: self._run(hung))
        self._say(f"{hung}: {self._run(hung)['reason']}")
        yield from self._until(f"{hung} comes back", lambda: "ended" in self._run(hung))
        self._say(f"{hung}: {_attempts(self._run(hung))}")
        yield from self._until(f"{hung} is found well", lambda: not self._why(hung, "missing"))
        yield from self._until("all tasks end", self._have_ended)

    def _until(self, scene: str, is_so: Callable[[], Any]) -> Iterator[str]:
        self._scene = scene
        while not is_so():
            yield scene

    def _say(self, words: str) -> None:
        clock = datetime.now().astimezone().strftime("%H:%M:%S")
        print(f"{clock:8}  {self._hardware.pool_id:24} {words}", flush=True)

    def _all_registered(self) -> bool:
        return all("registered" in one["outcomes"] for one in self._rack().values())

    def _rack(self) -> dict[str, Any]:
        """The machines, as they are whatever anybody says of them."""
        url = f"{self._hardware.url}/_control/machines"
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _create(self, count: int, *, seconds: float) -> None:
        self.tasks += create_tasks(self._queue, self._hardware.pool_id, count, seconds=seconds)

    def _last_run(self, task_id: str) -> dict[str, Any]:
        runs = self._queue.status(task_id)["status"]["runs"]
        return dict(runs[-1]) if runs else {}

    def _holder(self) -> str | None:
        return self._last_run(self.tasks[0]).get("workerId")

    def _end_of(self, task_id: str) -> dict[str, Any] | None:
        """The last run of a task that has ended."""
        run = self._last_run(task_id)
        return run if run.get("state") in DONE else None

    def _have_ended(self) -> bool:
        """Whether all tasks have; but one that was given to a machine as it fell silent is lost."""
        assert self.cast is not None
        return all(
            self._end_of(task) or self._worker_of(task) == self.cast.hung for task in self.tasks
        )

    def _is_found_flaky(self) -> bool:
        """See to it that there is enough to do meanwhile."""
        assert self.cast is not None
        if self._why(self.cast.flaky, "flaky"):
            return True
        counts = self._queue.taskQueueCounts(self._hardware.pool_id)
        self._create(max(0, WAITING - counts["pendingTasks"]), seconds=0.5)
        return False

    def _why(self, name: str, verdict: str) -> str:
        """The reason of a verdict on a machine; empty if that is not its verdict."""
        query = {"taskQueueId": self._hardware.pool_id, "verdict": verdict}
        found = self._registry.machineHealth(query=query)["machines"]
        return next((str(one["reason"]) for one in found if one["workerId"] == name), "")

    def _runs(self, name: str) -> list[dict[str, Any]]:
        path = self._hardware.path_of(name)
        return list(self._registry.listWorkerActionRuns(*path)["runs"])

    def _run(self, name: str) -> dict[str, Any]:
        """What was done to a machine last."""
        return next(iter(self._runs(name)), {})

    def _kept(self) -> str:
        run = self._last_run(self.tasks[0])
        return f"{run['state']} by {run['workerId']}"

    def _judge_hung(self, name: str) -> Iterator[str]:
        runs, restarts = self._runs(name), self._rack()[name]["restarts"]
        if len(runs) != 1 or runs[0]["state"] != "succeeded":
            states = ", ".join(run["state"] for run in runs) or "none"
            yield f"runs to bring {name} back: {states}, not one that succeeded"
        elif [(one["method"], one.get("result")) for one in runs[0]["attempts"]] != WAYS:
            yield f"{name} came back otherwise: {_attempts(runs[0])}"
        elif "missing" not in runs[0]["reason"]:
            yield f"{name} was rebooted for another reason: {runs[0]['reason']}"
        if restarts != {WAYS[-1][0]: 1}:
            yield f"{name} had other than one reset, as it counts: {restarts}"
        others = {who: one["restarts"] for who, one in self._rack().items() if who != name}
        if any(others.values()):
            yield f"others were restarted: {others}"

    def _judge_held(self, name: str) -> Iterator[str]:
        if self._kept() != f"completed by {name}":
            yield f"the task of {name} was {self._kept()}"
        ended = datetime.fromisoformat(self._last_run(self.tasks[0])["resolved"])
        if self._put_aside is None or ended <= self._put_aside:
            yield f"the task of {name} had ended before it was quarantined"
        if others := [task for task in self.tasks[1:] if self._worker_of(task) == name]:
            yield f"{name} got {len(others)} tasks in quarantine"

    def _judge_flaky(self, name: str) -> Iterator[str]:
        if not self._why(name, "flaky"):
            yield f"{name} is not known to be flaky any more"
        ends = [end for end in map(self._end_of, self.tasks) if end is not None]
        failing = {end["workerId"] for end in ends if end["state"] == "failed"}
        if failing != {name}:
            yield f"tasks failed at {', '.join(sorted(failing)) or 'none'}, not at {name} alone"
        worker = self._queue.getWorker(*self._hardware.path_of(name))
        if "quarantineUntil" not in worker:
            yield f"{name} still gets tasks"

    def _worker_of(self, task_id: str) -> str | None:
        return self._last_run(task_id).get("workerId")


def _attempts(run: dict[str, Any]) -> str:
    tried = [f"{one['method']}: {one.get('result', 'open')}" for one in run.get("attempts", ())]
    return ", ".join(tried) or "nothing was tried"
