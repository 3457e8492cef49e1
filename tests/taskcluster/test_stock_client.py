"""The stock Python client signs, a front door garbles, and the signature still holds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
import requests
import taskcluster  # type: ignore[import-untyped]
import taskcluster.utils  # type: ignore[import-untyped]

from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.core.roles import Roles
from worker_manager.taskcluster.auth import Identity, LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.hawk import SignedRequest
from worker_manager.taskcluster.resources import Endpoint, resource_candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOKEN = "local-development-only-no-secret"
CREDENTIALS = {"clientId": "local/dev", "accessToken": TOKEN}
POOL = "proj-x/ci-1"


@dataclass
class FrontDoor:
    """Takes what the client sends, and hands it on as a gateway does."""

    decodes_path: bool = False
    root_url: str = "https://tc.example.com"
    seen: list[SignedRequest] = field(default_factory=list)

    def receive(
        self,
        method: str,
        url: str,
        payload: str | None,
        headers: Mapping[str, str],
        session: object = None,
    ) -> requests.Response:
        parts = urlsplit(url)
        endpoint = Endpoint.of(self.root_url)
        pairs = parse_qsl(parts.query)
        random.Random(url).shuffle(pairs)
        path = parts.path.removeprefix(endpoint.prefix)
        path = unquote(path) if self.decodes_path else path
        self.seen.append(
            SignedRequest(
                method=method.upper(),
                resources=resource_candidates(path, pairs, prefix=endpoint.prefix),
                host=endpoint.host,
                port=endpoint.port,
                authorization=headers.get("Authorization"),
                bewit=dict(pairs).get("bewit"),
                content_type=headers.get("Content-Type", ""),
                body=(payload or "").encode(),
            )
        )
        response = requests.Response()
        response.status_code = 200
        response._content = b"{}"
        return response


@pytest.fixture(params=[False, True], ids=["path as sent", "path decoded"])
def front_door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FrontDoor:
    door = FrontDoor(decodes_path=request.param)
    monkeypatch.setattr(taskcluster.utils, "makeSingleHttpRequest", door.receive)
    return door


def a_stock_client(root_url: str = "https://tc.example.com", **options: Any) -> Any:
    return taskcluster.WorkerManager(
        {"rootUrl": root_url, "credentials": dict(CREDENTIALS), "maxRetries": 0} | options
    )


def who_signed(request: SignedRequest, **overrides: Any) -> Identity:
    client = Client("local/dev", TOKEN, ("*",), **overrides)
    return LocalAuthenticator([client], Roles(), lambda: datetime.now(UTC)).authenticate(request)


CALLS: list[Callable[[Any], object]] = [
    lambda client: client.listProviders(),
    lambda client: client.workerPool(POOL),
    lambda client: client.createWorkerPool(POOL, {"description": "ü", "config": {"a": [1, 2.0]}}),
    lambda client: client.deleteWorkerPool(POOL),
    lambda client: client.listWorkerPoolLaunchConfigs(POOL, query={"limit": "5"}),
    lambda client: client.listWorkersForWorkerPool(
        POOL, query={"state": "running", "limit": "3", "continuationToken": "a b+c/d=~é&x"}
    ),
    lambda client: client.worker(POOL, "us-east-1", "i-0abc"),
    lambda client: client.shouldWorkerTerminate(POOL, "us-east-1", "i-0abc"),
    lambda client: client.reportWorkerError(POOL, {"title": "x" * 100_000}),
    lambda client: client.listWorkers("proj-x", "ci-1", query={"quarantined": "true"}),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("root_url", ["https://tc.example.com", "http://127.0.0.1:5080/stage/"])
def test_every_kind_of_call_is_accepted(
    front_door: FrontDoor, call: Callable[[Any], object], root_url: str
) -> None:
    front_door.root_url = root_url
    call(a_stock_client(root_url))
    assert who_signed(front_door.seen[0]).client_id == "local/dev"


def test_a_secret_is_read_by_its_name(front_door: FrontDoor) -> None:
    secrets = taskcluster.Secrets({"rootUrl": front_door.root_url, "credentials": CREDENTIALS})
    secrets.get(f"worker-pool:{POOL}")
    assert who_signed(front_door.seen[0]).client_id == "local/dev"


def test_temporary_credentials_of_the_stock_package_are_accepted(front_door: FrontDoor) -> None:
    now = datetime.now(UTC)
    for name in ("local/named", None):
        credentials = taskcluster.createTemporaryCredentials(
            "local/dev", TOKEN, now, now + timedelta(days=31), ["a", "b:*"], name=name
        )
        client = a_stock_client(credentials=credentials, authorizedScopes=["b:c"])
        client.workerPool(POOL)
        identity = who_signed(front_door.seen[-1])
        assert identity.client_id == (name or "local/dev")
        assert identity.scopes == ("assume:anonymous", "b:c")


def test_a_client_without_credentials_is_anybody(front_door: FrontDoor) -> None:
    a_stock_client(credentials={}).workerPool(POOL)
    assert who_signed(front_door.seen[0]).client_id is None


def test_a_signed_url_is_accepted(front_door: FrontDoor) -> None:
    client = a_stock_client(authorizedScopes=["x"])
    url = client.buildSignedUrl(
        "listWorkersForWorkerPool", POOL, query={"limit": "5", "state": "a"}
    )
    front_door.receive("GET", url, None, {})
    identity = who_signed(front_door.seen[0])
    assert identity.client_id == "local/dev"
    assert identity.scopes == ("assume:anonymous", "x")


def test_a_signed_url_and_a_header_at_once_are_refused(front_door: FrontDoor) -> None:
    url = a_stock_client().buildSignedUrl("workerPool", POOL)
    front_door.receive("GET", url, None, {"Authorization": "Hawk x"})
    with pytest.raises(AuthenticationFailedError, match="together"):
        who_signed(front_door.seen[0])


def test_a_call_cannot_be_redirected_to_another_pool(front_door: FrontDoor) -> None:
    a_stock_client().deleteWorkerPool(POOL)
    sent = front_door.seen[0]
    redirected = SignedRequest(
        method=sent.method,
        resources=resource_candidates("/api/worker-manager/v1/worker-pool/proj-x%2Fother", []),
        host=sent.host,
        port=sent.port,
        authorization=sent.authorization,
    )
    with pytest.raises(AuthenticationFailedError, match="Bad mac"):
        who_signed(redirected)
