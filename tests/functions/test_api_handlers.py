"""The handlers behind the gateway, from their environment to an answer."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import mohawk  # type: ignore[import-untyped]
import pytest

from tests.events import a_load_balancer_event, a_proxy_event
from worker_manager.settings import TABLE_VARIABLES, MissingSettingError
from worker_manager.store.queue_table import QueueItem
from worker_manager.store.registry_items import RegistryItem
from worker_manager.store.tables import bind
from worker_manager.wiring import api, queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker_manager.store.tables import Tables

    Door = Callable[..., dict[str, Any]]

TOKEN = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
ROOT_URL = "https://tc.example.com"
BOOK = {
    "clients": [{"clientId": "test/root", "accessToken": TOKEN, "scopes": ["*"]}],
    "issuer": {"clientId": "test/issuer", "accessToken": TOKEN},
}
DEFINITION = {
    "providerId": "aws",
    "description": "",
    "owner": "owner@example.com",
    "emailOnError": False,
    "config": {"minCapacity": 0, "maxCapacity": 1, "launchConfigs": []},
}


def handle(function: str, event: dict[str, Any]) -> dict[str, Any]:
    path = Path("functions") / function / "handler.py"
    spec = spec_from_file_location(f"handler_of_{function}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    answer: dict[str, Any] = module.handle(event, None)
    return answer


@pytest.fixture(params=[a_proxy_event, a_load_balancer_event], ids=["gateway", "load balancer"])
def door(request: pytest.FixtureRequest) -> Door:
    """What makes the events of each front door."""
    found: Door = request.param
    return found


def signed(door: Door, method: str, path: str, body: Any = None) -> dict[str, Any]:
    content = b"" if body is None else json.dumps(body).encode()
    content_type = "application/json" if content else ""
    credentials = {"id": "test/root", "key": TOKEN, "algorithm": "sha256"}
    sender = mohawk.Sender(
        credentials, ROOT_URL + path, method, content=content, content_type=content_type
    )
    headers = {"Authorization": str(sender.request_header), "Content-Type": content_type}
    return door(method, path, headers=headers, body=content or None)


@pytest.fixture
def stage(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What a deployment gives its functions; yields a reader of the provision queue."""
    sqs = boto3.client("sqs")
    fifo = sqs.create_queue(QueueName="provision.fifo", Attributes={"FifoQueue": "true"})
    queues = {
        "provision": fifo["QueueUrl"],
        "advance": sqs.create_queue(QueueName="advance")["QueueUrl"],
    }
    boto3.client("events").create_event_bus(Name="test-bus")
    secret = boto3.client("secretsmanager").create_secret(
        Name="test-auth", SecretString=json.dumps(BOOK)
    )
    for name, model in (("test-queue", QueueItem), ("test-registry", RegistryItem)):
        bind(model, name, tables.connection).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    for name, value in {
        "WM_ROOT_URL": ROOT_URL,
        "WM_BUS": "test-bus",
        "WM_AUTH_SECRET": secret["ARN"],
        "WM_PROVIDERS": json.dumps({"aws": {"providerType": "aws"}}),
        "WM_QUEUES": json.dumps({"aws": queues}),
        **{TABLE_VARIABLES[name]: f"test-{name}" for name in TABLE_VARIABLES},
    }.items():
        monkeypatch.setenv(name, value)
    builders = (api.pools_api, api.workers_api, queue.queue_api)
    for build in builders:
        build.cache_clear()

    def received() -> list[Any]:
        answer = sqs.receive_message(QueueUrl=queues["provision"], MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]

    yield received
    for build in builders:
        build.cache_clear()


def test_the_function_for_operators_defines_a_pool_and_has_it_planned(
    stage: Any, door: Door
) -> None:
    path = "/api/worker-manager/v1/worker-pool/proj-x%2Fpool-1"
    answer = handle("pools_api", signed(door, "PUT", path, DEFINITION))
    assert answer["statusCode"] == 200, answer["body"]
    (message,) = stage()
    assert "#change-" in message["tick"]


@pytest.mark.usefixtures("stage")
def test_the_function_for_machines_lists_workers(door: Door) -> None:
    path = "/api/worker-manager/v1/workers/proj-x%2Fpool-1/us-east-1"
    answer = handle("workers_api", signed(door, "GET", path))
    assert (answer["statusCode"], answer["body"]) == (200, '{"workers":[]}')


@pytest.mark.usefixtures("stage")
def test_the_function_of_the_queue_counts_tasks(door: Door) -> None:
    path = "/api/queue/v1/task-queues/proj-x%2Fpool-1/counts"
    answer = handle("queue_api", signed(door, "GET", path))
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["pendingTasks"] == 0


def test_a_setting_that_is_missing_is_named(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage() == []
    monkeypatch.delenv("WM_ROOT_URL")
    with pytest.raises(MissingSettingError, match="WM_ROOT_URL"):
        handle("pools_api", a_proxy_event())


def test_secrets_and_slugids_are_never_the_same_twice() -> None:
    assert len({api.new_secret() for _ in range(9)}) == 9
    assert {len(api.new_secret()) for _ in range(9)} == {44}
    assert len({api.new_slugid() for _ in range(9)}) == 9


def test_an_api_function_loads_no_cloud_and_no_taskcluster_client() -> None:
    """Cold starts: what answers HTTP launches nothing."""
    code = (
        "import sys, worker_manager.wiring.api; "
        "print([n for n in ('worker_manager.providers.aws.provider', 'taskcluster', 'requests', "
        "'worker_manager.reconcile.provision', 'worker_manager.queue.embedded') "
        "if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
