"""Events sent to an HTTPS endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.settings import STAGES, EventDestination, StageSettings
from tests.infra.stack.reading import of_type

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]

CHAT = EventDestination(
    name="chat",
    url="https://example.com/events",
    secret_name="chat-token",
    event_names=("worker-pool-error", "launch-config-paused"),
)
AUDIT = EventDestination(name="audit", url="https://example.com/all", secret_name="audit-token")


@pytest.fixture(scope="module")
def sending(template_of: Callable[[StageSettings], Template]) -> Template:
    return template_of(replace(STAGES["dev"], event_destinations=(CHAT, AUDIT)))


def rule(template: Template, name: str) -> dict[str, Any]:
    [found] = [
        rule
        for rule in of_type(template, "AWS::Events::Rule").values()
        if rule["Name"] == f"wm-dev-events-{name}"
    ]
    return found


def test_a_destination_hears_of_the_events_that_it_asks_for(sending: Template) -> None:
    assert rule(sending, "chat")["EventPattern"] == {
        "source": ["worker-manager"],
        "detail-type": ["worker-pool-error", "launch-config-paused"],
    }
    assert rule(sending, "audit")["EventPattern"] == {"source": ["worker-manager"]}


def test_what_it_does_not_take_within_a_day_is_kept(sending: Template) -> None:
    for name in ("chat", "audit"):
        [target] = rule(sending, name)["Targets"]
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 86_400
        assert "DeadLetterConfig" in target


def test_its_secret_is_read_at_deployment_and_not_in_the_template(sending: Template) -> None:
    connections = of_type(sending, "AWS::Events::Connection").values()
    values = [
        found["AuthParameters"]["ApiKeyAuthParameters"]["ApiKeyValue"] for found in connections
    ]

    assert sorted(values) == [
        "{{resolve:secretsmanager:audit-token:SecretString:::}}",
        "{{resolve:secretsmanager:chat-token:SecretString:::}}",
    ]


def test_events_that_do_not_exist_are_refused(
    template_of: Callable[[StageSettings], Template],
) -> None:
    mistaken = replace(CHAT, event_names=("worker-pool-errors",))

    with pytest.raises(ValueError, match="worker-pool-errors"):
        template_of(replace(STAGES["dev"], event_destinations=(mistaken,)))
