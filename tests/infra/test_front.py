"""The local front door does what the REST API does."""

from __future__ import annotations

import base64
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import pytest

from infra.local.children import free_port
from infra.local.front import Front, RefusedError, find_route, http_answer, proxy_event
from infra.local.template import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUTES = [
    Route((), "root"),
    Route(("{proxy+}",), "rest"),
    Route(("api", "workers", "{proxy+}"), "workers"),
    Route(("api", "fixed"), "fixed"),
]

TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": {}},
        "Fn": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "wm-local-api"}},
        "Proxy": {
            "Type": "AWS::ApiGateway::Resource",
            "Properties": {
                "ParentId": {"Fn::GetAtt": ["Api", "RootResourceId"]},
                "PathPart": "{proxy+}",
            },
        },
        "Any": {
            "Type": "AWS::ApiGateway::Method",
            "Properties": {
                "ResourceId": {"Ref": "Proxy"},
                "Integration": {"Uri": {"Fn::Join": ["", ["x", {"Fn::GetAtt": ["Fn", "Arn"]}]]}},
            },
        },
    }
    | {
        kind: {
            "Type": "AWS::ApiGateway::GatewayResponse",
            "Properties": {
                "ResponseType": kind,
                "StatusCode": status,
                "ResponseParameters": {"gatewayresponse.header.Retry-After": "'5'"},
                "ResponseTemplates": {"application/json": f'{{"code": "{kind}"}}'},
            },
        }
        for kind, status in (
            ("REQUEST_TOO_LARGE", "413"),
            ("MISSING_AUTHENTICATION_TOKEN", "404"),
            ("THROTTLED", "503"),
            ("INTEGRATION_FAILURE", "503"),
            ("INTEGRATION_TIMEOUT", "503"),
            ("DEFAULT_5XX", "500"),
        )
    }
}


class PretendLambda(BaseHTTPRequestHandler):
    """Answers every Invoke with the next prepared answer, and remembers the events."""

    events: ClassVar[list[dict[str, Any]]] = []
    answer: ClassVar[tuple[int, dict[str, str], Any]] = (200, {}, None)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.events.append(json.loads(body))
        status, headers, payload = self.answer
        content = json.dumps(payload).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def pretend_lambda() -> Iterator[type[PretendLambda]]:
    PretendLambda.events.clear()
    PretendLambda.answer = (200, {}, {"statusCode": 200, "body": "{}"})
    yield PretendLambda


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    with ThreadingHTTPServer(("127.0.0.1", 0), PretendLambda) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with Front(TEMPLATE, emulator=url, port=0) as opened:
            yield opened
        server.shutdown()


def ask(
    front: Front, method: str, target: str, **more: Any
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(urlsplit(front.url).netloc, timeout=60)
    try:
        connection.request(method, target, **more)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "root"),
        ("/x", "rest"),
        ("/api/workers/a%2Fb", "workers"),
        ("/api/workers/a/b/c", "workers"),
        ("/api/fixed", "fixed"),
        ("/api/fixed/more", "rest"),
        ("/api/workers", "rest"),
    ],
)
def test_the_most_specific_route_answers(path: str, name: str) -> None:
    assert find_route(ROUTES, path).function_name == name


def test_a_path_without_route_is_refused_as_the_gateway_does() -> None:
    with pytest.raises(RefusedError) as refused:
        find_route(ROUTES[:1], "/nowhere")

    assert refused.value.kind == "MISSING_AUTHENTICATION_TOKEN"


def test_the_path_arrives_as_sent_and_the_query_decoded(
    front: Front, pretend_lambda: type[PretendLambda]
) -> None:
    ask(front, "GET", "/api/x/a%2Fb%3Ac?limit=5&q=a%2Fb+c&q=2")

    [event] = pretend_lambda.events
    assert event["path"] == "/api/x/a%2Fb%3Ac"
    assert event["pathParameters"] == {"proxy": "api/x/a%2Fb%3Ac"}
    assert event["queryStringParameters"] == {"limit": "5", "q": "2"}
    assert event["multiValueQueryStringParameters"] == {"limit": ["5"], "q": ["a/b c", "2"]}


def test_body_and_headers_arrive_as_sent(front: Front, pretend_lambda: type[PretendLambda]) -> None:
    body = '{"name": "ü"}'.encode()
    ask(front, "POST", "/x", body=body, headers={"Authorization": 'Hawk id="a"'})

    [event] = pretend_lambda.events
    assert event["body"] == body.decode()
    assert event["isBase64Encoded"] is False
    assert event["headers"]["Authorization"] == 'Hawk id="a"'
    assert event["requestContext"]["identity"]["sourceIp"] == "127.0.0.1"


