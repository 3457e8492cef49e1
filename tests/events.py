"""Events as AWS sends them to functions."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


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


def a_load_balancer_event(
    method: str = "GET",
    path: str = "/api/worker-manager/v1/ping",
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> dict[str, Any]:
    """A load balancer's event with multi-value headers: path and query as sent, unordered.

    Bodies that are neither text nor JSON arrive as base64.
    """
    given = {"accept": "*/*", "host": "tc.example.com", "x-forwarded-proto": "https"}
    given |= {name.lower(): value for name, value in (headers or {}).items()}
    several: dict[str, list[str]] = {}
    for pair in sorted(query.split("&")) if query else ():
        name, _, value = pair.partition("=")
        several.setdefault(name, []).append(value)
    is_text = given.get("content-type", "").startswith(("text/", "application/json"))
    content = body or b""
    target = (
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/pools/6d0ecf831eec9f09"
    )
    return {
        "requestContext": {"elb": {"targetGroupArn": target}},
        "httpMethod": method,
        "path": path,
        "multiValueQueryStringParameters": several,
        "multiValueHeaders": {name: [value] for name, value in given.items()},
        "body": content.decode() if is_text else base64.b64encode(content).decode(),
        "isBase64Encoded": bool(content) and not is_text,
    }


def a_scheduled_event(at: datetime, rule: str = "wm-local-provision-tick-aws") -> dict[str, Any]:
    """What a rule of EventBridge sends when its schedule fires; whole seconds, UTC."""
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "123456789012",
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": "us-east-1",
        "resources": [f"arn:aws:events:us-east-1:123456789012:rule/{rule}"],
        "detail": {},
    }


def an_sqs_event(
    bodies: Sequence[Any], *, queue: str = "wm-local-provision-aws.fifo", group: str = "group"
) -> dict[str, Any]:
    """Records of a queue, as its event source hands them over; text bodies stay as they are."""
    return {
        "Records": [
            _an_sqs_record(number, body, queue=queue, group=group)
            for number, body in enumerate(bodies)
        ]
    }


def _an_sqs_record(number: int, body: Any, *, queue: str, group: str) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": "1",
        "SentTimestamp": "1767323045000",
        "SenderId": "AIDAIENQZJOLO23YVJ4VO",
        "ApproximateFirstReceiveTimestamp": "1767323045001",
    }
    if queue.endswith(".fifo"):
        attributes |= {
            "SequenceNumber": f"188695377259{number:08d}",
            "MessageGroupId": group,
            "MessageDeduplicationId": f"{number:032x}",
        }
    return {
        "messageId": f"059f36b4-87a3-44ab-83d2-{number:012d}",
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    }


def a_bus_event(name: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    """What a rule of EventBridge sends of an event that we published."""
    return {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": name,
        "source": "worker-manager",
        "account": "123456789012",
        "time": "2026-01-02T03:04:05Z",
        "region": "us-east-1",
        "resources": [],
        "detail": dict(detail),
    }


def an_ec2_notice(
    instance_id: str, state: str | None, *, region: str = "us-east-1", number: int = 0
) -> dict[str, Any]:
    """What EventBridge sends when an instance comes into a state; ``None`` warns of interruption.

    The forms of the EC2 User Guide, warts included: a warning names no account.
    """
    change = {"instance-id": instance_id, "state": state}
    warning = {"instance-id": instance_id, "instance-action": "terminate"}
    owner = f"{region}a" if state is None else f"{region}:123456789012"
    return {
        "version": "0",
        "id": f"7bf73129-1428-4cd3-a780-{number:012d}",
        "detail-type": (
            "EC2 Spot Instance Interruption Warning"
            if state is None
            else "EC2 Instance State-change Notification"
        ),
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-01-02T03:04:05Z",
        "region": region,
        "resources": [f"arn:aws:ec2:{owner}:instance/{instance_id}"],
        "detail": warning if state is None else change,
    }
