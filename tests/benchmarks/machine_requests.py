"""What machines send to the API, signed as stock clients sign it, as events of the gateway."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import mohawk  # type: ignore[import-untyped]

from tests.benchmarks.world import now
from tests.events import a_proxy_event
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import Worker

ROOT_URL = "https://tc.example.com"
API = "/api/worker-manager/v1"


def path_of(row: Worker) -> str:
    """Where a worker is found."""
    key = row.key
    return f"{API}/workers/{quote(key.pool_id, safe='')}/{key.group}/{key.worker_id}"


def _names(row: Worker) -> dict[str, str]:
    key = row.key
    return {"workerPoolId": key.pool_id, "workerGroup": key.group, "workerId": key.worker_id}


def registration(ec2_url: str, row: Worker) -> Any:
    """What the machine of a row sends first, with its own proof."""
    url = f"{ec2_url}/_machines/{row.key.worker_id}/identity"
    with urllib.request.urlopen(url, timeout=10) as answer:
        proof = json.load(answer)
    body = {
        **_names(row),
        "providerId": row.provider_id,
        "workerIdentityProof": proof,
        "systemBootTime": to_wire(now()),
    }
    return _event("POST", f"{API}/worker/register", json.dumps(body).encode(), {})


def poll(row: Worker, grant: Mapping[str, Any]) -> Any:
    """Should this worker terminate?"""
    return signed("GET", f"{path_of(row)}/should-terminate", grant["credentials"])


def renewal(row: Worker, grant: Mapping[str, Any]) -> Any:
    """New credentials for the secret."""
    body = {**_names(row), "secret": grant["secret"]}
    return signed("POST", f"{API}/worker/reregister", grant["credentials"], body)


def report(row: Worker, grant: Mapping[str, Any]) -> Any:
    """A complaint of usual length."""
    body = {
        "workerGroup": row.key.group,
        "workerId": row.key.worker_id,
        "kind": "worker-error",
        "title": "The disk is full",
        "description": "Less than 10 GB were left after garbage collection. " * 5,
        "extra": {"free": "9"},
    }
    path = f"{API}/worker-pool-errors/{quote(row.key.pool_id, safe='')}"
    return signed("POST", path, grant["credentials"], body)


def signed(method: str, path: str, credentials: Mapping[str, str], body: Any = None) -> Any:
    """A request as a stock client signs it, its certificate included."""
    content = b"" if body is None else json.dumps(body).encode()
    certificate = credentials.get("certificate")
    ext = None
    if certificate:
        ext = b64encode(json.dumps({"certificate": json.loads(certificate)}).encode()).decode()
    sender = mohawk.Sender(
        {
            "id": credentials["clientId"],
            "key": credentials["accessToken"],
            "algorithm": "sha256",
        },
        ROOT_URL + path,
        method,
        content=content,
        content_type="application/json" if content else "",
        ext=ext,
    )
    return _event(method, path, content, {"Authorization": str(sender.request_header)})


def _event(method: str, path: str, content: bytes, headers: Mapping[str, str]) -> Any:
    kind = {"Content-Type": "application/json"} if content else {}
    return a_proxy_event(method, path, headers={**kind, **headers}, body=content or None)
