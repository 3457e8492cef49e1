"""An error that a worker reports reaches its pool's owner by mail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sesv2.models import sesv2_backends

from infra.settings import STAGES
from tests.functions.running import API, POOL_PATH

if TYPE_CHECKING:
    from tests.functions.running import RunningStage

ERRORS = f"{API}/worker-pool-errors/proj-x%2Fpool-1"


def mails() -> list[Any]:
    backend: Any = sesv2_backends[DEFAULT_ACCOUNT_ID]["us-east-1"]
    return list(backend.core_backend.sent_messages)


def verify_the_sender() -> None:
    make: Any = boto3.client
    make("sesv2").create_email_identity(EmailIdentity=STAGES["local"].mail_from)


@pytest.fixture
def wanting_mail(running: RunningStage) -> RunningStage:
    pool = running.define_pool()
    running.ask("pools-api", "POST", POOL_PATH, {**pool, "emailOnError": True})
    return running


def report(running: RunningStage, title: str = "Disk full") -> None:
    body = {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "kind": "worker-error",
        "title": title,
        "description": "no space left on device",
        "extra": {"password": "hunter2"},
    }
    running.ask("workers-api", "POST", ERRORS, body)


def test_a_workers_error_is_mailed_once_and_its_repeats_are_counted(
    wanting_mail: RunningStage,
) -> None:
    verify_the_sender()
    report(wanting_mail)

    assert wanting_mail.deployed.call("publish", {})["mail"] == {"sent": 1}
    report(wanting_mail, "Disk full")
    assert wanting_mail.deployed.call("publish", {})["mail"] == {"nothing-due": 1}

    (mail,) = mails()
    assert mail.source == STAGES["local"].mail_from
    assert mail.destinations["ToAddresses"] == ["owner@example.com"]
    assert mail.subject == "Worker pool proj-x/pool-1: Disk full"
    assert "no space left on device" in mail.body
    assert f"{wanting_mail.root_url}{ERRORS}" in mail.body
    assert "hunter2" not in mail.body


def test_whoever_did_not_ask_for_mail_gets_none(running: RunningStage) -> None:
    verify_the_sender()
    running.define_pool()
    report(running)

    assert running.deployed.call("publish", {})["mail"] == {}
    assert mails() == []


def test_whoever_wants_no_more_mail_gets_none(wanting_mail: RunningStage) -> None:
    verify_the_sender()
    report(wanting_mail)
    pool = wanting_mail.ask("pools-api", "GET", POOL_PATH)
    wanting_mail.ask("pools-api", "POST", POOL_PATH, {**pool, "emailOnError": False})

    assert wanting_mail.deployed.call("publish", {})["mail"] == {"unwanted": 1}
    assert wanting_mail.deployed.call("publish", {})["mail"] == {}
    assert mails() == []


def test_a_sender_that_is_not_verified_shows_in_the_pools_errors(
    wanting_mail: RunningStage,
) -> None:
    report(wanting_mail)

    assert wanting_mail.deployed.call("publish", {})["mail"] == {"refused": 1}

    found = wanting_mail.ask("workers-api", "GET", ERRORS)["workerPoolErrors"]
    assert [error["kind"] for error in found] == ["email-failed", "worker-error"]
    assert found[0]["extra"] == {"code": "MessageRejected"}


def test_a_stage_without_mail_sends_none(wanting_mail: RunningStage) -> None:
    verify_the_sender()
    report(wanting_mail)

    assert wanting_mail.deployed.call("publish", {}, WM_MAIL_FROM=None)["mail"] == {}
    assert mails() == []