def test_a_body_that_is_no_text_arrives_encoded() -> None:
    event = proxy_event(
        ROUTES[1], method="POST", target="/x", headers=[], body=b"\xff", source_ip="127.0.0.1"
    )

    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b"\xff"


def test_an_empty_query_and_body_are_null_as_on_aws() -> None:
    event = proxy_event(
        ROUTES[0], method="GET", target="/", headers=[], body=b"", source_ip="127.0.0.1"
    )

    assert event["body"] is None
    assert event["queryStringParameters"] is None
    assert event["pathParameters"] is None


def test_the_answer_of_a_function_reaches_the_client(
    front: Front, pretend_lambda: type[PretendLambda]
) -> None:
    pretend_lambda.answer = (
        200,
        {},
        {
            "statusCode": 409,
            "headers": {"Content-Type": "application/json"},
            "multiValueHeaders": {"X-Many": ["1", "2"]},
            "body": '{"code": "RequestConflict"}',
        },
    )

    status, headers, body = ask(front, "PUT", "/x", body=b"{}")

    assert (status, json.loads(body)) == (409, {"code": "RequestConflict"})
    assert headers.get_all("X-Many") == ["1", "2"]


def test_encoded_answers_are_decoded() -> None:
    encoded = base64.b64encode(b"\x00\x01").decode()

    assert http_answer({"statusCode": 200, "isBase64Encoded": True, "body": encoded}) == (
        200,
        [],
        b"\x00\x01",
    )


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [
        ((200, {"X-Amz-Function-Error": "Unhandled"}, {"errorMessage": "x"}), "DEFAULT_5XX", 500),
        ((200, {}, "no status"), "DEFAULT_5XX", 500),
        (
            (
                200,
                {"X-Amz-Function-Error": "Unhandled"},
                {"errorMessage": "Task timed out after 29.00 seconds"},
            ),
            "INTEGRATION_TIMEOUT",
            503,
        ),
        (
            (429, {"x-amzn-ErrorType": "TooManyRequestsException"}, {"message": "slow"}),
            "INTEGRATION_FAILURE",
            503,
        ),
    ],
)
def test_a_function_that_fails_becomes_the_gateways_refusal(
    front: Front,
    pretend_lambda: type[PretendLambda],
    answer: tuple[int, dict[str, str], Any],
    kind: str,
    status: int,
) -> None:
    pretend_lambda.answer = answer

    answered, headers, body = ask(front, "GET", "/x")

    assert (answered, json.loads(body)["code"]) == (status, kind)
    assert headers["Retry-After"] == "5"


def test_a_body_above_the_gateways_limit_is_refused_unread(
    front: Front, pretend_lambda: type[PretendLambda]
) -> None:
    status, _, body = ask(front, "PUT", "/x", headers={"Content-Length": str(11 * 1024 * 1024)})

    assert (status, json.loads(body)["code"]) == (413, "REQUEST_TOO_LARGE")
    assert pretend_lambda.events == []


class SlowLambda(PretendLambda):
    """Answers when it is let go."""

    called: ClassVar[Event] = Event()
    let_go: ClassVar[Event] = Event()

    def do_POST(self) -> None:
        self.called.set()
        self.let_go.wait(60)
        super().do_POST()


def test_a_request_that_waited_too_long_for_its_turn_is_one_too_many() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SlowLambda) as server, ThreadPoolExecutor() as pool:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with Front(TEMPLATE, emulator=url, port=0, at_once=1, patience_seconds=0.05) as front:
            first = pool.submit(ask, front, "GET", "/x")
            assert SlowLambda.called.wait(60)
            status, headers, body = ask(front, "GET", "/x")
            SlowLambda.let_go.set()
            assert first.result()[0] == 200
            assert ask(front, "GET", "/x")[0] == 200
        server.shutdown()

    assert (status, json.loads(body)["code"]) == (503, "THROTTLED")
    assert headers["Retry-After"] == "5"


def test_an_emulator_that_hangs_up_is_a_failure_worth_a_retry() -> None:
    with Front(TEMPLATE, emulator=f"http://127.0.0.1:{free_port()}", port=0) as front:
        status, headers, body = ask(front, "GET", "/x")

    assert (status, json.loads(body)["code"]) == (503, "INTEGRATION_FAILURE")
    assert headers["Retry-After"] == "5"
