"""Three providers: one cannot start, one's credentials are refused, the third goes on (B18)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from infra.local.clouds.ec2.faults import Fault, FaultKind
from tests.events import a_scheduled_event, an_sqs_event
from tests.functions.deployed import ELSEWHERE
from tests.functions.running import API
from worker_manager.core.messages import Terminate
from worker_manager.core.model import WorkerKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.functions.running import RunningStage

REGIONS = {"aws": "us-east-1", "broken": "us-west-2", "refused": "eu-west-1"}
"""Each provider has a region of its own, so that the simulated cloud can tell them apart."""


class Three:
    """The stage with two more providers, each with a secret and a pool of its own."""

    def __init__(self, running: RunningStage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running = running
        self.vault: Any = boto3.client("secretsmanager")
        self.secrets = {
            name: self.vault.create_secret(Name=f"cloud-{name}", SecretString="none")["ARN"]
            for name in REGIONS
        }
        original = running.deployed.environment
        monkeypatch.setattr(
            running.deployed, "environment", lambda name: self._more(original(name))
        )
        for name, region in REGIONS.items():
            self._define_pool(name, region)
        running.deployed.drain("provision-aws.fifo")

    def _more(self, given: Mapping[str, str]) -> dict[str, str]:
        given = dict(given)
        types = {name: {"providerType": "aws"} for name in REGIONS}
        given["WM_PROVIDERS"] = json.dumps({**types, "static": {"providerType": "static"}})
        if "WM_QUEUES" in given:
            urls = json.loads(given["WM_QUEUES"])["aws"]
            given["WM_QUEUES"] = json.dumps(dict.fromkeys(REGIONS, urls))
        return given

    def _define_pool(self, name: str, region: str) -> None:
        launch_config = {
            "region": region,
            "launchConfig": {"ImageId": "ami-1", "InstanceType": "m5.large"},
        }
        body = {
            "providerId": name,
            "description": "a pool",
            "owner": "owner@example.com",
            "emailOnError": False,
            "config": {"minCapacity": 1, "maxCapacity": 2, "launchConfigs": [launch_config]},
        }
        self.running.ask("pools-api", "PUT", f"{API}/worker-pool/proj-x%2F{name}", body)

    def put_secret(self, name: str, text: str) -> None:
        ELSEWHERE.running = True
        try:
            self.vault.put_secret_value(SecretId=self.secrets[name], SecretString=text)
        finally:
            ELSEWHERE.running = False

    def call(self, provider: str, function: str, event: Any) -> Any:
        name = f"{function}-aws"
        changes = {"WM_PROVIDER": provider}
        if "WM_CLOUD_SECRET" in self.running.deployed.environment(name):
            changes["WM_CLOUD_SECRET"] = self.secrets[provider]
        return self.running.deployed.call(name, event, **changes)

    def tick(self) -> None:
        """Every schedule fires, and every message is delivered; nothing comes back."""
        for verb in ("provision", "scan"):
            for provider in REGIONS:
                event = a_scheduled_event(datetime.now(UTC))
                assert self.call(provider, f"{verb}-tick", event) is None
                for sent in self.running.deployed.drain(f"{verb}-aws.fifo"):
                    assert self.call(provider, f"{verb}-pool", sent) is None

    def workers(self) -> dict[str, int]:
        return {
            name: len(
                self.running.ask("workers-api", "GET", f"{API}/workers/proj-x%2F{name}")["workers"]
            )
            for name in REGIONS
        }

    def statuses(self) -> dict[str, Any]:
        listed = self.running.ask("pools-api", "GET", f"{API}/providers")["providers"]
        return {found["providerId"]: found.get("status") for found in listed}


@pytest.fixture
def three(running: RunningStage, monkeypatch: pytest.MonkeyPatch) -> Three:
    made = Three(running, monkeypatch)
    made.put_secret("broken", '{"accessKeyId": "AKIDBROKEN"}')
    fault = Fault(FaultKind.ERROR, code="AuthFailure", region=REGIONS["refused"], times=None)
    running.ec2.faults.add(fault)
    return made


def test_two_providers_that_fail_stop_only_their_own_pools_and_come_back_alone(
    three: Three,
) -> None:
    assert three.statuses() == {
        **{name: {"state": "ok"} for name in REGIONS},
        "static": None,
    }

    three.tick()

    assert three.workers() == {"aws": 1, "broken": 0, "refused": 0}
    said = three.statuses()
    assert said["aws"] == {"state": "ok"}
    assert said["broken"]["state"] == said["refused"]["state"] == "failing"
    assert said["broken"]["reason"] == (
        "setup: the secret has an accessKeyId but no secretAccessKey"
    )
    assert "list: AuthFailure: " in said["refused"]["reason"]
    assert "since" in said["broken"]

    three.put_secret("broken", "none")
    three.running.ec2.faults.clear()
    three.running.clock.advance(120)
    three.tick()

    statuses = three.statuses()
    assert statuses["aws"] == statuses["broken"] == {"state": "ok"}
    assert "list" not in statuses["refused"].get("reason", "")
    assert three.workers()["broken"] == 1


def test_a_delete_that_meets_a_provider_that_cannot_start_is_no_dead_letter(
    three: Three, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker is marked; the scan deletes it again once the provider starts."""
    message = Terminate(WorkerKey("proj-x/broken", REGIONS["broken"], "i-1")).to_json()

    assert three.call("broken", "advance", an_sqs_event([message])) is None
    assert "left to the next tick, for the provider cannot start" in caplog.messages


def test_pools_of_a_provider_that_cannot_start_are_still_defined_and_read(three: Three) -> None:
    three.tick()
    path = f"{API}/worker-pool/proj-x%2Fbroken"
    pool = three.running.ask("pools-api", "GET", path)

    changed = {**pool, "description": "changed"}

    assert three.running.ask("pools-api", "POST", path, changed)["description"] == "changed"
