"""Stages: what is refused, and that one machine runs what AWS runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.settings import STAGES, ProviderSettings, StageSettings
from tests.infra.stack.reading import of_type

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tick_seconds": 4}, "tick_seconds"),
        ({"tick_seconds": 61}, "tick_seconds"),
        ({"tick_seconds": 7}, "tick_seconds"),
        ({"root_url": "https://tc.example.com/"}, "slash"),
        ({"providers": (STAGES["dev"].providers[0],) * 2}, "twice"),
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(STAGES["dev"], **change)


def test_a_provider_works_on_two_pools_at_least() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        ProviderSettings(provider_id="aws", provider_type="aws", concurrency=1)


def test_each_stage_marks_its_machines_differently() -> None:
    assert len({stage.deployment for stage in STAGES.values()}) == len(STAGES)


def test_one_machine_runs_what_aws_runs(
    local_template: Template, template_of: Callable[[StageSettings], Template]
) -> None:
    def resources(template: Template) -> dict[str, str]:
        return {
            logical_id: resource["Type"]
            for logical_id, resource in template["Resources"].items()
            if not logical_id.startswith("ApiRestDeployment")
        }

    assert resources(local_template) == resources(template_of(STAGES["dev"]))


def test_every_provider_has_a_loop_of_its_own(
    template_of: Callable[[StageSettings], Template],
) -> None:
    two = replace(
        STAGES["prod"],
        providers=(
            ProviderSettings(provider_id="aws", provider_type="aws"),
            ProviderSettings(provider_id="aws-trusted", provider_type="aws", concurrency=20),
            ProviderSettings(provider_id="racks", provider_type="static"),
        ),
    )

    template = template_of(two)

    names = [found["FunctionName"] for found in of_type(template, "AWS::Lambda::Function").values()]
    assert {name for name in names if "provision-pool" in name} == {
        "wm-prod-provision-pool-aws",
        "wm-prod-provision-pool-aws-trusted",
    }
    limits = {
        mapping["ScalingConfig"]["MaximumConcurrency"]
        for mapping in of_type(template, "AWS::Lambda::EventSourceMapping").values()
    }
    assert limits == {2, 5, 20}
