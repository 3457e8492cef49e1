"""A tiny Taskcluster for machines: it records every call and answers as it is told."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "s" * 44


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call; ``client_id`` is who signed it."""

    name: str
    path: str
    body: Any
    client_id: str
    at: float


@dataclass(slots=True)
class Script:
    """How the service answers."""

    registrations: deque[tuple[int, dict[str, str]]] = field(default_factory=deque)
    """Status and headers of the first registrations; then all succeed."""
    lifetime: timedelta = timedelta(hours=1)
    worker_config: dict[str, Any] = field(default_factory=dict)
    tasks: deque[dict[str, Any]] = field(default_factory=deque)
    """Payloads that are handed out, one a claimed task."""
    terminate: bool = False
    terminate_after_claims: bool = False
    """``terminate`` from the first claims on."""
    reregisters: bool = True


class TaskclusterService:
    """Serves on loopback until closed."""

    def __init__(self) -> None:
        self.script = Script()
        self.calls: list[Call] = []
        self._http = _Listener(("127.0.0.1", 0), self)
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def names(self) -> list[str]:
        """The names of all calls so far, in order."""
        return [call.name for call in list(self.calls)]

    def of(self, name: str) -> list[Call]:
        """The calls of one name."""
        return [call for call in list(self.calls) if call.name == name]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, name: str, body: Any) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body of an answer."""
        script = self.script
        match name:
            case "register" if script.registrations:
                status, headers = script.registrations.popleft()
                return status, headers, {"code": "Scripted", "message": "as told"}
            case "register":
                return 200, {}, self._granted("worker") | {"workerConfig": script.worker_config}
            case "reregister" if not script.reregisters:
                return 400, {}, {"code": "InputError", "message": "as told"}
            case "reregister":
                return 200, {}, self._granted("worker-renewed")
            case "should-terminate":
                return 200, {}, {"terminate": script.terminate, "reason": "as told"}
            case "claim-work":
                return 200, {}, {"tasks": self._claims(int(body["tasks"]))}
            case "reclaim":
                return 200, {}, {"credentials": _credentials("task-reclaimed")}
            case _:
                return 200, {}, {}

    def _granted(self, client_id: str) -> dict[str, Any]:
        expires = datetime.now(UTC) + self.script.lifetime
        return {
            "expires": expires.isoformat().replace("+00:00", "Z"),
            "secret": SECRET,
            "credentials": _credentials(client_id),
        }

    def _claims(self, wanted: int) -> list[dict[str, Any]]:
        claims: list[dict[str, Any]] = []
        while self.script.tasks and len(claims) < wanted:
            number = len(self.script.tasks)
            self.script.terminate |= self.script.terminate_after_claims
            claims.append(
                {
                    "status": {"taskId": f"task-{number}"},
                    "runId": 0,
                    "task": {"payload": self.script.tasks.popleft()},
                    "credentials": _credentials(f"task-{number}"),
                }
            )
        return claims


def until(holds: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait until something holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def _credentials(client_id: str) -> dict[str, str]:
    return {"clientId": client_id, "accessToken": "token", "certificate": "{}"}


_NAMES = (
    (r"POST /api/worker-manager/v1/worker/(register|reregister)", r"\1"),
    (r"GET /api/worker-manager/v1/workers/.*/(should-terminate)", r"\1"),
    (r"DELETE /api/worker-manager/v1/workers/.*", "remove"),
    (r"POST /api/worker-manager/v1/worker-pool-errors/.*", "report-error"),
    (r"POST /api/queue/v1/(claim-work)/.*", r"\1"),
    (r"POST /api/queue/v1/task/.*/(reclaim|completed|failed|exception)", r"\1"),
)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], owner: TaskclusterService) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A machine that was cut off is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Listener

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: calls are recorded."""

    def _serve(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(text) if text else None
        line = f"{self.command} {self.path}"
        name = next((re.sub(p, n, line) for p, n in _NAMES if re.fullmatch(p, line)), line)
        signer = re.search(r'id="([^"]*)"', self.headers.get("Authorization", ""))
        call = Call(name, unquote(self.path), body, signer[1] if signer else "", time.monotonic())
        self.server.owner.calls.append(call)
        status, headers, answer = self.server.owner.answer(name, body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
