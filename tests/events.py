"""Events as AWS sends them to functions."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping


def a_proxy_event(
    method: str = "GET",
    path: str = "/api/worker-manager/v1/ping",
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    as_base64: bool = False,
    decoded: bool = False,
) -> dict[str, Any]:
    """A REST API's Lambda proxy event: the path as sent, the query decoded and unordered.

    ``decoded`` is how some emulators give the path, with each ``%2F`` turned into a slash.
    """
    given = {"Accept": "*/*", "Host": "tc.example.com", **(headers or {})}
    several: dict[str, list[str]] = {}
    for name, value in sorted(parse_qsl(query, keep_blank_values=True)):
        several.setdefault(name, []).append(value)
    shown = unquote(path) if decoded else path
    text = None
    if body is not None:
        text = base64.b64encode(body).decode() if as_base64 else body.decode()
    return {
        "resource": "/api/worker-manager/v1/{proxy+}",
        "path": shown,
        "httpMethod": method,
        "headers": given,
        "multiValueHeaders": {name: [value] for name, value in given.items()},
        "queryStringParameters": {name: values[-1] for name, values in several.items()} or None,
        "multiValueQueryStringParameters": several or None,
        "pathParameters": {"proxy": shown.removeprefix("/api/worker-manager/v1/")},
        "stageVariables": None,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdef1234",
            "httpMethod": method,
            "identity": {"sourceIp": "192.0.2.1", "userAgent": "tests"},
            "path": f"/prod{shown}",
            "protocol": "HTTP/1.1",
            "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
            "requestTimeEpoch": 1_767_323_045_000,
            "resourceId": "123456",
            "resourcePath": "/api/worker-manager/v1/{proxy+}",
            "stage": "prod",
        },
        "body": text,
        "isBase64Encoded": as_base64 and body is not None,
    }
