"""Letters over SES: taken, or refused in our own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sesv2.models import sesv2_backends

from worker_manager.core.errors import MailRefusedError
from worker_manager.core.letters import Letter
from worker_manager.mail import ONE_ATTEMPT, SesMailer

if TYPE_CHECKING:
    from collections.abc import Iterator

SENDER = "worker-manager@example.com"
LETTER = Letter("owner@example.com", "Worker pool a/b: Kein Platz für €", "Zeile 1\nZeile 2\n")


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        make: Any = boto3.client
        ses = make("sesv2", config=ONE_ATTEMPT)
        ses.create_email_identity(EmailIdentity=SENDER)
        yield ses


def sent() -> list[Any]:
    backend: Any = sesv2_backends[DEFAULT_ACCOUNT_ID]["us-east-1"]
    return list(backend.core_backend.sent_messages)


def test_a_letter_is_sent_from_one_address_to_one_other(client: Any) -> None:
    SesMailer(client, SENDER).send(LETTER)

    (message,) = sent()
    assert message.source == SENDER
    assert message.destinations["ToAddresses"] == ["owner@example.com"]
    assert (message.subject, message.body) == (LETTER.subject, LETTER.text)


def test_a_sender_that_is_not_verified_is_refused_by_ses(client: Any) -> None:
    with pytest.raises(MailRefusedError) as refusal:
        SesMailer(client, "nobody@elsewhere.example").send(LETTER)

    assert refusal.value.code == "MessageRejected"
    assert not refusal.value.throttled
    assert sent() == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "a@example.com, b@example.com",
        "a@example.com\nBcc: b@example.com",
        "A <a@example.com>",
        "a@b@example.com",
        " a@example.com",
        "ä@example.com\r",
    ],
)
def test_what_is_not_exactly_one_address_is_never_sent(client: Any, address: str) -> None:
    with pytest.raises(MailRefusedError) as refusal:
        SesMailer(client, SENDER).send(Letter(address, "s", "t"))

    assert refusal.value.code == "InvalidAddress"
    assert sent() == []


class Refusing:
    """An SES that answers every mail with the same error."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.calls = 0

    def send_email(self, **_: Any) -> None:
        self.calls += 1
        raise self._error


def an_answer(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "SendEmail")


@pytest.mark.parametrize(
    ("error", "code", "throttled"),
    [
        (an_answer("TooManyRequestsException"), "TooManyRequestsException", True),
        (an_answer("LimitExceededException"), "LimitExceededException", True),
        (an_answer("SendingPausedException"), "SendingPausedException", True),
        (an_answer("MessageRejected"), "MessageRejected", False),
        (an_answer("AccessDeniedException"), "AccessDeniedException", False),
        (ReadTimeoutError(endpoint_url="https://email"), "ReadTimeoutError", False),
        (EndpointConnectionError(endpoint_url="https://email"), "EndpointConnectionError", False),
    ],
)
def test_whatever_ses_says_becomes_our_error_after_one_attempt(
    error: Exception, code: str, throttled: bool
) -> None:
    ses = Refusing(error)
    with pytest.raises(MailRefusedError) as refusal:
        SesMailer(ses, SENDER).send(LETTER)

    assert (refusal.value.code, refusal.value.throttled) == (code, throttled)
    assert ses.calls == 1


def test_the_sdk_neither_repeats_a_mail_nor_waits_long_for_an_answer(client: Any) -> None:
    config = client.meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.connect_timeout + config.read_timeout <= 10
