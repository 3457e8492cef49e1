from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
import pytest

from tests.taskcluster.signing import (
    HOST,
    ISSUER,
    KEY,
    NOW,
    RESOURCE,
    a_client,
    a_request,
    an_authenticator,
    encoded,
)
from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.queue.credentials import task_credentials
from worker_manager.queue.tasks import Task, schedule
from worker_manager.taskcluster.clients import Clients
from worker_manager.taskcluster.credentials import TASK_ISSUER_SCOPES, Issuer

if TYPE_CHECKING:
    from worker_manager.taskcluster.auth import Identity


def identify(credentials: Any, *issuer_scopes: str) -> Identity:
    """Who we take a caller for that signs with these credentials."""
    sender = mohawk.Sender(
        {"id": credentials["clientId"], "key": credentials["accessToken"], "algorithm": "sha256"},
        f"https://{HOST}{RESOURCE}",
        "GET",
        content="",
        content_type="",
        ext=encoded({"certificate": json.loads(credentials["certificate"])}),
        _timestamp=int(NOW.timestamp()),
    )
    request = a_request(authorization=str(sender.request_header))
    return an_authenticator(a_client(scopes=issuer_scopes)).authenticate(request)


def test_our_own_verifier_takes_task_credentials_for_what_they_are(world: Any) -> None:
    world.clock.now = NOW
    world.queue = type(world.queue)(world.table, world.registry, world.clock, Issuer(ISSUER, KEY))
    task_id = world.create("one", scopes=["project:x:read"])
    credentials = world.claim()[0]["credentials"]

    identity = identify(credentials, *TASK_ISSUER_SCOPES, "project:x:*")

    assert identity.client_id == credentials["clientId"]
    assert identity.satisfies(f"queue:reclaim-task:{task_id}/0")
    assert identity.satisfies(f"queue:resolve-task:{task_id}/0")
    assert identity.satisfies("project:x:read")
    assert not identity.satisfies(f"queue:resolve-task:{task_id}/1")
    with pytest.raises(AuthenticationFailedError):
        identify(credentials, *TASK_ISSUER_SCOPES)


def test_an_issuer_of_whom_nothing_else_was_said_may_issue_them(world: Any) -> None:
    world.clock.now = NOW
    world.queue = type(world.queue)(world.table, world.registry, world.clock, Issuer(ISSUER, KEY))
    task_id = world.create("one")
    credentials = world.claim()[0]["credentials"]
    book = {"clients": [], "issuer": {"clientId": ISSUER, "accessToken": KEY}}
    issuer = Clients.from_json(json.dumps(book)).by_id[ISSUER]

    assert identify(credentials, *issuer.scopes).satisfies(f"queue:resolve-task:{task_id}/0")


def test_a_run_that_nobody_claimed_gets_no_credentials() -> None:
    waiting: Task = schedule("id", {"retries": 5, "scopes": []}, NOW)

    with pytest.raises(ValueError, match="not claimed"):
        task_credentials(Issuer(ISSUER, KEY), waiting, NOW)
