"""What a load balancer wants otherwise than the gateway, if it is the front door.

Every header is a list, the status is said in words, and the whole answer may take 1 MB.  Pages of
lists are cut to that (``paging``); what cannot be cut, as a pool with hundreds of launch configs,
is compressed for those who understand it, as stock clients do.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_PLAIN = 900_000
"""Bytes of a body, escaped as Lambda hands it on, that are sent as they are; headers need room."""


def is_from_load_balancer(event: Mapping[str, Any]) -> bool:
    """Whether an event came through a load balancer, not through the gateway."""
    return "elb" in (event.get("requestContext") or {})


def for_load_balancer(answer: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to ``event``, as a load balancer with multi-value headers takes it."""
    headers, body = answer["headers"], answer["body"]
    must_shrink = _escaped_size(body) > LARGEST_PLAIN and _accepts_gzip(event)
    if must_shrink:
        body = b64encode(gzip.compress(body.encode(), mtime=0)).decode()
        headers = {**headers, "Content-Encoding": "gzip"}
    status = HTTPStatus(answer["statusCode"])
    return {
        "statusCode": status.value,
        "statusDescription": f"{status.value} {status.phrase}",
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "body": body,
        "isBase64Encoded": must_shrink,
    }


def _accepts_gzip(event: Mapping[str, Any]) -> bool:
    several = event.get("multiValueHeaders") or {}
    return any("gzip" in value for value in several.get("accept-encoding", ()))


def _escaped_size(body: str) -> int:
    return len(json.dumps(body, ensure_ascii=False).encode())
