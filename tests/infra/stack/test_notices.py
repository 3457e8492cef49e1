"""What EC2 tells of machines: which of it is taken, from where, and by whom."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.app import synthesise
from infra.settings import STAGES
from tests.infra.stack.reading import allowed, of_type

if TYPE_CHECKING:
    from pathlib import Path

    from infra.stack import Code

Template = dict[str, Any]

PROD = replace(
    STAGES["prod"], account="123456789012", region="us-east-1", notice_regions=("eu-west-1",)
)


def notice_rules(template: Template) -> dict[str, dict[str, Any]]:
    return {
        rule["Name"]: rule
        for rule in of_type(template, "AWS::Events::Rule").values()
        if rule.get("EventPattern", {}).get("source") == ["aws.ec2"]
    }


@pytest.fixture(scope="session")
def stacks(stub_code: Code, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Template]:
    """Every template of a stage with machines in two regions, by its stack's name."""
    outdir: Path = tmp_path_factory.mktemp("cdk.out")
    synthesise(PROD, code=stub_code, outdir=outdir, in_place=True)
    return {
        path.name.removesuffix(".template.json"): json.loads(path.read_text())
        for path in outdir.glob("*.template.json")
    }


def test_ends_and_interruptions_are_taken_and_no_other_event_of_ec2(
    local_template: Template,
) -> None:
    [rule] = notice_rules(local_template).values()

    assert "EventBusName" not in rule
    assert rule["EventPattern"] == {
        "source": ["aws.ec2"],
        "detail-type": [
            "EC2 Instance State-change Notification",
            "EC2 Spot Instance Interruption Warning",
        ],
        "detail": {
            "$or": [
                {"state": ["shutting-down", "stopped", "stopping", "terminated"]},
                {"instance-action": [{"exists": True}]},
            ]
        },
    }


def test_notices_wait_a_second_for_others(local_template: Template) -> None:
    windows = [
        mapping["MaximumBatchingWindowInSeconds"]
        for mapping in of_type(local_template, "AWS::Lambda::EventSourceMapping").values()
        if mapping["BatchSize"] == 100
    ]

    assert windows == [1]


def test_who_hears_notices_launches_nothing(local_template: Template) -> None:
    may = {one for one in allowed(local_template, "notices-aws") if one.startswith("ec2:")}

    assert may == {"ec2:DescribeInstances", "ec2:TerminateInstances"}


def test_another_region_forwards_its_notices_to_our_own_bus(stacks: dict[str, Template]) -> None:
    there = stacks["Notices-eu-west-1"]
    [rule] = notice_rules(there).values()
    [target] = rule["Targets"]

    assert "EventBusName" not in rule
    assert target["Arn"] == {
        "Fn::Join": [
            "",
            [
                "arn:",
                {"Ref": "AWS::Partition"},
                ":events:us-east-1:123456789012:event-bus/wm-prod-events",
            ],
        ]
    }
    assert "RoleArn" in target


def test_notices_are_heard_on_both_buses_where_some_are_forwarded(
    stacks: dict[str, Template],
) -> None:
    rules = notice_rules(stacks["WorkerManager"])

    assert rules.keys() == {"wm-prod-notices-aws", "wm-prod-notices-aws-forwarded"}
    here, forwarded = rules["wm-prod-notices-aws"], rules["wm-prod-notices-aws-forwarded"]
    assert "Ref" in forwarded["EventBusName"]
    assert forwarded["EventPattern"] == here["EventPattern"]
    assert forwarded["Targets"][0]["Arn"] == here["Targets"][0]["Arn"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"region": None}, "account and region"),
        ({"account": None}, "account and region"),
        ({"region": "eu-west-1"}, "besides our own"),
    ],
)
def test_regions_that_cannot_be_forwarded_are_refused(
    change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(PROD, **change)
