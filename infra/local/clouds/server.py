"""Simulated clouds on loopback ports: what serving them has in common.

A cloud's own ``server`` derives a handler with its routes.  Sockets are buffered and without
Nagle's delay: else every small answer takes 40 ms.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from infra.local.clouds.cloud import SimulatedCloud
from infra.local.clouds.errors import RefusalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

C = TypeVar("C", bound=SimulatedCloud[Any, Any])


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server is to do: answer, or wait so many seconds and hang up without."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    hang_up: bool = False
    wait_seconds: float = 0.0


class CloudServer(Generic[C]):
    """Serves one cloud until closed; ``cloud`` may be exchanged while it runs.

    ``sleep`` stands for latency and slow faults.
    """

    handler: ClassVar[type[CloudHandler]]
    """The routes."""

    def __init__(
        self,
        cloud: C,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cloud = cloud
        self.sleep = sleep
        self.closing = Event()
        self._http = _Listener((host, port), self)
        self._thread = Thread(target=self._serve, name=type(self).__name__, daemon=True)

    @property
    def url(self) -> str:
        """The endpoint to give to SDKs and machines."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> Self:
        """Serve in a thread of its own."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving; calls that hang are let go."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _serve(self) -> None:
        self._http.serve_forever(poll_interval=0.05)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], owner: CloudServer[Any]) -> None:
        self.owner = owner
        super().__init__(address, owner.handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class CloudHandler(BaseHTTPRequestHandler):
    """Reads calls and sends answers; derive the routes (``do_GET`` and so on)."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Listener

    @property
    def owner(self) -> CloudServer[Any]:
        """The server, which has the cloud."""
        return self.server.owner

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: counters tell what was called."""

    def read_body(self) -> str:
        """The body of the request; must be called once where there may be one."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()

    def wait_latency(self, action: str) -> None:
        """Let the time pass that a call of this action takes."""
        if latency := self.owner.cloud.latency_of(action):
            self.owner.sleep(latency)

    def give(self, answer: Answer, *, content_type: str) -> None:
        """Send the answer, or hang up if that is what it says."""
        if answer.hang_up:
            self.owner.closing.wait(answer.wait_seconds)
            self.close_connection = True
        else:
            self.send(answer.status, answer.body, content_type, answer.headers)

    def give_json(self, produce: Callable[[], Any]) -> None:
        """Send what ``produce`` makes; 404 for what is not there, 400 for what makes no sense."""
        try:
            status, value = 200, produce()
        except RefusalError as error:
            status, value = 404, {"error": error.message}
        except (KeyError, TypeError, ValueError) as error:
            status, value = 400, {"error": str(error)}
        except LookupError as error:
            status, value = 404, {"error": str(error)}
        self.send(status, json.dumps(value), "application/json")

    def send(
        self, status: int, text: str, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer."""
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
