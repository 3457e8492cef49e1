"""Stages: what is refused, and that one machine runs what AWS runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.template import referred_to
from infra.settings import STAGES, EventDestination, ProviderSettings, StageSettings
from tests.infra.stack.reading import allowed, function, names, of_type

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]

CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/1"
LOOPS = tuple(ProviderSettings(provider_id=f"aws-{n}", provider_type="aws") for n in range(6))
REMOTE = {"queue_root_url": "https://tc.example.com"}
BALANCED = {"front_door": "load-balancer", "certificate_arn": CERTIFICATE}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tick_seconds": 4}, "tick_seconds"),
        ({"tick_seconds": 61}, "tick_seconds"),
        ({"tick_seconds": 7}, "tick_seconds"),
        ({"root_url": "https://tc.example.com/"}, "slash"),
        ({"providers": (STAGES["dev"].providers[0],) * 2}, "twice"),
        ({"providers": LOOPS}, "at most 5 providers that launch machines"),
        ({"front_door": "load-balancer"}, "certificate_arn"),
        ({"hosted_zone_id": "Z1"}, "certificate_arn"),
        (BALANCED | {"vpc_id": "vpc-1"}, "subnet_ids"),
        (BALANCED | {"vpc_id": "vpc-1", "subnet_ids": ("subnet-1",)}, "two subnet_ids"),
        (BALANCED | {"requests_per_second": 500}, "requests_per_second"),
        (BALANCED | {"burst_requests": 500}, "burst_requests"),
        ({"vpc_id": "vpc-1", "subnet_ids": ("subnet-1", "subnet-2")}, "vpc_id"),
        ({"api_concurrency": 10}, "api_concurrency"),
        ({"is_watched": False, "alarm_email": "me@example.com"}, "alarm_email"),
        ({"is_watched": False, "metrics_by_pool": True}, "metrics_by_pool"),
        ({"log_days": 31}, "log_days"),
        ({"queue_backend": "remote"}, "needs a queue_root_url"),
        ({"queue_backend": "events"}, "needs a queue_root_url"),
        (REMOTE | {"queue_backend": "builtin"}, "has no queue_root_url"),
        (REMOTE | {"claim_hold_seconds": 1}, "embedded queue's"),
        ({"claim_hold_seconds": 2.5}, "claim_hold_seconds"),
        ({"action_hosts": ("https://a.example",)}, "neither host nor host:port"),
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(STAGES["dev"], **change)


def test_a_provider_works_on_two_pools_at_least() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        ProviderSettings(provider_id="aws", provider_type="aws", concurrency=1)


GOOGLE = {
    "provider_type": "google",
    "project": "my-project",
    "service_account_id": "1234",
    "service_account_email": "worker@p.example.com",
}
AZURE = {
    "provider_type": "azure",
    "subscription": "00000000-0000-4000-8000-00000000000F",
    "resource_group": "workers",
}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (GOOGLE | {"project": ""}, "needs project"),
        (GOOGLE | {"service_account_id": ""}, "needs service_account_id"),
        (AZURE | {"resource_group": ""}, "needs resource_group"),
        (AZURE | {"project": "p"}, "azure has no project"),
        ({"provider_type": "static", "subscription": "s"}, "static has no subscription"),
        (GOOGLE | {"instance_roles": ("arn:aws:iam::1:role/r",)}, "instance_roles"),
        *((GOOGLE | {"project": wrong}, "project must be") for wrong in ("p", "My-Project", "x:p")),
        (GOOGLE | {"service_account_id": "worker@p.example.com"}, "uniqueId, a number"),
        (GOOGLE | {"service_account_email": "1234"}, "plain e-mail"),
        (AZURE | {"subscription": "production"}, "a UUID"),
        *((AZURE | {"resource_group": wrong}, "name, 1 to 90") for wrong in ("a.", "ü", "a" * 91)),
    ],
)
def test_a_provider_is_told_what_its_cloud_needs_and_no_more(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        ProviderSettings(provider_id="x", **settings)


@pytest.mark.parametrize("name", ["", "a.b", "a" * 39, "null-provider"])
def test_a_provider_is_named_as_pools_may_name_one(name: str) -> None:
    with pytest.raises(ValueError, match="provider"):
        ProviderSettings(provider_id=name, provider_type="aws")


@pytest.mark.parametrize(
    "settings",
    [
        GOOGLE | {"project": "example.com:my-project"},
        AZURE | {"resource_group": "My_group.(1)-a"},
    ],
)
def test_every_name_that_a_cloud_takes_is_taken(settings: dict[str, Any]) -> None:
    assert ProviderSettings(provider_id="x", **settings).options


def test_functions_have_the_sdk_of_their_own_cloud_only(local_template: Template) -> None:
    everywhere = ["SharedLayer", "RuntimeLayer"]
    in_cloud = ("provision-pool", "scan-tick", "scan-pool", "advance", "sweep")
    own = {f"{name}-{cloud}": cloud for name in in_cloud for cloud in ("azure", "google")}

    for name in names(local_template):
        layers = [found["Ref"][:-8] for found in function(local_template, name)["Layers"]]
        expected = [f"{own[name].title()}Layer"] if name in own else []
        assert layers == everywhere + expected, name


def test_events_are_not_sent_in_the_clear() -> None:
    with pytest.raises(ValueError, match="https"):
        EventDestination(name="chat", url="http://example.com", secret_name="token")


def test_logs_are_kept_as_long_as_a_stage_says(
    template_of: Callable[[StageSettings], Template],
) -> None:
    template = template_of(replace(STAGES["dev"], log_days=90))

    groups = of_type(template, "AWS::Logs::LogGroup").values()
    assert {group["RetentionInDays"] for group in groups} == {90}
    assert len(groups) == len(of_type(template, "AWS::Lambda::Function"))


def test_a_key_of_its_own_encrypts_tables_secrets_and_bucket(
    template_of: Callable[[StageSettings], Template], local_template: Template
) -> None:
    template = template_of(replace(STAGES["dev"], has_own_key=True))

    [key] = of_type(template, "AWS::KMS::Key")
    for table in of_type(template, "AWS::DynamoDB::Table").values():
        assert [*referred_to(table["SSESpecification"]["KMSMasterKeyId"])] == [key]
    for secret in of_type(template, "AWS::SecretsManager::Secret").values():
        assert [*referred_to(secret["KmsKeyId"])] == [key]
    for name in names(template):
        assert "kms:Decrypt" in allowed(template, name)
    assert not of_type(local_template, "AWS::KMS::Key")


def test_each_stage_marks_its_machines_differently() -> None:
    assert len({stage.deployment for stage in STAGES.values()}) == len(STAGES)


def test_one_machine_runs_what_aws_runs(
    local_template: Template, template_of: Callable[[StageSettings], Template]
) -> None:
    def resources(template: Template) -> dict[str, str]:
        return {
            logical_id: resource["Type"]
            for logical_id, resource in template["Resources"].items()
            if not logical_id.startswith(("ApiRestDeployment", "Watching", "Dashboard"))
        }

    alike = replace(STAGES["dev"], providers=STAGES["local"].providers)
    assert resources(local_template) == resources(template_of(alike))


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
