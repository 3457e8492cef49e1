"""The running stage as its users see it: operators, machines, and whoever reads the events.

Nothing here waits for a clock: ``World.tick`` calls the functions of the loop, and ``until`` polls
for what happens asynchronously behind them.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import taskcluster  # type: ignore[import-untyped]

from infra.local.samples import client_options, launch_config, pool
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import requests

    from infra.local.stage import LocalStage

T = TypeVar("T")

FULL_REGION = "us-west-1"
"""A region without any capacity."""

DEAF_IMAGE = "ami-00000000000000dea"
"""Machines of this image do nothing by themselves: tests speak for them."""

FORGETFUL = "lc-forgetful"
"""Machines of this launch config register again after a reboot."""

EC2_CONFIG: Mapping[str, Any] = {
    "settings": {"pending_seconds": 0.2, "shutting_down_seconds": 0.2},
    "capacity": [{"place": FULL_REGION, "count": 0}],
}

MACHINE_RULES: Mapping[str, Any] = {
    "default": {"boot_seconds": [0.2, 0.6], "poll_seconds": 0.5, "idle_seconds": 1.0},
    "rules": [
        {"image_id": DEAF_IMAGE, "overrides": {"registers": False}},
        {"launch_config_id": FORGETFUL, "overrides": {"keeps_credentials": False}},
    ],
}

PATIENT: Mapping[str, int] = {
    "registrationTimeout": 1800,
    "reregistrationTimeout": 345_600,
    "queueInactivityTimeout": 7200,
}
"""Longer than any journey: machines that wait for their test are not taken for broken ones."""

BASE = "/api/worker-manager/v1"


def until(answer: Callable[[], T], *, seconds: float = 60, every: float = 0.2) -> T:
    """The first answer that is true; an assertion after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := answer()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(every)
    return found


def a_pool(
    launch_configs: Sequence[dict[str, Any]] | None = None, *, minimum: int = 0, maximum: int = 4
) -> dict[str, Any]:
    """A definition with one launch config, unless others are given."""
    made = pool(
        launch_configs or [launch_config("lc-a", "us-east-1")],
        maximum=maximum,
        description="a journey",
    )
    made["config"]["minCapacity"] = minimum
    made["config"]["lifecycle"] = PATIENT
    return made


def in_an_hour() -> str:
    """A moment as the wire has it."""
    return to_wire(datetime.now(UTC) + timedelta(hours=1))


class Events:
    """Reads along on the bus; every event is kept."""

    def __init__(self, stage: LocalStage) -> None:
        self._sqs = stage.client("sqs")
        self._url = stage.queue_url("event-copies")
        self.seen: list[dict[str, Any]] = []

    def of(self, pool_id: str, name: str = "") -> list[dict[str, Any]]:
        """The details of a pool's events so far, of one name if one is given."""
        self._read()
        return [
            event["detail"]
            for event in self.seen
            if event["detail"].get("workerPoolId") == pool_id and name in ("", event["detail-type"])
        ]

    def names(self, pool_id: str) -> set[str]:
        """What kinds of events a pool had so far."""
        self._read()
        return {
            event["detail-type"]
            for event in self.seen
            if event["detail"].get("workerPoolId") == pool_id
        }

    def _read(self) -> None:
        while True:
            answer = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
            messages = answer.get("Messages", [])
            if not messages:
                return
            self.seen += [json.loads(message["Body"]) for message in messages]
            for message in messages:
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])


class World:
    """Clients of a running stage, and what they see."""

    def __init__(self, stage: LocalStage, http: requests.Session) -> None:
        self.stage = stage
        self.http = http
        self.events = Events(stage)
        self.manager = self.client(taskcluster.WorkerManager)
        self.queue = self.client(taskcluster.Queue)
        self._last_tick = datetime.now(UTC).replace(microsecond=0)

    def client(
        self, kind: Any, *, credentials: Mapping[str, str] | None = None, **options: Any
    ) -> Any:
        """A stock client, of the local stage's client unless other credentials are given."""
        given = client_options(self.stage.root_url)
        if credentials is not None:
            given["credentials"] = dict(credentials)
        return kind({**given, **options}, session=self.http)

    def anonymous(self, kind: Any) -> Any:
        """A stock client that signs nothing."""
        return self.client(kind, credentials={})

    def send(self, method: str, path: str, **request: Any) -> requests.Response:
        """A request by hand, for what no client would send."""
        return self.http.request(method, self.stage.root_url + path, timeout=60, **request)

    def tick(self) -> None:
        """Provision and scan once, each with a tick of its own, as the split minute does."""
        for name in ("provision-tick-aws", "scan-tick-aws"):
            self._last_tick = max(
                self._last_tick + timedelta(seconds=1), datetime.now(UTC).replace(microsecond=0)
            )
            slot = {"time": to_wire(self._last_tick), "slot": 0}
            self.stage.invoke(name, {"Records": [{"body": json.dumps(slot)}]})

    def cloud(self, path: str) -> Any:
        """Ask the simulated EC2, beside its API."""
        answer = self.http.get(self.stage.ec2_url + path, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def instances(self, pool_id: str) -> list[dict[str, Any]]:
        """The pool's instances that still cost money."""
        return [
            instance
            for instance in self.cloud("/_control/instances")
            if instance["state"] not in ("shutting-down", "terminated")
            and pool_id in instance["tags"].values()
        ]

    def workers(self, pool_id: str, state: str = "") -> list[dict[str, Any]]:
        """The pool's workers, in one state if one is given."""
        query = {"state": state} if state else {}
        found: list[dict[str, Any]] = self.manager.listWorkersForWorkerPool(pool_id, query=query)[
            "workers"
        ]
        return found

    def proof(self, instance_id: str) -> dict[str, str]:
        """The instance's signed identity document."""
        signed: dict[str, str] = self.cloud(f"/_machines/{instance_id}/identity")
        return signed

    def registration(self, worker: Mapping[str, Any], **overrides: Any) -> dict[str, Any]:
        """What a worker's machine sends to register."""
        names = ("workerPoolId", "providerId", "workerGroup", "workerId")
        body = {name: worker[name] for name in names}
        if "workerIdentityProof" not in overrides:
            body["workerIdentityProof"] = self.proof(worker["workerId"])
        return {**body, **overrides}

    def register(self, worker: Mapping[str, Any]) -> dict[str, Any]:
        """Register a deaf machine; its credentials, secret and configuration."""
        answer: dict[str, Any] = self.anonymous(taskcluster.WorkerManager).registerWorker(
            self.registration(worker)
        )
        return answer

    def launched(self, pool_id: str, count: int, **definition: Any) -> list[dict[str, Any]]:
        """The workers of a new pool of deaf machines, once they run."""
        configs = [launch_config("lc-deaf", "us-east-1", image=DEAF_IMAGE)]
        self.manager.createWorkerPool(
            pool_id, a_pool(configs, minimum=count, maximum=count, **definition)
        )

        def all_of_them() -> list[dict[str, Any]]:
            running = [i for i in self.instances(pool_id) if i["state"] == "running"]
            found = self.workers(pool_id, "requested")
            return found if len(found) == len(running) == count else []

        return until(all_of_them)


def key_of(worker: Mapping[str, Any]) -> tuple[str, str, str]:
    """What names a worker in the arguments of a client's methods."""
    return worker["workerPoolId"], worker["workerGroup"], worker["workerId"]
