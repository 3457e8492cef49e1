"""What flows between functions, and what becomes of messages that nobody can handle."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.settings import STAGES, StageSettings
from tests.infra.stack.reading import environment, function, names, of_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Template = dict[str, Any]

README = Path(__file__).resolve().parents[3] / "README.md"


def _queues(template: Template) -> dict[str, dict[str, Any]]:
    found = of_type(template, "AWS::SQS::Queue").values()
    return {queue["QueueName"].split("-", 2)[2]: queue for queue in found}


def _schedules(template: Template) -> dict[str, dict[str, Any]]:
    return {
        rule["Name"].split("-", 2)[2]: rule
        for rule in of_type(template, "AWS::Events::Rule").values()
        if "ScheduleExpression" in rule
    }


def explained(section: str) -> set[str]:
    """Names of which a section of the README has a paragraph or sentence of their own."""
    text = README.read_text().partition(f"\n### {section}\n")[2].partition("\n#")[0]
    return set(re.findall(r"\*\*`([^`]+)`\*\*", text))


def of_any_provider(names: Iterable[str]) -> set[str]:
    """Names as the README has them, where ``-aws`` stands for the provider id."""
    return {re.sub(r"-(azure|google)\b", "-aws", name) for name in names}


def test_the_readme_explains_every_queue_by_its_name(full_template: Template) -> None:
    assert explained("Queues") == of_any_provider(_queues(full_template))


def test_the_readme_explains_every_function_by_its_name(full_template: Template) -> None:
    assert explained("Functions") == of_any_provider(names(full_template)) | {"observe"}


def test_the_readme_explains_every_schedule_by_its_name(local_template: Template) -> None:
    assert explained("Schedules") == of_any_provider(_schedules(local_template)) | {"observe"}


def test_a_taskcluster_queue_is_looked_at_where_it_tells_nothing_by_itself(
    prod_template: Template, template_of: Callable[[StageSettings], Template]
) -> None:
    told = template_of(replace(STAGES["prod"], queue_backend="events"))

    assert _schedules(prod_template)["observe"]["ScheduleExpression"] == "rate(5 minutes)"
    assert function(prod_template, "observe")["Timeout"] < 300
    assert "observe" not in names(told)
    assert environment(told, "registry-api")["WM_QUEUE_BACKEND"] == "events"


def test_ends_of_workers_and_nothing_else_are_told_to_whoever_resolves_their_claims(
    local_template: Template,
) -> None:
    [rule] = [
        found
        for found in of_type(local_template, "AWS::Events::Rule").values()
        if found["Name"] == "wm-local-worker-gone"
    ]

    assert rule["EventPattern"] == {
        "source": ["worker-manager"],
        "detail-type": ["worker-stopped", "worker-removed"],
    }


def test_pools_are_worked_on_side_by_side_and_each_in_order(local_template: Template) -> None:
    for name in ("provision-aws.fifo", "scan-aws.fifo", "scan-google.fifo"):
        queue = _queues(local_template)[name]
        assert queue["FifoQueue"] is True
        assert queue["ContentBasedDeduplication"] is False
        assert queue["DeduplicationScope"] == "messageGroup"
        assert queue["FifoThroughputLimit"] == "perMessageGroupId"
        assert queue["MessageRetentionPeriod"] == 300
        assert queue["RedrivePolicy"]["maxReceiveCount"] == 3


def test_a_message_stays_hidden_longer_than_its_function_may_run(
    full_template: Template,
) -> None:
    queues = of_type(full_template, "AWS::SQS::Queue")
    functions = of_type(full_template, "AWS::Lambda::Function")
    mappings = of_type(full_template, "AWS::Lambda::EventSourceMapping").values()

    assert len(mappings) == 19
    for mapping in mappings:
        queue = queues[mapping["EventSourceArn"]["Fn::GetAtt"][0]]
        function = functions[mapping["FunctionName"]["Ref"]]
        assert queue["VisibilityTimeout"] > function["Timeout"]


BATCHES = {
    "wm-local-advance-aws": 10,
    "wm-local-advance-azure": 10,
    "wm-local-advance-google": 10,
    "wm-local-notices-aws": 100,
    "wm-local-pulse": 10,
    "wm-local-worker-gone": 10,
}


def test_one_message_fails_without_its_neighbours(full_template: Template) -> None:
    functions = of_type(full_template, "AWS::Lambda::Function")
    for mapping in of_type(full_template, "AWS::Lambda::EventSourceMapping").values():
        name = functions[mapping["FunctionName"]["Ref"]]["FunctionName"]
        assert mapping["BatchSize"] == BATCHES.get(name, 1)
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["ScalingConfig"]["MaximumConcurrency"] >= 2


def test_nothing_is_lost_for_good_without_a_trace(full_template: Template) -> None:
    queues = _queues(full_template)
    assert queues["advance-aws"]["RedrivePolicy"]["maxReceiveCount"] == 5
    assert queues["advance-aws-dead"]["MessageRetentionPeriod"] == 14 * 86_400

    on_our_bus = [
        target
        for rule in of_type(full_template, "AWS::Events::Rule").values()
        if "EventPattern" in rule
        for target in rule["Targets"]
    ]
    assert on_our_bus
    assert all("DeadLetterConfig" in target for target in on_our_bus)


def test_dead_letters_of_a_fifo_queue_are_fifo(local_template: Template) -> None:
    for name, queue in _queues(local_template).items():
        if name.endswith("-dead.fifo"):
            assert queue["FifoQueue"] is True


def test_the_clock_calls_ticks_each_minute_and_sweeps_less_often(
    local_template: Template,
) -> None:
    schedules = _schedules(local_template)

    of_loops = {"provision-tick": "1 minute", "scan-tick": "1 minute", "sweep": "5 minutes"}
    assert {name: rule["ScheduleExpression"] for name, rule in schedules.items()} == {
        **{
            f"{name}-{provider_id}": f"rate({rate})"
            for name, rate in of_loops.items()
            for provider_id in ("aws", "azure", "google")
        },
        "publish": "rate(1 minute)",
        "act": "rate(1 minute)",
        "examine": "rate(1 minute)",
        "expire": "rate(1 hour)",
    }
    assert all(rule["State"] == {"Ref": "Schedules"} for rule in schedules.values())


def test_a_lost_call_of_the_clock_is_not_made_up_for(local_template: Template) -> None:
    configured = of_type(local_template, "AWS::Lambda::EventInvokeConfig").values()

    assert len(configured) == 13
    assert all(found["MaximumRetryAttempts"] == 0 for found in configured)


def test_a_sweep_is_over_before_the_next_begins(local_template: Template) -> None:
    for name in ("sweep-aws", "sweep-azure", "sweep-google"):
        assert function(local_template, name)["Timeout"] < 300
