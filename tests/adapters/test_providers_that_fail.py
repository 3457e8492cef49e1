"""A provider that cannot be built is said to fail, says no secret, and is built again alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.functions.deployed import ELSEWHERE
from worker_manager import settings
from worker_manager.core.errors import NotAuthorizedError, ProviderNotReadyError
from worker_manager.reconcile.provider_status import provider_failed, provider_recovered
from worker_manager.store.provider_status import Activity, Failing, ProviderStatusStore
from worker_manager.wiring import loops
from worker_manager.wiring.base import Base
from worker_manager.wiring.base import now as real_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functions.deployed import DeployedStage

FUNCTION = "scan-tick-aws"
KEY = {"accessKeyId": "AKIDGOOD", "secretAccessKey": "good-secret"}
HALF = {"accessKeyId": "AKIDHALF"}
SECOND = timedelta(seconds=1)


@dataclass
class Clock:
    moment: datetime

    def __call__(self) -> datetime:
        return self.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(real_now())
    monkeypatch.setattr(loops, "now", made)
    return made


class Vault:
    """The provider's secret."""

    def __init__(self, deployed: DeployedStage) -> None:
        self.id = deployed.environment(FUNCTION)["WM_CLOUD_SECRET"]
        self.client: Any = boto3.client("secretsmanager")

    def put(self, text: str) -> None:
        """An operator does it, and none of the functions."""
        ELSEWHERE.running = True
        try:
            self.client.put_secret_value(SecretId=self.id, SecretString=text)
        finally:
            ELSEWHERE.running = False


@pytest.fixture
def vault(deployed: DeployedStage) -> Iterator[Vault]:
    made = Vault(deployed)
    yield made
    made.put("generated")


def failing() -> list[Failing]:
    return Base(settings.load()).stores.statuses.failing("aws", real_now())


def key_in_use() -> str:
    provider: Any = loops.loop().provider
    found: str = provider._session.get_credentials().access_key
    return found


def test_a_secret_that_is_half_keeps_a_provider_from_starting_and_says_what_is_missing(
    deployed: DeployedStage, vault: Vault, clock: Clock
) -> None:
    vault.put(json.dumps(HALF))

    with deployed.container(FUNCTION):
        with pytest.raises(ProviderNotReadyError, match="no secretAccessKey"):
            loops.loop()
        (found,) = failing()

    assert (found.activity, found.kind, found.since) == ("setup", "setup-failed", clock.moment)
    assert found.reason == "the secret has an accessKeyId but no secretAccessKey"


def test_it_starts_at_the_next_call_after_its_secret_was_put_right(
    deployed: DeployedStage, vault: Vault, clock: Clock
) -> None:
    with deployed.container(FUNCTION):
        vault.put(json.dumps(HALF))
        with pytest.raises(ProviderNotReadyError):
            loops.loop()
        vault.put(json.dumps(KEY))

        assert key_in_use() == "AKIDGOOD"
        assert failing() == []


def test_another_containers_good_start_ends_it_too(
    deployed: DeployedStage, vault: Vault, clock: Clock
) -> None:
    vault.put(json.dumps(HALF))
    with deployed.container(FUNCTION), pytest.raises(ProviderNotReadyError):
        loops.loop()
    vault.put(json.dumps(KEY))

    with deployed.container("advance-aws"):
        loops.loop()
        assert failing() == []


@pytest.mark.parametrize("error", [ValueError, ImportError, RuntimeError])
@pytest.mark.usefixtures("vault", "clock")
def test_what_a_constructor_says_is_shown_to_nobody(
    deployed: DeployedStage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
) -> None:
    def build(_: Any) -> None:
        raise error(f"cannot parse {json.dumps(KEY)}")

    monkeypatch.setattr(loops, "load_cloud", lambda _: build)

    with deployed.container(FUNCTION):
        with pytest.raises(ProviderNotReadyError) as raised:
            loops.loop()
        (found,) = failing()

    said = [found.reason, str(raised.value), *(str(vars(record)) for record in caplog.records)]
    assert found.reason.startswith(error.__name__)
    assert not any("good-secret" in text for text in said)
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert any(__file__ in str(vars(record)) for record in caplog.records), "where it is logged"


