"""Which function answers a path, and what the gateway says by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.front import find_route
from infra.local.template import gateway_answers, routes
from infra.settings import STAGES, StageSettings
from tests.infra.stack.reading import of_type

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]


@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("/", "pools-api"),
        ("/favicon.ico", "pools-api"),
        ("/api/auth/v1/ping", "pools-api"),
        ("/api/secrets/v1/secret/worker-type%3Aa%2Fb", "pools-api"),
        ("/api/worker-manager/v1/ping", "pools-api"),
        ("/api/worker-manager/v1/worker-pool/a%2Fb", "pools-api"),
        ("/api/worker-manager/v1/worker-pool/a/b/launch-configs", "pools-api"),
        ("/api/worker-manager/v1/worker-pools", "pools-api"),
        ("/api/worker-manager/v1/worker/register", "workers-api"),
        ("/api/worker-manager/v1/workers/a%2Fb/g/w", "workers-api"),
        ("/api/worker-manager/v1/worker-pool-errors/a%2Fb", "workers-api"),
        ("/api/queue/v1/claim-work/a%2Fb", "queue-api"),
        ("/api/worker-registry/v1/ping", "registry-api"),
        ("/api/worker-registry/v1/provisioners/a/worker-types/b/workers", "registry-api"),
        ("/references/worker-registry/v1/api.json", "registry-api"),
        ("/schemas/worker-registry/v1/metadata.json", "registry-api"),
        ("/references/manifest.json", "pools-api"),
        ("/references/worker-manager/v1/api.json", "pools-api"),
        ("/references/queue/v1/api.json", "queue-api"),
        ("/schemas/common/metaschema.json", "pools-api"),
        ("/schemas/worker-manager/v1/worker-full.json", "pools-api"),
        ("/schemas/queue/v1/create-task-request.json", "queue-api"),
    ],
)
def test_a_path_is_answered_by_its_function(
    local_template: Template, path: str, function: str
) -> None:
    assert find_route(routes(local_template), path).function_name == f"wm-local-{function}"


def test_queue_paths_fall_to_the_api_where_the_queue_is_remote(prod_template: Template) -> None:
    route = find_route(routes(prod_template), "/api/queue/v1/ping")

    assert route.function_name == "wm-prod-pools-api"


def test_every_refusal_of_the_gateway_has_taskclusters_error_body(
    local_template: Template,
) -> None:
    for kind, answer in gateway_answers(local_template).items():
        body = json.loads(answer.body)
        assert set(body) == {"code", "message", "requestInfo"}, kind
        assert set(body["requestInfo"]) == {"method", "params", "payload", "time"}, kind


def test_a_stage_takes_so_many_requests(
    local_template: Template, template_of: Callable[[StageSettings], Template]
) -> None:
    fewer = replace(STAGES["dev"], requests_per_second=7, burst_requests=9)

    for template, rates in ((local_template, (500, 1000)), (template_of(fewer), (7, 9))):
        [stage] = of_type(template, "AWS::ApiGateway::Stage").values()
        [method] = stage["MethodSettings"]
        assert (method["ThrottlingRateLimit"], method["ThrottlingBurstLimit"]) == rates


def test_throttling_asks_clients_to_come_back(local_template: Template) -> None:
    answers = gateway_answers(local_template)

    for kind in ("THROTTLED", "QUOTA_EXCEEDED", "INTEGRATION_TIMEOUT", "INTEGRATION_FAILURE"):
        assert answers[kind].status == 503
    assert all(
        "Retry-After" in answer.headers for answer in answers.values() if answer.status >= 500
    )


def test_what_stock_clients_must_tell_apart_has_its_own_status(local_template: Template) -> None:
    answers = gateway_answers(local_template)

    assert answers["REQUEST_TOO_LARGE"].status == 413
    assert answers["MISSING_AUTHENTICATION_TOKEN"].status == 404
    assert answers["UNAUTHORIZED"].status == 401
    assert answers["UNAUTHORIZED"].headers["WWW-Authenticate"] == "hawk"


def test_the_gateway_is_regional_and_decodes_nothing(local_template: Template) -> None:
    [api] = of_type(local_template, "AWS::ApiGateway::RestApi").values()

    assert api["EndpointConfiguration"]["Types"] == ["REGIONAL"]
    assert "BinaryMediaTypes" not in api


def test_a_certificate_gives_the_api_the_name_that_clients_sign(
    prod_template: Template, local_template: Template
) -> None:
    [domain] = of_type(prod_template, "AWS::ApiGateway::DomainName").values()

    assert domain["DomainName"] == "tc.example.com"
    assert not of_type(local_template, "AWS::ApiGateway::DomainName")
