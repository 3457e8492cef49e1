"""Only one function sends mail, from one address, and only where the stage wants any."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.settings import STAGES, StageSettings
from tests.infra.stack.reading import actions, allowed, environment, names, resources, statements
from worker_manager.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]

SENDER = "worker-manager@example.com"


def test_only_publish_sends_mail_and_from_one_address(local_template: Template) -> None:
    senders = [
        name for name in names(local_template) if "ses:SendEmail" in allowed(local_template, name)
    ]
    assert senders == ["publish"]

    [found] = [s for s in statements(local_template, "publish") if "ses:SendEmail" in actions(s)]
    assert found["Condition"] == {"StringEquals": {"ses:FromAddress": SENDER}}
    identities = [found["Fn::Join"][1][-1] for found in resources(found)]
    assert {text.partition(":identity/")[2] for text in identities} == {SENDER, "example.com"}


def test_whoever_records_errors_knows_that_they_are_mailed(local_template: Template) -> None:
    recording = [
        n for n in names(local_template) if "WM_TABLE_ERRORS" in environment(local_template, n)
    ]
    assert {"provision-pool-aws", "scan-pool-aws", "workers-api", "publish"} <= set(recording)
    for name in recording:
        assert Settings.of(environment(local_template, name)).mail_from == SENDER


def test_a_stage_without_mail_sends_none(
    template_of: Callable[[StageSettings], Template],
) -> None:
    template = template_of(replace(STAGES["local"], mail_from=None))

    assert not any("ses:SendEmail" in allowed(template, name) for name in names(template))
    assert not any("WM_MAIL_FROM" in environment(template, name) for name in names(template))


@pytest.mark.parametrize("address", ["nobody", "A <a@example.com>", "a@b.c, d@e.f", "a@b@c"])
def test_a_sender_is_one_plain_address(address: str) -> None:
    with pytest.raises(ValueError, match="mail_from"):
        replace(STAGES["local"], mail_from=address)
