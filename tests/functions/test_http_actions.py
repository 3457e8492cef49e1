"""An action of another service, from its declaration to that service's answer, by our functions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.functions.deployed import BOOK
from tests.http_server import serving
from worker_manager.core.ids import derived_slugid
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Clients
from worker_manager.taskcluster.hawk import SignedRequest

if TYPE_CHECKING:
    import pytest

    from tests.functions.running import RunningStage

TYPE = "/api/worker-registry/v1/provisioners/hw/worker-types/linux"
WORKER = f"{TYPE}/workers/rack-1/host-1"
SCOPE = "queue:get-worker:hw/linux/rack-1/host-1"


def test_another_service_is_called_with_just_what_its_action_requires(
    running: RunningStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[dict[str, Any]] = []

    def answer(event: dict[str, Any]) -> dict[str, Any]:
        called.append(event)
        return {"statusCode": 202, "headers": {}, "body": json.dumps({"message": "queued"})}

    with serving(lambda _: answer) as url:
        place = urlsplit(url)
        given = running.deployed.environment
        hosts = {"WM_ACTION_HOSTS": place.netloc}
        monkeypatch.setattr(
            running.deployed,
            "environment",
            lambda name: {**given(name), **(hosts if "WM_ACTION_HOSTS" in given(name) else {})},
        )
        action = {
            "name": "reimage",
            "title": "Reimage",
            "context": "worker",
            "url": f"{url}/jobs/<workerGroup>/<workerId>",
            "method": "POST",
            "requiredScopes": [SCOPE.replace("host-1", "<workerId>")],
        }
        declared = TYPE.replace("worker-registry", "queue")
        running.ask("queue-api", "PUT", declared, {"actions": [action]})
        body = {"requestId": derived_slugid("run"), "reason": "broken disk"}
        assert running.ask("registry-api", "POST", f"{WORKER}/actions/reimage", body)["state"] == (
            "queued"
        )
        running.deliver("actions", "act")

    path = f"/api/worker-registry/v1/action-runs/{body['requestId']}"
    run = running.ask("registry-api", "GET", path)
    assert (run["state"], run["message"]) == ("succeeded", "HTTP 202: queued")
    (event,) = called
    signed = SignedRequest(
        method=event["httpMethod"],
        resources=("/jobs/rack-1/host-1",),
        host=place.hostname or "",
        port=place.port or 0,
        authorization={name.lower(): text for name, text in event["headers"].items()}[
            "authorization"
        ],
        content_type="application/json",
        body=event["body"].encode(),
    )
    clients = Clients.from_json(json.dumps(BOOK))
    who = LocalAuthenticator(
        clients.by_id.values(), clients.roles, lambda: datetime.now(UTC)
    ).authenticate(signed)
    assert (who.client_id, set(who.scopes)) == ("test/issuer", {SCOPE, "assume:anonymous"})
    assert json.loads(event["body"])["reason"] == "broken disk"
