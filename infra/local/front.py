"""Stands in for the API Gateway REST API: HTTP in, a proxy event, the function, HTTP out.

The emulator's own gateway decodes ``%2F`` in paths, which AWS's REST API keeps and signatures
need.  Which function answers, and what is said when none does, is read from the template.
See ``infra/decisions/0002-what-the-emulator-lacks.md``.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

from botocore.exceptions import BotoCoreError

from infra.local.children import LOOPBACK
from infra.local.deploy import ACCOUNT, aws_client
from infra.local.template import GatewayAnswer, Route, Template, gateway_answers, routes

if TYPE_CHECKING:
    from types import TracebackType

_LARGEST_BODY = 10 * 1024 * 1024
"""API Gateway's limit, in bytes."""

_AT_ONCE = 8
"""Calls of functions at a time.  Each is a process here: more of them would only start cold and
wait for the same cores."""

_PATIENCE_SECONDS = 5.0
"""How long a request waits for its turn before it is one too many."""

_GREEDY = "{proxy+}"

Headers = Sequence[tuple[str, str]]
Answer = tuple[int, Headers, bytes]


class RefusedError(Exception):
    """The gateway answers in place of a function; ``kind`` is one of its response types."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def find_route(known: Sequence[Route], path: str) -> Route:
    """The most specific route of a path, which is split before anything is decoded."""
    segments = [segment for segment in path.split("/") if segment]
    fitting = [route for route in known if _fits(route.segments, segments)]
    if not fitting:
        raise RefusedError("MISSING_AUTHENTICATION_TOKEN")
    return max(fitting, key=lambda route: (len(route.segments), _GREEDY not in route.segments))


def _fits(route: Sequence[str], segments: Sequence[str]) -> bool:
    if route and route[-1] == _GREEDY:
        fixed = list(route[:-1])
        return len(segments) > len(fixed) and list(segments[: len(fixed)]) == fixed
    return list(route) == list(segments)


def proxy_event(
    route: Route, *, method: str, target: str, headers: Headers, body: bytes, source_ip: str
) -> dict[str, Any]:
    """The event of a REST API's Lambda proxy integration: path as sent, query decoded."""
    split = urlsplit(target)
    every_header = _grouped(headers)
    query = _grouped(parse_qsl(split.query, keep_blank_values=True))
    text, is_base64 = _as_text(body)
    below = len(route.segments) - 1
    proxied = "/".join([part for part in split.path.split("/") if part][below:])
    return {
        "resource": route.resource,
        "path": split.path,
        "httpMethod": method,
        "headers": {name: values[-1] for name, values in every_header.items()},
        "multiValueHeaders": every_header,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": {"proxy": proxied} if _GREEDY in route.segments else None,
        "stageVariables": None,
        "body": text or None,
        "isBase64Encoded": is_base64,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "httpMethod": method,
            "identity": {"sourceIp": source_ip, "userAgent": _last(every_header, "user-agent")},
            "path": split.path,
            "protocol": "HTTP/1.1",
            "requestId": str(uuid.uuid4()),
            "requestTimeEpoch": int(time.time() * 1000),
            "resourcePath": route.resource,
            "stage": "local",
        },
    }


def _grouped(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return grouped


def _last(headers: Mapping[str, list[str]], name: str) -> str | None:
    return next((values[-1] for key, values in headers.items() if key.lower() == name), None)


def _as_text(body: bytes) -> tuple[str, bool]:
    try:
        return body.decode(), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), True


def http_answer(payload: object) -> Answer:
    """What a function's answer is as HTTP; one without a status is the gateway's 5xx."""
    if not isinstance(payload, Mapping) or "statusCode" not in payload:
        raise RefusedError("DEFAULT_5XX")
    body = payload.get("body") or ""
    content = base64.b64decode(body) if payload.get("isBase64Encoded") else body.encode()
    headers = list((payload.get("headers") or {}).items())
    for name, values in (payload.get("multiValueHeaders") or {}).items():
        headers += [(name, value) for value in values]
    return int(payload["statusCode"]), headers, content


def refusal(answer: GatewayAnswer, *, now: float) -> Answer:
    """The gateway's own answer, with its variable for the time filled in."""
    body = answer.body.replace("$context.requestTime", formatdate(now, usegmt=True))
    headers = [*answer.headers.items(), ("Content-Type", "application/json")]
    return answer.status, headers, body.encode()


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True
    front: Front


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    timeout = 75

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the functions log."""

    def _answer(self) -> None:
        status, headers, body = self._asked()
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _asked(self) -> Answer:
        length = int(self.headers.get("content-length") or 0)
        if length > _LARGEST_BODY:
            self.close_connection = True  # the body is left unread
            return self.server.front.refused("REQUEST_TOO_LARGE")
        return self.server.front.ask(
            method=self.command,
            target=self.path,
            headers=list(self.headers.items()),
            body=self.rfile.read(length),
            source_ip=self.client_address[0],
        )

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _answer


class Front:
    """The front door on loopback: ``with Front(...) as front: front.url``.

    At most ``at_once`` functions are called at a time; who waits for ``patience_seconds`` is
    refused as the gateway refuses too many requests.
    """

    def __init__(
        self,
        template: Template,
        *,
        emulator: str,
        port: int,
        at_once: int = _AT_ONCE,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._turns = threading.BoundedSemaphore(at_once)
        self._patience_seconds = patience_seconds
        self._routes = routes(template)
        self._answers = gateway_answers(template)
        self._lambda = aws_client("lambda", endpoint=emulator)
        self._server = _Server((LOOPBACK, port), _Handler)
        self._server.front = self
        self.url = f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="front", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ask(
        self, *, method: str, target: str, headers: Headers, body: bytes, source_ip: str
    ) -> Answer:
        """Have the function of the path answer, or say why none does."""
        try:
            route = find_route(self._routes, urlsplit(target).path)
            event = proxy_event(
                route,
                method=method,
                target=target,
                headers=headers,
                body=body,
                source_ip=source_ip,
            )
            return http_answer(self._take_turn(route.function_name, event))
        except RefusedError as refused:
            return self.refused(refused.kind)

    def refused(self, kind: str) -> Answer:
        """The gateway's answer for a kind of refusal."""
        return refusal(self._answers[kind], now=time.time())

    def _take_turn(self, function_name: str, event: Mapping[str, Any]) -> object:
        if not self._turns.acquire(timeout=self._patience_seconds):
            raise RefusedError("THROTTLED")
        try:
            return self._invoke(function_name, event)
        finally:
            self._turns.release()

    def _invoke(self, function_name: str, event: Mapping[str, Any]) -> object:
        try:
            answered = self._lambda.invoke(FunctionName=function_name, Payload=json.dumps(event))
        except (self._lambda.exceptions.TooManyRequestsException, BotoCoreError):
            raise RefusedError("INTEGRATION_FAILURE") from None
        payload: object = json.loads(answered["Payload"].read())
        if answered.get("FunctionError"):
            timed_out = "timed out" in json.dumps(payload).lower()
            raise RefusedError("INTEGRATION_TIMEOUT" if timed_out else "DEFAULT_5XX")
        return payload
