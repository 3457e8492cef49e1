"""The simulated EC2 on a loopback port: query API, metadata for machines, control side.

Routes::

    POST /                              the EC2 query API, every region
    GET  /_machines                     powered machines           (``metadata.powered``)
    GET  /_machines/<id>                one machine's metadata     (``metadata.metadata``)
    GET  /_machines/<id>/identity       its signed document        (``Ec2Cloud.identity``)
    POST /_machines/<id>/shutdown       the machine powers itself off
    GET  /_control/state, instances     counts; all instances      (``control``)
    GET  /_control/public-key           PEM of the key that signs identity documents
    POST /_control                      a control document         (``control.apply``)

Read next: ``service`` (the query API), ``control``.
"""

from __future__ import annotations

import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from infra.local.clouds.ec2 import control, metadata
from infra.local.clouds.ec2.errors import Ec2Error
from infra.local.clouds.ec2.service import Answer, action_of, answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from infra.local.clouds.ec2.cloud import Ec2Cloud

_MACHINE = re.compile(r"/_machines/(?P<instance_id>i-[0-9a-f]+)(?P<rest>/identity|/shutdown)?")


class Ec2Server:
    """Serves one cloud until closed; ``cloud`` may be exchanged while it runs.

    ``sleep`` stands for latency and slow faults.
    """

    def __init__(
        self,
        cloud: Ec2Cloud,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cloud = cloud
        self.sleep = sleep
        self.closing = Event()
        self._http = _Listener((host, port), self)
        self._thread = Thread(target=self._serve, name="simulated-ec2", daemon=True)

    @property
    def url(self) -> str:
        """The endpoint to give to SDKs and machines."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> Ec2Server:
        """Serve in a thread of its own."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving; calls that hang are let go."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Ec2Server:
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

    def __init__(self, address: tuple[str, int], owner: Ec2Server) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Listener

    def do_POST(self) -> None:
        """The query API, or a change on the control side."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/":
            self._query(body)
        elif self.path.startswith("/_"):
            self._json(lambda: self._change(body))
        else:
            self._send(404, "no such route", "text/plain")

    def do_GET(self) -> None:
        """Metadata of machines, and what is known on the control side."""
        if self.path == "/_control/public-key":
            pem = self.server.owner.cloud.signing_key().public_pem()
            self._send(200, pem, "application/x-pem-file")
        else:
            self._json(self._look)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: counters tell what was called."""

    def _query(self, form: str) -> None:
        owner = self.server.owner
        if latency := owner.cloud.latency_of(action_of(form)):
            owner.sleep(latency)
        given = answer(owner.cloud, self.headers.get("Authorization", ""), form)
        if given.hang_up:
            self._hang_up(given)
        else:
            self._send(given.status, given.body, "text/xml;charset=UTF-8")

    def _hang_up(self, given: Answer) -> None:
        self.server.owner.closing.wait(given.wait_seconds)
        self.close_connection = True

    def _change(self, body: str) -> Any:
        cloud = self.server.owner.cloud
        if self.path == "/_control":
            return control.apply(cloud, json.loads(body))
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or machine["rest"] != "/shutdown":
            raise LookupError(self.path)
        cloud.shut_down_from_inside(machine["instance_id"])
        return {}

    def _look(self) -> Any:
        cloud = self.server.owner.cloud
        match self.path:
            case "/_machines":
                return metadata.powered(cloud)
            case "/_control/state":
                return control.state(cloud)
            case "/_control/instances":
                return control.instances(cloud)
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or machine["rest"] == "/shutdown":
            raise LookupError(self.path)
        if machine["rest"] == "/identity":
            return cloud.identity(machine["instance_id"])
        return metadata.metadata(cloud, machine["instance_id"])

    def _json(self, produce: Callable[[], Any]) -> None:
        try:
            status, value = 200, produce()
        except Ec2Error as error:
            status, value = 404, {"error": error.message}
        except (KeyError, TypeError, ValueError) as error:
            status, value = 400, {"error": str(error)}
        except LookupError as error:
            status, value = 404, {"error": str(error)}
        self._send(status, json.dumps(value), "application/json")

    def _send(self, status: int, text: str, content_type: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