def test_a_status_that_cannot_be_written_brings_no_secret_into_the_log(
    deployed: DeployedStage,
    vault: Vault,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def build(_: Any) -> None:
        raise ValueError(f"cannot parse {json.dumps(KEY)}")

    def down(*_: Any, **__: Any) -> None:
        raise RuntimeError("the table has a bad day")

    monkeypatch.setattr(loops, "load_cloud", lambda _: build)
    monkeypatch.setattr(ProviderStatusStore, "failed", down)
    with deployed.container(FUNCTION), pytest.raises(ProviderNotReadyError):
        loops.loop()

    assert "a provider's status could not be written" in caplog.messages
    assert "the table has a bad day" in caplog.text
    assert "good-secret" not in caplog.text


def test_a_secret_that_cannot_be_read_is_a_provider_that_cannot_start(
    deployed: DeployedStage, clock: Clock
) -> None:
    gone = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gone-AbCdEf"

    with deployed.container(FUNCTION, WM_CLOUD_SECRET=gone):
        with pytest.raises(ProviderNotReadyError):
            loops.loop()
        (found,) = failing()

    assert found.reason == "AWS refused GetSecretValue: ResourceNotFoundException"


def test_an_unknown_provider_type_is_a_provider_that_cannot_start(
    deployed: DeployedStage, clock: Clock
) -> None:
    providers = json.dumps({"aws": {"providerType": "unheard-of"}})

    with (
        deployed.container(FUNCTION, WM_PROVIDERS=providers),
        pytest.raises(ProviderNotReadyError, match="LookupError"),
    ):
        loops.loop()


def test_only_those_functions_fail_that_need_the_cloud(
    deployed: DeployedStage, vault: Vault
) -> None:
    vault.put(json.dumps(HALF))

    with deployed.container("provision-tick-aws"):
        assert loops.loop().provider_id == "aws"
    with deployed.container("expire"):
        assert loops.keeper().providers == ["aws", "azure", "google", "static"]


def test_it_is_logged_as_an_error_once_a_minute(
    deployed: DeployedStage, vault: Vault, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    vault.put(json.dumps(HALF))
    with deployed.container(FUNCTION):
        for _ in range(7):
            with pytest.raises(ProviderNotReadyError):
                loops.loop()
            clock.moment += 20 * SECOND

    assert caplog.messages.count("a provider fails") == 3


def test_a_container_keeps_its_provider_while_all_is_well(
    deployed: DeployedStage, clock: Clock
) -> None:
    with deployed.container(FUNCTION):
        before = loops.loop()
        clock.moment += timedelta(hours=5)
        assert loops.loop() is before


def test_a_provider_whose_key_is_refused_is_built_anew_with_the_key_of_the_moment(
    deployed: DeployedStage, vault: Vault, clock: Clock
) -> None:
    refused = NotAuthorizedError("no", code="AuthFailure")
    vault.put(json.dumps({**KEY, "accessKeyId": "AKIDOLD"}))
    with deployed.container(FUNCTION):
        assert key_in_use() == "AKIDOLD"
        vault.put(json.dumps(KEY))
        assert key_in_use() == "AKIDOLD"

        provider_failed(loops.loop(), Activity.LIST, refused)
        assert key_in_use() == "AKIDOLD", "not more often than once a minute"
        clock.moment += loops.REBUILT
        assert key_in_use() == "AKIDGOOD"

        provider_recovered(loops.loop(), Activity.LIST)
        before = loops.loop()
        clock.moment += timedelta(hours=1)
        assert loops.loop() is before


def test_a_key_that_is_spoilt_while_it_is_refused_stops_the_provider(
    deployed: DeployedStage, vault: Vault, clock: Clock
) -> None:
    with deployed.container(FUNCTION):
        provider_failed(loops.loop(), Activity.LIST, NotAuthorizedError("no", code="AuthFailure"))
        vault.put(json.dumps(HALF))
        clock.moment += loops.REBUILT
        with pytest.raises(ProviderNotReadyError):
            loops.loop()
        vault.put(json.dumps(KEY))

        assert key_in_use() == "AKIDGOOD"
