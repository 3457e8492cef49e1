"""A real SDK in front of a server on loopback that answers as it is told, and remembers calls."""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from google.auth.credentials import AnonymousCredentials

from tests.providers.orders import DEPLOYMENT, INPUTS, NOW
from worker_manager.core.model import LaunchOrder, Location, State, Worker, WorkerKey
from worker_manager.providers.google.clients import MAX_CONNECTIONS, Clients
from worker_manager.providers.google.provider import GoogleProvider
from worker_manager.providers.visit import Visits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PROJECT = Location("a-project")
ZONE = "us-central1-a"
ACCOUNT = "workers@a-project.iam.gserviceaccount.com"
PATH = f"projects/{PROJECT}/zones/{ZONE}"
BODY: dict[str, Any] = {
    "region": "us-central1",
    "zone": ZONE,
    "machineType": f"zones/{ZONE}/machineTypes/n2-standard-2",
    "minCpuPlatform": "Intel Cascadelake",
    "scheduling": {"provisioningModel": "SPOT", "onHostMaintenance": "terminate"},
    "disks": [
        {
            "type": "PERSISTENT",
            "boot": True,
            "autoDelete": True,
            "initializeParams": {"sourceImage": "global/images/an-image", "diskSizeGb": 75},
        },
        {
            "type": "SCRATCH",
            "interface": "NVME",
            "autoDelete": True,
            "initializeParams": {"diskType": f"zones/{ZONE}/diskTypes/local-ssd"},
        },
    ],
    "networkInterfaces": [{"accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
    "workerConfig": {"idleTimeoutSecs": 300},
    "capacityPerInstance": 1,
}


class Call(NamedTuple):
    """One call that arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    authorization: str | None


class Answer(NamedTuple):
    """One answer; status 0 hangs up without one."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


@dataclass
class Wire:
    """``answer`` is asked about each call; ``script`` is used up instead while it lasts."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    script: deque[Answer] = field(default_factory=deque)
    answer: Callable[[Call], Answer] = lambda call: Answer(500, {})

    def reset(self) -> None:
        self.calls.clear()
        self.script.clear()
        self.answer = lambda call: Answer(500, {})

    def next(self, call: Call) -> Answer:
        self.calls.append(call)
        return self.script.popleft() if self.script else self.answer(call)

    def says(self, *answers: Answer) -> None:
        self.script.extend(answers)

    def provider(self, **given: Any) -> GoogleProvider:
        return a_provider(Clients(_nobody(), endpoint=self.url), **given)


def _nobody() -> AnonymousCredentials:
    return AnonymousCredentials()  # type: ignore[no-untyped-call]


def a_provider(clients: Clients, *, deployment: str = DEPLOYMENT, **visits: Any) -> GoogleProvider:
    return GoogleProvider(
        provider_id="google",
        deployment=deployment,
        service_account=ACCOUNT,
        clients=clients,
        visits=Visits(parallel=MAX_CONNECTIONS, **visits),
    )


def an_order(**given: Any) -> LaunchOrder:
    facts: dict[str, Any] = {
        "order_id": "Order-0123456789abcdef",
        "pool_id": "proj/linux",
        "provider_id": "google",
        "launch_config_id": "lc-6350aa384f6ab04fc4d1",
        "location": PROJECT,
        "count": 2,
        "body": BODY,
        "inputs": INPUTS,
    }
    return LaunchOrder(**{**facts, **given})


def a_worker(worker_id: str = "42", **identity: str) -> Worker:
    return Worker(
        key=WorkerKey("proj/linux", ZONE, worker_id),
        provider_id="google",
        location=PROJECT,
        state=State.REQUESTED,
        capacity=1,
        created=NOW,
        modified=NOW,
        launch_config_id="lc-6350aa384f6ab04fc4d1",
        order_id="Order-0123456789abcdef",
        identity={"name": "proj-linux-x", **identity},
    )


def refusal(status: int, reason: str, message: str = "no", **headers: str) -> Answer:
    """How Compute Engine refuses a call."""
    error = {
        "code": status,
        "message": message,
        "errors": [{"domain": "global", "reason": reason, "message": message}],
    }
    return Answer(status, {"error": error}, headers)


def not_found(path: str) -> Answer:
    return refusal(404, "notFound", f"The resource '{PATH}/{path}' was not found")


def operation(status: str = "RUNNING", *, target: str = "42", **more: Any) -> Answer:
    """An operation; ``errors`` are pairs of code and message."""
    errors = more.pop("errors", None)
    if errors:
        more["error"] = {"errors": [{"code": code, "message": text} for code, text in errors]}
    body = {"name": f"operation-{target}", "status": status, "targetId": target, **more}
    return Answer(200, body)


def instance(worker_id: str = "42", **given: Any) -> dict[str, Any]:
    """An instance as lists show it."""
    return {
        "id": worker_id,
        "name": f"proj-linux-{worker_id}",
        "zone": f"https://www.googleapis.com/compute/v1/{PATH}",
        "status": "RUNNING",
        "creationTimestamp": "2031-05-17T05:00:00.000-07:00",
        "labels": {
            "worker-manager-deployment": "wm-test",
            "worker-manager-provisioner": "proj",
            "worker-manager-worker-type": "linux",
            "worker-manager-launch-config": "lc-6350aa384f6ab04fc4d1",
            # base32 of the order's id
            "worker-manager-order": "0_j5zgizlsfuydcmrtgq2tmnzyhfqwey3emvta",
        },
        **given,
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    wire: Wire

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length)
        call = Call(
            self.command,
            url.path.removeprefix("/compute/v1/"),
            {name: values[0] for name, values in parse_qs(url.query).items()},
            json.loads(sent) if sent else None,
            self.headers.get("Authorization"),
        )
        answer = self.wire.next(call)
        if not answer.status:
            self.close_connection = True
            return
        body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = do_DELETE = _answer


@contextmanager
def serving() -> Iterator[Wire]:
    """Serve a wire until the block ends."""
    wire = Wire()
    handler = type("Handler", (_Handler,), {"wire": wire})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    wire.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
