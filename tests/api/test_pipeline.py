"""What happens around every handler: reading, refusing in the right order, answering."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from pynamodb.exceptions import GetError

from tests.api.world import BASE, POOL_PATH, TOKEN, Api, a_definition
from tests.events import a_proxy_event
from worker_manager.queues import NotSentError
from worker_manager.store.outages import is_outage

if TYPE_CHECKING:
    from tests.api.world import Clock
    from worker_manager.store.tables import Tables


def test_an_error_has_taskclusters_body(api: Api) -> None:
    response = api("GET", POOL_PATH)
    assert response.status == 404
    assert set(response.body) == {"code", "message", "requestInfo"}
    assert response.code == "ResourceNotFound"
    assert response.body["requestInfo"] == {
        "method": "workerPool",
        "params": {"workerPoolId": "proj-x/pool-1"},
        "payload": {},
        "time": "2026-01-02T03:04:05.000Z",
    }
    assert response.message.endswith(
        "\n\n---\n\n"
        "* method:     workerPool\n"
        "* errorCode:  ResourceNotFound\n"
        "* statusCode: 404\n"
        "* time:       2026-01-02T03:04:05.000Z"
    )


def test_every_answer_may_be_read_by_any_page_and_kept_by_none(api: Api) -> None:
    for response in (api("GET", "ping"), api("GET", "nowhere"), api("GET", "providers")):
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["Access-Control-Max-Age"] == "900"
        assert "no-store" in response.headers["Cache-Control"]
        assert response.headers["Content-Type"] == "application/json"


def test_browsers_may_ask_beforehand_what_is_allowed(api: Api) -> None:
    response = api("OPTIONS", POOL_PATH, client=None)
    assert response.status == 200
    assert "Authorization" in response.headers["Access-Control-Allow-Headers"]


def test_head_is_get_without_a_body(api: Api) -> None:
    answer = api.app.handle(a_proxy_event("HEAD"))
    assert (answer["statusCode"], answer["body"]) == (200, "")


def test_an_unknown_path_is_a_404_in_json(api: Api) -> None:
    response = api("GET", "/nowhere", client=None)
    assert (response.status, response.code) == (404, "ResourceNotFound")


def test_a_body_in_base64_is_the_same_body(api: Api) -> None:
    response = api("PUT", POOL_PATH, a_definition(), as_base64=True)
    assert response.status == 200


def test_a_gateway_that_decodes_the_path_changes_nothing(api: Api) -> None:
    assert api("PUT", POOL_PATH, a_definition(), decoded=True).status == 200
    assert api("GET", POOL_PATH, decoded=True).status == 200


def test_a_path_sent_with_its_slash_is_the_same_pool(api: Api) -> None:
    api.ok("PUT", f"{BASE}/worker-pool/proj-x/pool-1", a_definition())
    assert api.ok("GET", POOL_PATH)["workerPoolId"] == "proj-x/pool-1"


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        (b"{", "application/json"),
        (b'"text"', "application/json"),
        (b"5", "application/json"),
        (b"1.5", "application/json"),
        (b"true", "application/json"),
        (b"null", "application/json"),
        (b"{}", "text/plain"),
        (b"\xff", "application/json"),
        (b'{"a": NaN}', "application/json"),
        (b'{"a": 1e999}', "application/json"),
        (b'{"a": 0e-999999999}', "application/json"),
        (b'{"a": "\\ud800"}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"a": ' + b"1" * 5000 + b"}", "application/json"),
    ],
)
def test_what_is_not_json_is_malformed(api: Api, raw: bytes, content_type: str) -> None:
    before = api.contents()
    response = api("PUT", POOL_PATH, raw=raw, content_type=content_type, as_base64=True)
    assert (response.status, response.code) == (400, "MalformedPayload")
    assert api.contents() == before


def test_parameters_of_the_content_type_do_not_matter(api: Api) -> None:
    response = api("PUT", POOL_PATH, a_definition(), content_type="application/json; charset=utf-8")
    assert response.status == 200


def test_a_body_above_four_mebibytes_is_too_large(api: Api) -> None:
    raw = json.dumps({"x": "y" * 4 * 1024 * 1024}).encode()
    before = api.contents()
    response = api("PUT", POOL_PATH, raw=raw)
    assert (response.status, response.code) == (413, "InputTooLarge")
    assert api.contents() == before


def test_an_error_does_not_repeat_a_long_name(api: Api) -> None:
    """Lambda hands on 6 MB at most, with every quotation mark in a body escaped twice."""
    response = api("PUT", POOL_PATH, {**a_definition(), '"' * 1_900_000: 1})

    assert response.code == "InputValidationError"
    assert len(json.dumps(response.body)) < 100_000
    assert "errorCode:  InputValidationError" in response.message


def test_an_error_does_not_repeat_a_long_payload(api: Api) -> None:
    response = api("PUT", POOL_PATH, {"x": "y" * 200_000})
    assert response.status == 400
    assert response.body["requestInfo"]["payload"] == "(OMITTED)"


class TestTheOrderOfChecks:
    """As in the reference, where clients can tell."""

    def test_scopes_come_before_a_malformed_parameter(self, api: Api) -> None:
        assert api("GET", "worker-pool/nonsense", client="test/poor").status == 403
        assert api("GET", "worker-pool/nonsense").code == "InvalidRequestArguments"

    def test_scopes_come_before_a_bad_query(self, api: Api) -> None:
        assert api("GET", "worker-pools", query="x=1", client=None).status == 403
        assert api("GET", "worker-pools", query="x=1").status == 400

    def test_an_invalid_body_comes_before_scopes_that_need_it(self, api: Api) -> None:
        assert api("PUT", POOL_PATH, {}, client=None).code == "InputValidationError"
        assert api("PUT", POOL_PATH, a_definition(), client=None).code == "InsufficientScopes"

    def test_json_comes_first_of_all(self, api: Api) -> None:
        path = f"{BASE}/workers/proj-x%2Fpool-1/g/w"
        assert api("PUT", path, raw=b"{", client=None).code == "MalformedPayload"

    def test_scopes_come_before_the_body_where_they_do_not_need_it(self, api: Api) -> None:
        path = f"{BASE}/workers/proj-x%2Fpool-1/g/w"
        assert api("PUT", path, {"x": 1}, client=None).code == "InsufficientScopes"


def test_anybody_without_scopes_is_forbidden_and_told_what_is_missing(api: Api) -> None:
    for client in (None, "test/poor"):
        response = api("GET", POOL_PATH, client=client)
        assert (response.status, response.code) == (403, "InsufficientScopes")
        assert "worker-manager:get-worker-pool:proj-x/pool-1" in response.message


def test_a_bad_signature_is_a_401_that_says_how_to_sign(api: Api) -> None:
    event = a_proxy_event(path=POOL_PATH, headers={"Authorization": 'Hawk id="x"'})
    response = api.send(event)
    assert (response.status, response.code) == (401, "AuthenticationFailed")
    assert response.headers["WWW-Authenticate"] == "hawk"


def test_an_unknown_client_is_a_401(api: Api) -> None:
    assert api("GET", POOL_PATH, client="test/nobody").status == 401


def test_what_anybody_may_call_does_not_mind_a_bad_signature(api: Api) -> None:
    event = a_proxy_event(headers={"Authorization": "nonsense"})
    assert api.send(event).status == 200


@pytest.mark.parametrize("query", ["unknown=1", "limit=x", "limit=1&limit=2", "continuationToken="])
def test_a_query_that_is_not_understood_is_refused(api: Api, query: str) -> None:
    response = api("GET", "worker-pools", query=query)
    assert (response.status, response.code) == (400, "InvalidRequestArguments")


def test_a_signed_url_needs_no_header(api: Api) -> None:
    import mohawk  # type: ignore[import-untyped]
    from mohawk.base import Resource  # type: ignore[import-untyped]
    from mohawk.bewit import get_bewit  # type: ignore[import-untyped]

    signed = Resource(
        credentials={"id": "test/root", "key": TOKEN, "algorithm": "sha256"},
        method="GET",
        ext=None,
        url=f"{api.root_url}{BASE}/worker-pools",
        timestamp=int(api.deps.clock().timestamp()) + 60,
        nonce="",
    )
    assert mohawk is not None
    bewit = get_bewit(signed).rstrip("=")
    assert api("GET", "worker-pools", query=f"bewit={bewit}", client=None).status == 200


@pytest.mark.parametrize(
    "error",
    [
        NotSentError("1 messages refused"),
        ClientError({"Error": {"Code": "RequestThrottled", "Message": ""}}, "SendMessage"),
        EndpointConnectionError(endpoint_url="https://sqs.example.com"),
        GetError(
            "throttled",
            ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "GetItem"),
        ),
        GetError("unreachable", EndpointConnectionError(endpoint_url="https://ddb.example.com")),
    ],
)
def test_an_outage_is_a_503_that_says_when_to_come_back(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(api.deps.stores.pools, "get", fail)
    response = api("GET", POOL_PATH)
    assert (response.status, response.code) == (503, "ServiceUnavailable")
    assert response.headers["Retry-After"] == "5"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a password: hunter2"),
        GetError(
            "wrong",
            ClientError({"Error": {"Code": "ValidationException", "Message": ""}}, "GetItem"),
        ),
    ],
)
def test_what_nobody_foresaw_is_a_500_with_an_incident_and_nothing_else(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(api.deps.stores.pools, "get", fail)
    response = api("GET", POOL_PATH)
    assert (response.status, response.code) == (500, "InternalServerError")
    assert "incidentId" in response.message
    assert "hunter2" not in response.message
    assert response.headers["Retry-After"] == "5"
    assert not is_outage(error)


def test_an_event_with_nothing_but_the_needed_is_answered(api: Api) -> None:
    event = {"httpMethod": "GET", "path": f"{BASE}/ping", "headers": None, "body": None}
    assert api.send(event).status == 200


def test_a_query_without_its_multi_value_twin_is_read_too(api: Api) -> None:
    event = {
        "httpMethod": "GET",
        "path": f"{BASE}/providers",
        "queryStringParameters": {"unknown": "1"},
    }
    assert api.send(event).status == 403


def test_a_root_url_may_have_a_path_of_its_own(tables: Tables, clock: Clock) -> None:
    below = Api(tables, clock, "https://example.com/tc")
    assert below("GET", "/tc/api/worker-manager/v1/ping", client=None).status == 200
    event = below.signed_event("GET", f"{BASE}/worker-pools")
    assert below.send({**event, "path": f"/tc{event['path']}"}).status == 200
    assert below.send(event).status == 200
