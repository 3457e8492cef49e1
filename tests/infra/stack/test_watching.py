"""Alarms and dashboard, against what functions write and what the README says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import worker_manager.metrics
from infra.settings import STAGES, PulseSettings, StageSettings
from tests.infra.stack.reading import environment, of_type

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]

README = Path(__file__).resolve().parents[3] / "README.md"
WRITTEN = set(re.findall(r'"([A-Z][A-Za-z]+)"', Path(worker_manager.metrics.__file__).read_text()))


@pytest.fixture(scope="module")
def watched(template_of: Callable[[StageSettings], Template]) -> Template:
    settings = replace(
        STAGES["dev"],
        alarm_email="operators@example.com",
        pulse=PulseSettings(url="amqps://pulse.example"),
    )
    return template_of(settings)


def alarms(template: Template) -> dict[str, dict[str, Any]]:
    return {
        alarm["AlarmName"].removeprefix("wm-dev-alarm-"): alarm
        for inner in template["Inner"]
        for alarm in of_type(inner, "AWS::CloudWatch::Alarm").values()
    }


def page(template: Template) -> str:
    [dashboard] = of_type(template, "AWS::CloudWatch::Dashboard").values()
    return json.dumps(dashboard["DashboardBody"])


def test_each_queue_of_dead_letters_is_watched(watched: Template) -> None:
    dead = {
        queue["QueueName"]
        for queue in of_type(watched, "AWS::SQS::Queue").values()
        if "-dead" in queue["QueueName"]
    }

    on_queues = {
        alarm["Dimensions"][0]["Value"]
        for name, alarm in alarms(watched).items()
        if name.startswith("dead-letters-")
    }

    assert on_queues == dead
    assert dead


def test_what_must_not_go_unnoticed_has_an_alarm(watched: Template) -> None:
    assert {
        "faults-1",
        "failing-expire",
        "failing-publish",
        "dead-letters-worker-gone",
        "failing-pulse",
        "failing-mail",
        "failing-examine",
        "machine-outage-pools",
        "failing-sweep-aws",
        "no-ticks-provision-aws",
        "no-ticks-scan-aws",
        "provider-failing-aws",
        "stale-locations-aws",
        "crashes-aws",
        "breaker-storm-aws",
        "over-maximum-aws",
        "stuck-machines-aws",
        "leftovers-aws",
    } <= alarms(watched).keys()


def test_ticks_that_do_not_come_are_an_alarm_after_three_minutes(watched: Template) -> None:
    alarm = alarms(watched)["no-ticks-scan-aws"]

    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (60, 3)
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)


def test_alarms_go_to_whoever_the_stage_names(watched: Template) -> None:
    [subscription] = of_type(watched, "AWS::SNS::Subscription").values()
    [topic] = of_type(watched, "AWS::SNS::Topic")
    [inner] = of_type(watched, "AWS::CloudFormation::Stack").values()
    [told] = [name for name, value in inner["Parameters"].items() if value == {"Ref": topic}]

    assert (subscription["Protocol"], subscription["Endpoint"]) == (
        "email",
        "operators@example.com",
    )
    assert all(alarm["AlarmActions"] == [{"Ref": told}] for alarm in alarms(watched).values())


def test_cloudwatch_may_tell_the_topic(watched: Template) -> None:
    [policy] = of_type(watched, "AWS::SNS::TopicPolicy").values()
    allowed = [
        statement["Principal"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow" and statement["Action"] == "sns:Publish"
    ]

    assert allowed == [{"Service": "cloudwatch.amazonaws.com"}]


def test_alarms_ask_for_metrics_that_functions_write(watched: Template) -> None:
    ours = STAGES["dev"].deployment
    asked = {
        alarm["MetricName"] for alarm in alarms(watched).values() if alarm["Namespace"] == ours
    }

    assert asked <= WRITTEN
    assert environment(watched, "scan-tick-aws")["POWERTOOLS_METRICS_NAMESPACE"] == ours


def test_the_dashboard_shows_metrics_that_functions_write(watched: Template) -> None:
    asked = set(re.findall(r'"worker-manager-dev\\*",\\*"([A-Za-z]+)', page(watched)))

    assert {"RegistrationSeconds", "CloudThrottles", "InstancesLaunched", "Pools"} <= asked
    assert asked <= WRITTEN


def test_pools_numbers_are_summed_over_pools_however_often_they_tick(watched: Template) -> None:
    assert "pendingTasks * pools" in page(watched)


def test_every_kind_of_alarm_is_explained(watched: Template) -> None:
    explained = set(re.findall(r"^\| `([a-z-]+)-…` \|", README.read_text(), re.MULTILINE))
    kinds = {alarm["AlarmDescription"].rpartition(", ")[2] for alarm in alarms(watched).values()}

    assert explained == kinds


def test_pools_are_a_dimension_where_a_stage_pays_for_it(
    template_of: Callable[[StageSettings], Template], watched: Template
) -> None:
    by_pool = template_of(replace(STAGES["dev"], metrics_by_pool=True))

    assert environment(by_pool, "provision-pool-aws")["WM_METRICS_BY_POOL"] == "true"
    assert "WM_METRICS_BY_POOL" not in environment(watched, "provision-pool-aws")


def test_one_machine_writes_no_metrics(local_template: Template) -> None:
    assert "POWERTOOLS_METRICS_NAMESPACE" not in environment(local_template, "scan-tick-aws")
    assert alarms(local_template) == {}
