"""The way to an AMQP broker: deployed where a stage names one, and what it may do."""

from __future__ import annotations

from typing import Any

import pytest

from infra.settings import PulseSettings
from tests.infra.stack.reading import environment, function, names, of_type

Template = dict[str, Any]


def test_a_stage_without_a_broker_has_no_function_for_it(local_template: Template) -> None:
    assert "pulse" not in names(local_template)


def test_only_the_function_that_speaks_amqp_carries_its_library(full_template: Template) -> None:
    layers = of_type(full_template, "AWS::Lambda::LayerVersion")
    carried = {
        name: [
            layers[layer["Ref"]]["Description"] for layer in function(full_template, name)["Layers"]
        ]
        for name in names(full_template)
    }

    assert [name for name, found in carried.items() if "amqp: local" in found] == ["pulse"]


def test_its_url_names_the_virtual_host_and_no_secret(full_template: Template) -> None:
    assert environment(full_template, "pulse")["WM_PULSE_URL"] == "amqps://pulse.example/%2F"


def test_only_events_that_have_an_exchange_are_sent_there(full_template: Template) -> None:
    [rule] = [
        found
        for found in of_type(full_template, "AWS::Events::Rule").values()
        if found["Name"] == "wm-local-pulse"
    ]

    assert rule["EventPattern"]["source"] == ["worker-manager"]
    assert "worker-stopped" in rule["EventPattern"]["detail-type"]


def test_a_virtual_host_is_encoded() -> None:
    settings = PulseSettings(url="amqps://pulse.example:5671", virtual_host="a/b")

    assert settings.full_url == "amqps://pulse.example:5671/a%2Fb"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("https://pulse.example", "amqps://"),
        ("amqps://", "amqps://"),
        ("amqps://pulse.example/", "amqps://"),
        ("amqps://me:secret@pulse.example", "belong into its secret"),
        ("amqp://pulse.example", "amqps://"),
        ("amqp://127.0.0.1.example.com:5672", "amqps://"),
    ],
)
def test_a_url_that_is_none_or_says_too_much_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        PulseSettings(url=url)


@pytest.mark.parametrize("host", ["127.0.0.1:5672", "localhost", "[::1]:5672"])
def test_only_a_broker_on_this_machine_may_be_spoken_to_in_the_clear(host: str) -> None:
    assert PulseSettings(url=f"amqp://{host}").full_url == f"amqp://{host}/%2F"
