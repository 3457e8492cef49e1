"""A deployed stage whose root URL answers for the task queue, and what operators do to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]

from tests.events import a_proxy_event, a_scheduled_event
from tests.functions.deployed import ELSEWHERE, TOKEN, DeployedStage
from worker_manager.core.ids import derived_slugid
from worker_manager.core.moments import to_wire
from worker_manager.wiring import queue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.ec2 import Ec2Cloud
    from tests.infra.virtual_clock import VirtualClock

API = "/api/worker-manager/v1"
REGISTRY = "/api/worker-registry/v1"
POOL_ID = "proj-x/pool-1"
POOL_PATH = f"{API}/worker-pool/proj-x%2Fpool-1"
TIMINGS = {"list_lag": 0, "shortest_inactivity": 5, "reboot": 0}


class RunningStage:
    """Calls functions as gateway, schedules and queues do."""

    def __init__(
        self,
        root_url: str,
        ec2: Ec2Cloud,
        clock: VirtualClock,
        *,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.root_url = root_url
        self.ec2 = ec2
        self.clock = clock
        self.deployed = DeployedStage(
            {
                "RootUrl": root_url,
                "TickSeconds": "30",
                "Timings": json.dumps(TIMINGS),
                **(parameters or {}),
            }
        )
        with self.deployed.container("queue-api"):
            self._queue = queue.queue_api()

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the stage's functions hear when they ask at the root URL."""
        ELSEWHERE.running = True
        return self._queue.handle(event)

    def ask(self, name: str, method: str, path: str, body: Any = None) -> Any:
        """The answer of one of the API's functions, which must be a success."""
        content = b"" if body is None else json.dumps(body).encode()
        content_type = "application/json" if content else ""
        sender = mohawk.Sender(
            {"id": "test/root", "key": TOKEN, "algorithm": "sha256"},
            self.root_url + path,
            method,
            content=content,
            content_type=content_type,
        )
        headers = {"Authorization": str(sender.request_header), "Content-Type": content_type}
        event = a_proxy_event(method, path, headers=headers, body=content or None)
        answer = self.deployed.call(name, event)
        assert answer["statusCode"] == 200, answer["body"]
        return json.loads(answer["body"])

    def define_pool(self, provider_id: str = "aws", **config: Any) -> Any:
        launch_config = {
            "region": "us-east-1",
            "launchConfig": {"ImageId": "ami-1", "InstanceType": "m5.large"},
            "workerManager": {"launchConfigId": "lc-a"},
        }
        body = {
            "providerId": provider_id,
            "description": "a pool",
            "owner": "owner@example.com",
            "emailOnError": False,
            "config": {
                "minCapacity": 0,
                "maxCapacity": 10,
                "launchConfigs": [launch_config],
                **config,
            },
        }
        return self.ask("pools-api", "PUT", POOL_PATH, body)

    def create_task(self, name: object) -> None:
        now = datetime.now(UTC)
        body = {
            "taskQueueId": POOL_ID,
            "created": to_wire(now),
            "deadline": to_wire(now + timedelta(hours=1)),
            "payload": {},
            "metadata": {
                "name": "build",
                "description": "builds",
                "owner": "owner@example.com",
                "source": "https://example.com",
            },
        }
        self.ask("queue-api", "PUT", f"/api/queue/v1/task/{derived_slugid(name)}", body)

    def tick(self, verb: str, provider_id: str = "aws") -> None:
        """The schedule of ``provision`` or ``scan`` fires."""
        self.deployed.call(f"{verb}-tick-{provider_id}", a_scheduled_event(datetime.now(UTC)))

    def deliver(self, queue: str, function: str) -> list[Any]:
        """Hand every message of a queue to its function; what that answered."""
        events = self.deployed.drain(queue)
        return [self.deployed.call(function, event) for event in events]

    def provision(self, provider_id: str = "aws") -> None:
        self.tick("provision", provider_id)
        self.deliver(f"provision-{provider_id}.fifo", f"provision-pool-{provider_id}")

    def scan(self, provider_id: str = "aws") -> None:
        self.tick("scan", provider_id)
        self.deliver(f"scan-{provider_id}.fifo", f"scan-pool-{provider_id}")

    def reboot(self, worker: Mapping[str, Any], provider_id: str = "aws") -> Any:
        """Ask for a reboot of a worker, let it be done and the worker be seen; the run."""
        place = f"workers/{worker['workerGroup']}/{worker['workerId']}"
        path = f"{REGISTRY}/provisioners/proj-x/worker-types/pool-1/{place}/actions/reboot"
        run = self.ask("registry-api", "POST", path, {"requestId": derived_slugid("reboot")})
        self.deliver("actions", "act")
        for _ in range(2):
            self.deliver(f"advance-{provider_id}", f"advance-{provider_id}")
            self.deployed.hurry(f"advance-{provider_id}")
        claim = {"workerGroup": worker["workerGroup"], "workerId": worker["workerId"], "tasks": 1}
        self.ask("queue-api", "POST", f"/api/queue/v1/claim-work/{POOL_ID}", claim)
        self.deployed.call("act", a_scheduled_event(datetime.now(UTC)))
        return self.ask("registry-api", "GET", f"{REGISTRY}/action-runs/{run['runId']}")

    def workers(self) -> list[dict[str, Any]]:
        path = f"{API}/workers/proj-x%2Fpool-1"
        found: list[dict[str, Any]] = self.ask("workers-api", "GET", path)["workers"]
        return found

    def machines(self) -> dict[str, int]:
        """How many instances there are in each state."""
        counted: dict[str, int] = {}
        for instance in self.ec2.instances():
            state = instance.state.value
            counted[state] = counted.get(state, 0) + 1
        return counted
