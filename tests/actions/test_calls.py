"""Calling the service behind an ``http`` action: real HTTP, and real verifiers behind it."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.action_tables import a_run
from tests.auth_service import FakeAuthService
from worker_manager.actions.calls import LONGEST_MESSAGE, HttpCaller
from worker_manager.actions.entities import Kind, Result, Run
from worker_manager.actions.hosts import Hosts
from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.core.roles import Roles
from worker_manager.taskcluster.auth import Identity, LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.hawk import SignedRequest
from worker_manager.taskcluster.signed_http import MOST_READ, SignedHttp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "t" * 43
US = Client("test/issuer", TOKEN, ("roller:*", "queue:*"))
LEAST = {"clientId": US.client_id, "accessToken": TOKEN}
DONE = b'{"message": "done"}'


def clock() -> datetime:
    return datetime.now(UTC)


@dataclass
class Service:
    """Somebody's service: what it was sent, and what it answers."""

    port: int = 0
    answer: Callable[[Any], None] = lambda handler: reply(handler, 200, DONE)
    sent: list[SignedRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def caller(self) -> HttpCaller:
        http = SignedHttp(lambda: LEAST, patience=timedelta(milliseconds=400))
        return HttpCaller(http, Hosts.of([f"127.0.0.1:{self.port}"]))

    def run(self, path: str = "/reboot/<workerGroup>/<workerId>", **overrides: Any) -> Run:
        """A run of an action of this service; ``overrides`` are its action's."""
        action = {
            "kind": Kind.HTTP,
            "url": f"http://127.0.0.1:{self.port}{path}",
            "method": "POST",
            "operation": None,
            "agent_id": None,
        }
        return a_run(action=action | overrides, reason="it hangs", params={"how": "soft"})

    def call(self, path: str = "/x", **overrides: Any) -> tuple[Result, str]:
        return self.caller.call(self.run(path, **overrides))

    def sender(self) -> Identity:
        """Who sent the last request, as one judges who knows our clients."""
        return LocalAuthenticator([US], Roles(()), clock).authenticate(self.sent[-1])


def reply(handler: Any, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture(scope="module")
def served() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            service.headers.append(dict(self.headers.items()))
            service.sent.append(
                SignedRequest(
                    method=self.command,
                    resources=(self.path,),
                    host="127.0.0.1",
                    port=service.port,
                    authorization=self.headers["authorization"],
                    content_type=self.headers.get("content-type") or "",
                    body=body,
                )
            )
            service.answer(self)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET = _answer

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that waits no longer is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    service.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield service
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def service(served: Service) -> Service:
    served.sent.clear()
    served.headers.clear()
    served.answer = lambda handler: reply(handler, 200, DONE)
    return served


def test_the_service_is_told_what_is_wanted_by_whom_and_why(service: Service) -> None:
    run = service.run()
    assert service.caller.call(run) == (Result.OK, "HTTP 200: done")

    (sent,) = service.sent
    assert (sent.method, sent.resources) == ("POST", ("/reboot/rack-1/host-1",))
    assert json.loads(sent.body) == {
        "runId": run.run_id,
        "action": "reboot",
        "provisionerId": "hw",
        "workerType": "linux",
        "taskQueueId": "hw/linux",
        "workerGroup": "rack-1",
        "workerId": "host-1",
        "requestedBy": "test/root",
        "reason": "it hangs",
        "params": {"how": "soft"},
    }
    assert service.headers[0]["X-Action-Run-Id"] == run.run_id


@pytest.mark.parametrize(
    ("required", "held"),
    [
        ((), ()),
        (("roller:reboot:<workerId>",), ("roller:reboot:host-1",)),
        (("queue:b", "roller:a"), ("queue:b", "roller:a")),
    ],
)
def test_the_signature_is_good_for_just_the_scopes_that_the_action_requires(
    service: Service, required: tuple[str, ...], held: tuple[str, ...]
) -> None:
    """Whether the target knows our clients itself, or asks an auth service."""
    service.call(required_scopes=required)
    sender = service.sender()
    assert sender.client_id == US.client_id
    assert set(sender.scopes) == {*held, "assume:anonymous"}

    (sent,) = service.sent
    asked = FakeAuthService(clients=[US], now=clock).judge(
        {
            "method": "post",
            "resource": sent.resources[0],
            "host": sent.host,
            "port": sent.port,
            "authorization": sent.authorization,
        }
    )
    assert asked["status"] == "auth-success"
    assert set(asked["scopes"]) == {*held, "assume:anonymous"}


def test_what_we_do_not_hold_ourselves_is_signed_for_nobody(service: Service) -> None:
    service.call(required_scopes=("secrets:get:all",))
    with pytest.raises(AuthenticationFailedError, match="oversteps"):
        service.sender()


def test_a_body_that_was_changed_on_the_way_is_noticed(service: Service) -> None:
    service.call()
    (sent,) = service.sent
    object.__setattr__(sent, "body", sent.body.replace(b"soft", b"hard"))
    with pytest.raises(AuthenticationFailedError, match="payload"):
        service.sender()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_every_method_is_signed_and_only_deleting_sends_no_body(
    service: Service, method: str
) -> None:
    assert service.call(method=method)[0] is Result.OK
    assert service.sender().client_id == US.client_id
    assert bool(service.sent[0].body) == (method != "DELETE")


@pytest.mark.parametrize(
    "path", ["/a%2fb/%7Ec?x=1&y=%20", "/a&b=c,(d)'!*$", "/a//b/", "/?", "/a:b@c?d=e/f"]
)
def test_what_is_signed_is_what_is_sent_however_it_is_written(service: Service, path: str) -> None:
    assert service.call(path)[0] is Result.OK
    assert service.sender().client_id == US.client_id


@pytest.mark.parametrize(
    ("status", "body", "result", "message"),
    [
        (201, b"", Result.OK, "HTTP 201"),
        (204, b"", Result.OK, "HTTP 204"),
        (200, b"<html>", Result.OK, "HTTP 200"),
        (200, b"[1]", Result.OK, "HTTP 200"),
        (200, b'{"message": 1}', Result.OK, "HTTP 200"),
        (200, b"[" * 50_000, Result.OK, "HTTP 200"),
        (200, b"\xff\xfe{", Result.OK, "HTTP 200"),
        (
            200,
            json.dumps({"message": "a\x1b[31m\n\tb\u202ec\x00"}).encode(),
            Result.OK,
            "HTTP 200: a[31m bc",
        ),
        (
            200,
            json.dumps({"message": "x" * 5000}).encode(),
            Result.OK,
            "HTTP 200: " + "x" * LONGEST_MESSAGE,
        ),
        (200, b'{"message": "' + b"x" * MOST_READ + b'"}', Result.OK, "HTTP 200"),
        (403, b'{"message": "no"}', Result.ERROR, "HTTP 403: no"),
        (500, b"", Result.ERROR, "HTTP 500"),
    ],
)
def test_what_the_service_says_is_kept_as_plain_text(
    service: Service, status: int, body: bytes, result: Result, message: str
) -> None:
    service.answer = lambda handler: reply(handler, status, body)
    assert service.call() == (result, message)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_leads_us_elsewhere(service: Service, status: int) -> None:
    there = f"http://127.0.0.1:{service.port}/elsewhere"
    service.answer = lambda handler: reply(handler, status, b"", Location=there)

    assert service.call() == (Result.ERROR, f"HTTP {status}")
    assert len(service.sent) == 1


def _silent(handler: Any) -> None:
    time.sleep(0.6)


def _hung_up(handler: Any) -> None:
    handler.connection.close()


def _no_http(handler: Any) -> None:
    handler.wfile.write(b"what?\r\n\r\n")


@pytest.mark.parametrize("answer", [_silent, _hung_up, _no_http])
def test_without_an_answer_nobody_knows_and_it_is_not_asked_again(
    service: Service, answer: Callable[[Any], None]
) -> None:
    service.answer = answer
    result, message = service.call()
    assert result is Result.UNKNOWN
    assert message.endswith("it may have been done")
    assert len(service.sent) == 1


def test_an_answer_that_comes_in_drops_is_not_waited_for(service: Service) -> None:
    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"x")
            time.sleep(0.05)

    service.answer = drip
    began = time.monotonic()
    assert service.call() == (Result.OK, "HTTP 200")
    assert time.monotonic() - began < 2


def test_a_service_that_is_not_there_has_done_nothing(service: Service) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    caller = HttpCaller(SignedHttp(lambda: LEAST), Hosts.of([f"127.0.0.1:{port}"]))
    result, message = caller.call(service.run(url=f"http://127.0.0.1:{port}/x"))
    assert result is Result.ERROR
    assert message.startswith("not done: it could not be reached")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x",
        "http://localhost:{port}/x",
        "http://127.0.0.1:{port}@127.0.0.1:1/x",
        "http://127.0.0.1:{port}/<taskId>",
    ],
)
def test_where_no_action_may_call_any_longer_nothing_is_sent(service: Service, url: str) -> None:
    result, message = service.call(url=url.format(port=service.port))
    assert result is Result.ERROR
    assert message.startswith("not called: its url")
    assert service.sent == []


def test_without_credentials_of_our_own_nothing_is_done(service: Service) -> None:
    def missing() -> dict[str, str]:
        raise LookupError("a secret")

    caller = HttpCaller(SignedHttp(missing), Hosts.of([f"127.0.0.1:{service.port}"]))
    message = "not done: our own credentials are missing: LookupError"
    assert caller.call(service.run()) == (Result.ERROR, message)
    assert service.sent == []
