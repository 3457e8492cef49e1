"""Cases that fit an OpenAPI document or do not, sent as events, without HTTP in between.

What must hold of every answer is in ``EXACT``.  Not asked of us is to take all that fits (a body
must make sense, too), nor a 405 for a method that is not there: like Taskcluster we say 404.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import jsonschema_rs
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from tests.api.world import ROOT_URL
from worker_manager.api.routing import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemathesis import Response

    from tests.api.world import Api

    Case = schemathesis.Case[Any]
    Cases = st.SearchStrategy[Case]
    Names = Mapping[str, Any]

ROUGH = [schemathesis.checks.not_a_server_error, checks.content_type_conformance]
"""What holds of any answer."""
EXACT = [
    *ROUGH,
    checks.status_code_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
"""What holds of the answers of a method that was reached."""


def operations(document: dict[str, Any]) -> dict[str, Any]:
    """The methods of a document by name."""
    found: list[Any] = list(schemathesis.openapi.from_dict(document).get_all_operations())
    return {one.ok().definition.raw["operationId"]: one.ok() for one in found}


def fallible(found: dict[str, Any]) -> list[str]:
    """Methods to which something wrong can be said."""
    return sorted(
        name
        for name, operation in found.items()
        if operation.body or operation.query or operation.path_parameters
    )


def send(api: Api, case: Case, client: str | None) -> Response:
    """The answer to a case, as HTTP would have brought it."""
    parts: dict[str, Any] = case.as_transport_kwargs(
        base_url=f"{ROOT_URL}{case.operation.base_url}"
    )
    wanted = ("method", "url", "params", "data", "json")
    sent = requests.Request(**{key: parts.get(key) for key in wanted}).prepare()
    target = urlsplit(str(sent.url))
    body: Any = sent.body or b""
    event = api.signed_event(
        case.method,
        target.path,
        body.encode() if isinstance(body, str) else body,
        query=target.query,
        client=client,
        as_base64=True,
    )
    answer = api.app.handle(event)
    return schemathesis.Response(
        status_code=answer["statusCode"],
        headers={name.lower(): [value] for name, value in answer["headers"].items()},
        content=answer["body"].encode(),
        request=sent,
        elapsed=0.0,
        verify=True,
    )


def fuzz(
    api: Api, cases: Cases, *, client: str | None, examples: int, exact: bool = True
) -> list[tuple[Any, int]]:
    """Send cases; returns what was sent with its answer's status, all of them as described."""
    seen: list[tuple[Any, int]] = []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(case=cases)
    def answer(case: Case) -> None:
        response = send(api, case, client)
        seen.append((response.request.body, response.status_code))
        case.validate_response(response, checks=EXACT if exact else ROUGH)

    answer()
    return seen


def fitting(operation: Any, names: Names) -> Cases:
    """Cases that the document allows, about what ``names`` name."""

    def placed(case: Case, path: dict[str, str]) -> Case:
        case.path_parameters = path
        if isinstance(case.body, dict):
            case.body |= {name: names[name] for name in names.keys() & case.body.keys()}
        return case

    path = {
        parameter.name: st.just(names[parameter.name])
        if parameter.name in names
        else st.from_regex(PARAMETERS[parameter.name], fullmatch=True)
        for parameter in operation.path_parameters
    }
    cases = operation.as_strategy(
        GenerationMode.POSITIVE, path_parameters=dict.fromkeys(path, "replaced") or None
    )
    quoted = {name: values.map(lambda text: quote(text, safe="")) for name, values in path.items()}
    return st.builds(placed, cases, st.fixed_dictionaries(quoted))


def misfitting(operation: Any, names: Names) -> Cases:
    """Cases that the document does not allow; their path is right if something else is not."""
    path = {
        parameter.name: quote(names.get(parameter.name, "x"), safe="")
        for parameter in operation.path_parameters
    }
    has_more = bool(operation.body or operation.query)
    found: Cases = operation.as_strategy(
        GenerationMode.NEGATIVE, path_parameters=path if path and has_more else None
    )
    return found


def refuse_misfits(api: Api, document: dict[str, Any], operation: Any, names: Names) -> None:
    """Send cases that do not fit; none whose body does not may be taken."""
    # Where only the path can be wrong, it may be the path of another method.
    is_reached = bool(operation.body or operation.query)
    cases = misfitting(operation, names)
    seen = fuzz(api, cases, client="test/root", examples=8, exact=is_reached)
    body = document["paths"][operation.path][operation.method].get("requestBody")
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        fits = jsonschema_rs.Draft202012Validator({**document, **schema}).is_valid
        taken = [json.loads(sent) for sent, status in seen if sent and status == 200]
        misfits = [body for body in taken if not fits(body)]
        assert misfits == [], misfits
