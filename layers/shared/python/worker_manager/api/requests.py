"""One HTTP request, read from the event of an API Gateway REST API or of a load balancer.

The path stays as it was sent, because that is what clients sign; the gateway's query arrives
decoded, the load balancer's encoded as it was sent.
Where to read next: ``routing``, which finds the route of a path; ``load_balancer``, the way back.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import inf, isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

from worker_manager.api.load_balancer import is_from_load_balancer
from worker_manager.api.refusals import Refusal
from worker_manager.core.ids import ExactFloat
from worker_manager.taskcluster.hawk import SignedRequest
from worker_manager.taskcluster.resources import Endpoint, resource_candidates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

LARGEST_BODY = 4 * 1024 * 1024
"""Bytes.  A Lambda event takes 6 MB, and an answer must be able to say what was sent."""

LONGEST_NUMBER = 400
"""Characters and decimal places of a number: enough for any double, too few to fill a memory."""

DEEPEST = 100
"""Objects and arrays inside each other.  What is stored must be written again, and parsers and
writers each end somewhere beyond 200."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.  ``path`` begins with ``/api`` and may have ``%2F`` in it or not.

    ``sent_query`` is the query before anything was decoded, where the front door shows it;
    ``request_id`` its name of the request, where it has one.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes
    sent_query: tuple[tuple[str, str], ...] | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any], *, prefix: str = "") -> Request:
        """Read an event; ``prefix`` is what the root URL has before ``/api``."""
        given = APIGatewayProxyEvent(event)
        path = given.path or "/"
        if prefix and path.startswith(f"{prefix}/"):
            path = path.removeprefix(prefix)
        query = tuple(_query(event))
        sent_query, headers = None, given.headers
        if is_from_load_balancer(event):
            sent_query, query = query, tuple(_decoded(query))
            headers = _last_of_each(event.get("multiValueHeaders") or {}) or headers
        return cls(
            method=given.http_method.upper(),
            path=path,
            query=query,
            headers=headers,
            body=_body(given),
            sent_query=sent_query,
            request_id=_request_id(event) or headers.get("x-amzn-trace-id"),
        )

    @property
    def content_type(self) -> str:
        """The content type as sent; empty if none was."""
        return self.headers.get("content-type") or ""

    def signed(self, endpoint: Endpoint) -> SignedRequest:
        """What a signature of this request may speak of."""
        bewits = [value for name, value in self.query if name == "bewit"]
        return SignedRequest(
            method=self.method,
            resources=resource_candidates(
                self.path,
                self.query if self.sent_query is None else self.sent_query,
                prefix=endpoint.prefix,
                is_encoded=self.sent_query is not None,
            ),
            host=endpoint.host,
            port=endpoint.port,
            authorization=self.headers.get("authorization"),
            bewit=bewits[0] if bewits else None,
            content_type=self.content_type,
            body=self.body,
        )

    def query_arguments(self) -> dict[str, str]:
        """The query without any bewit; refuses a parameter that is given twice."""
        arguments: dict[str, str] = {}
        for name, value in self.query:
            if name in arguments:
                raise Refusal(
                    "InvalidRequestArguments", f"Query parameter {name!r} is given more than once"
                )
            arguments[name] = value
        arguments.pop("bewit", None)
        return arguments

    def payload(self) -> Any:
        """The body as JSON: an object or an array; ``{}`` if there is none.

        Numbers with a fraction remember how they were written (``ExactFloat``).
        """
        if not self.body:
            return {}
        if self.content_type.partition(";")[0].strip().lower() != "application/json":
            raise Refusal(
                "MalformedPayload", "Payload must be JSON with content-type: application/json"
            )
        try:
            payload = _loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Refusal("MalformedPayload", f"Payload must be valid JSON: {error}") from error
        if not isinstance(payload, dict | list):
            raise Refusal("MalformedPayload", "Payload must be a JSON object or array")
        return payload

    def check_size(self) -> None:
        """Refuse a body that is larger than we could give back."""
        if len(self.body) > LARGEST_BODY:
            raise Refusal(
                "InputTooLarge",
                f"Payload is {len(self.body)} bytes; at most {LARGEST_BODY} are accepted",
            )


def _request_id(event: Mapping[str, Any]) -> str | None:
    """The gateway's own; a load balancer names requests in a header."""
    given = (event.get("requestContext") or {}).get("requestId")
    return None if given is None else str(given)


def _query(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    several = event.get("multiValueQueryStringParameters")
    if several:
        return [(name, value) for name, values in several.items() for value in values]
    return list((event.get("queryStringParameters") or {}).items())


def _decoded(query: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((unquote_plus(name), unquote_plus(value)) for name, value in query)


def _last_of_each(several: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name.lower(): values[-1] for name, values in several.items() if values}


def _body(event: APIGatewayProxyEvent) -> bytes:
    text = event.body or ""
    if not event.is_base64_encoded:
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _loads(body: bytes) -> Any:
    text = body.decode("utf-8")
    payload = json.loads(text, parse_float=_number, parse_constant=_no_constant)
    if "\\u" in text:
        # Half of a surrogate pair is legal JSON and cannot be stored.
        json.dumps(payload, ensure_ascii=False).encode()
    if _is_deeper(payload, DEEPEST):
        raise ValueError(f"more than {DEEPEST} objects and arrays inside each other")
    return payload


def _is_deeper(payload: Any, depth: int) -> bool:
    """Whether containers stand inside each other more than ``depth`` times."""
    level = [payload] if isinstance(payload, dict | list) else []
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _number(text: str) -> ExactFloat:
    value = ExactFloat(text)
    if not isfinite(value) or len(text) > LONGEST_NUMBER or _scale(text) > LONGEST_NUMBER:
        raise ValueError(f"number {text[:40]} is out of range")
    return value


def _scale(text: str) -> float:
    """Digits that a number shifts its point by; infinite for what no ``Decimal`` can hold."""
    try:
        return abs(int(Decimal(text).as_tuple().exponent))
    except InvalidOperation:
        return inf


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
