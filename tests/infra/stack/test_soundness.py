"""AWS's rules for sound stacks, and the reasons for what they object to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra import acknowledgements
from infra.accounts import MOST_LOOPS
from infra.app import synthesise
from infra.constructs import provider_loop
from infra.settings import (
    STAGES,
    EventDestination,
    FrontDoor,
    ProviderSettings,
    PulseSettings,
    StageSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infra.constructs.function import ServiceFunction
    from infra.stack import Code

CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/1"


def with_everything(front_door: FrontDoor) -> StageSettings:
    return replace(
        STAGES["prod"],
        front_door=front_door,
        certificate_arn=CERTIFICATE,
        hosted_zone_id="Z123",
        has_own_key=True,
        has_event_queue=True,
        queue_root_url=None,
        alarm_email="operators@example.com",
        pulse=PulseSettings(url="amqps://pulse.example.com"),
        account="123456789012",
        region="us-east-1",
        notice_regions=("eu-west-1",),
        event_destinations=(
            EventDestination(
                name="chat", url="https://example.com/events", secret_name="chat-token"
            ),
        ),
    )


@pytest.mark.parametrize("front_door", ["rest", "load-balancer"])
def test_every_finding_has_a_reason(stub_code: Code, tmp_path: Path, front_door: FrontDoor) -> None:
    settings = with_everything(front_door)

    written = synthesise(settings, code=stub_code, outdir=tmp_path, in_place=True, is_checked=True)

    assert written.exists()


def test_a_stage_with_everything_and_as_many_providers_as_it_may_have_fits_into_a_stack(
    template_of: Callable[[StageSettings], dict[str, Any]],
) -> None:
    """CloudFormation takes 500 resources; AWS (it gives notice) and the REST API have most."""
    loops = [ProviderSettings(provider_id=f"a{n}", provider_type="aws") for n in range(MOST_LOOPS)]

    template = template_of(replace(with_everything("rest"), providers=tuple(loops)))

    for each in (template, *template["Inner"]):
        assert len(each["Resources"]) < 470, "room is left for what comes"


def test_a_finding_without_a_reason_fails_the_synthesis(
    stub_code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {rule: reason for rule, reason in acknowledgements.STAGE.items() if rule != "SMG4"}
    monkeypatch.setattr(acknowledgements, "STAGE", kept)

    with pytest.raises(RuntimeError, match="SMG4"):
        synthesise(STAGES["dev"], code=stub_code, outdir=tmp_path, in_place=True, is_checked=True)
    report = (tmp_path / "validation-report.json").read_text()
    assert "AwsSolutions-SMG4" in report
    assert "AwsSolutions-L1" not in report


def test_what_one_role_may_do_anywhere_is_no_reason_for_another(
    stub_code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may_describe_images(function: ServiceFunction, **_: object) -> None:
        function.allow(["ec2:DescribeImages"], resources=["*"])

    monkeypatch.setattr(provider_loop, "may_launch", may_describe_images)

    with pytest.raises(RuntimeError, match="IAM5"):
        synthesise(STAGES["dev"], code=stub_code, outdir=tmp_path, in_place=True, is_checked=True)
    report = (tmp_path / "validation-report.json").read_text()
    assert "AwsSolutions-IAM5[Resource::*]" in report
    assert "ProvisionPool" in report
    assert "ScanPool" not in report
