"""The same API behind a load balancer: what it sends, and what it wants to hear."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
import pytest

from tests.api.world import BASE, POOL_PATH, ROOT_URL, TOKEN, a_definition, a_static_definition
from tests.events import a_load_balancer_event
from worker_manager.api import load_balancer
from worker_manager.api.requests import Request

if TYPE_CHECKING:
    from tests.api.world import Api

LIMIT = 1_000_000
"""Bytes: what a load balancer takes of everything that a function answers."""


def signed(
    api: Api, method: str, path: str, *, query: str = "", body: Any = None, **headers: str
) -> dict[str, Any]:
    """An event whose request was signed with path and query exactly as given."""
    content = b"" if body is None else json.dumps(body).encode()
    content_type = "application/json" if content else ""
    sender = mohawk.Sender(
        {"id": "test/root", "key": TOKEN, "algorithm": "sha256"},
        f"{ROOT_URL}{path}" + (f"?{query}" if query else ""),
        method,
        content=content,
        content_type=content_type,
        _timestamp=int(api.deps.clock().timestamp()),
    )
    given = {"authorization": str(sender.request_header), "accept-encoding": "gzip, deflate"}
    if content:
        given["content-type"] = content_type
    return a_load_balancer_event(
        method, path, query=query, headers=given | headers, body=content or None
    )


def plain(answer: dict[str, Any]) -> Any:
    """What a client reads."""
    if answer["isBase64Encoded"]:
        assert answer["multiValueHeaders"]["Content-Encoding"] == ["gzip"]
        return json.loads(gzip.decompress(base64.b64decode(answer["body"])))
    return json.loads(answer["body"])


def test_an_answer_has_the_shape_that_a_load_balancer_takes(api: Api) -> None:
    answer = api.app.handle(a_load_balancer_event())

    assert answer.keys() == {
        "statusCode",
        "statusDescription",
        "multiValueHeaders",
        "body",
        "isBase64Encoded",
    }
    assert (answer["statusCode"], answer["statusDescription"]) == (200, "200 OK")
    assert answer["multiValueHeaders"]["Content-Type"] == ["application/json"]
    assert answer["isBase64Encoded"] is False


def test_a_refusal_names_its_status_and_how_to_sign(api: Api) -> None:
    headers = {"Authorization": "Bearer nothing"}
    answer = api.app.handle(a_load_balancer_event(path=POOL_PATH, headers=headers))

    assert answer["statusDescription"] == "401 Unauthorized"
    assert answer["multiValueHeaders"]["WWW-Authenticate"] == ["hawk"]
    assert plain(answer)["code"] == "AuthenticationFailed"


def test_a_pool_is_made_and_read_by_its_encoded_name(api: Api) -> None:
    made = api.app.handle(signed(api, "PUT", POOL_PATH, body=a_definition()))
    read = api.app.handle(signed(api, "GET", POOL_PATH))

    assert (made["statusCode"], read["statusCode"]) == (200, 200), made["body"]
    assert plain(read)["workerPoolId"] == "proj-x/pool-1"


@pytest.mark.parametrize(
    "query",
    [
        "limit=5&continuationToken=cHJvai14L3Bvb2wtMQ",
        "continuationToken=cHJvai14L3Bvb2wtMQ&limit=5",
        "continuationToken=cHJvai14L3Bvb2wtM%51&limit=%35",
        "%6Cimit=5",
    ],
)
def test_a_query_is_verified_in_any_order_and_encoding(pool: Api, query: str) -> None:
    answer = pool.app.handle(signed(pool, "GET", f"{BASE}/worker-pools", query=query))

    assert answer["statusCode"] == 200, answer["body"]


@pytest.mark.parametrize("query", ["x=a+b%20c%2fd", "x=(!)", "x=", "x", "x=%C3%A4&y=1"])
def test_odd_encodings_are_signed_as_they_were_sent(pool: Api, query: str) -> None:
    """The method knows no such parameter, which is said only to who may call it."""
    answer = pool.app.handle(signed(pool, "GET", f"{BASE}/worker-pools", query=query))

    assert (answer["statusCode"], plain(answer)["code"]) == (400, "InvalidRequestArguments")


def test_a_query_that_was_not_signed_is_refused(pool: Api) -> None:
    event = signed(pool, "GET", f"{BASE}/worker-pools", query="limit=5")
    event["multiValueQueryStringParameters"]["limit"] = ["6"]

    assert pool.app.handle(event)["statusCode"] == 401


def test_a_query_is_understood_decoded() -> None:
    request = Request.of(a_load_balancer_event(query="a%20b=c+d%2Fe&z=1&z=2"))

    assert request.query == (("a b", "c d/e"), ("z", "1"), ("z", "2"))
    assert request.sent_query == (("a%20b", "c+d%2Fe"), ("z", "1"), ("z", "2"))


def test_a_body_that_is_no_text_arrives_as_base64() -> None:
    request = Request.of(
        a_load_balancer_event("POST", headers={"Content-Type": "application/x"}, body=b"\xff\0")
    )

    assert request.body == b"\xff\0"
    assert request.content_type == "application/x"


def test_the_last_of_headers_that_come_twice_counts_as_at_the_gateway() -> None:
    event = a_load_balancer_event()
    event["multiValueHeaders"]["content-type"] = ["text/plain", "application/json"]

    assert Request.of(event).content_type == "application/json"


def test_a_request_is_named_by_its_trace() -> None:
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793"

    request = Request.of(a_load_balancer_event(headers={"X-Amzn-Trace-Id": trace}))

    assert request.request_id == trace


def test_a_load_balancers_own_health_check_is_answered(api: Api) -> None:
    event = a_load_balancer_event(headers={"User-Agent": "ELB-HealthChecker/2.0"})

    assert api.app.handle(event)["statusCode"] == 200


def test_pages_cut_for_a_load_balancer_fit_through_it(api: Api) -> None:
    api.cut_pages_at(900_000)
    text = '"' * 100_000
    for number in range(4):
        definition = a_static_definition(config={"workerConfig": {"text": text}})
        api.ok("PUT", f"{BASE}/worker-pool/proj-x%2Fpool-{number}", definition)

    event = signed(api, "GET", f"{BASE}/worker-pools", **{"accept-encoding": "identity"})
    answer = api.app.handle(event)

    assert answer["isBase64Encoded"] is False
    assert len(json.dumps(answer, ensure_ascii=False).encode()) < LIMIT
    page = plain(answer)
    assert page["workerPools"]
    assert "continuationToken" in page


@pytest.mark.parametrize(("accepted", "shrinks"), [("gzip, br", True), ("identity", False)])
def test_what_cannot_be_cut_is_compressed_for_who_understands_it(
    accepted: str, shrinks: bool
) -> None:
    body = json.dumps({"text": "x" * load_balancer.LARGEST_PLAIN})
    given = {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": body}
    event = a_load_balancer_event(headers={"Accept-Encoding": accepted})

    answer = load_balancer.for_load_balancer(given, event)

    assert answer["isBase64Encoded"] is shrinks
    assert (len(answer["body"]) < LIMIT / 10) is shrinks
    assert plain(answer) == json.loads(body)


def test_small_answers_are_not_compressed(api: Api) -> None:
    event = a_load_balancer_event(headers={"Accept-Encoding": "gzip"})

    assert "Content-Encoding" not in api.app.handle(event)["multiValueHeaders"]
