"""Each function has a role of its own with only what it needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.local.template import referred_to
from tests.infra.stack.reading import (
    actions,
    allowed,
    environment,
    names,
    of_type,
    resources,
    statements,
)

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem")

Template = dict[str, Any]


def test_every_function_has_a_role_of_its_own(template: Template) -> None:
    functions = of_type(template, "AWS::Lambda::Function").values()

    roles = [json.dumps(function["Role"]) for function in functions]

    assert len(set(roles)) == len(roles) == 28
    assert not any(
        role.get("ManagedPolicyArns") for role in of_type(template, "AWS::IAM::Role").values()
    )


def test_no_statement_is_broader_than_it_must_be(template: Template) -> None:
    broad = [
        (name, actions(found))
        for name in names(template)
        for found in statements(template, name)
        if "*" in resources(found) or any(action.endswith("*") for action in actions(found))
    ]

    assert {action for _, found in broad for action in found} == {
        "ec2:DescribeInstances",
        "ec2:DescribeVolumes",
    }


def test_a_function_may_use_exactly_the_tables_it_is_told_of(template: Template) -> None:
    for name in names(template):
        told = {
            value["Ref"]
            for variable, value in environment(template, name).items()
            if variable.startswith("WM_TABLE_")
        }
        may_use = {
            table
            for found in statements(template, name)
            if any(action.startswith("dynamodb:") for action in actions(found))
            for table in referred_to(found["Resource"])
        }
        assert may_use == told, name


def test_the_function_for_machines_writes_nothing_of_a_pool_but_its_audit_trail(
    template: Template,
) -> None:
    pools = environment(template, "workers-api")["WM_TABLE_POOLS"]["Ref"]
    [put] = [
        found
        for found in statements(template, "workers-api")
        if pools in referred_to(found["Resource"])
        and any(action.removeprefix("dynamodb:") in WRITES for action in actions(found))
    ]

    assert actions(put) == ["dynamodb:PutItem"]
    assert put["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "*#audit"}}


def test_functions_that_quarantine_workers_touch_no_provider_but_the_outbox(
    template: Template,
) -> None:
    for name in ("registry-api", "queue-api", "act"):
        providers = environment(template, name)["WM_TABLE_PROVIDERS"]["Ref"]
        [found] = [
            found
            for found in statements(template, name)
            if providers in referred_to(found["Resource"])
            and any(action.removeprefix("dynamodb:") in WRITES for action in actions(found))
        ]

        assert set(actions(found)) == {"dynamodb:PutItem", "dynamodb:DeleteItem"}
        assert found["Condition"] == {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": "#outbox"}
        }


def test_only_our_own_queue_and_who_hears_of_ends_change_tasks(template: Template) -> None:
    tasks = environment(template, "queue-api")["WM_TABLE_QUEUE"]["Ref"]
    touching = {
        name
        for name in names(template)
        for found in statements(template, name)
        if tasks in referred_to(found["Resource"])
    }

    assert touching == {"queue-api", "worker-gone"}


def test_a_function_may_send_only_to_the_queues_it_is_told_of(template: Template) -> None:
    for name in names(template):
        variables = environment(template, name)
        told = {
            word
            for variable, value in variables.items()
            if variable.startswith("WM_QUEUE") and variable != "WM_QUEUE_ROOT_URL"
            for word in _references(value)
        }
        may_use = {
            queue
            for found in statements(template, name)
            if "sqs:SendMessage" in actions(found)
            for queue in referred_to(found["Resource"])
        }
        assert may_use == told, name


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["Ref"]} if "Ref" in value else set()
        return found.union(*(_references(inner) for inner in value.values()))
    if isinstance(value, list):
        return set().union(*(_references(inner) for inner in value))
    return set()


def test_only_functions_of_aws_touch_ec2(template: Template) -> None:
    touching = {
        name
        for name in names(template)
        if any(action.startswith(("ec2:", "iam:")) for action in allowed(template, name))
    }

    assert all(name.endswith("-aws") for name in touching)
    assert "sweep-aws" in touching


def test_nobody_scans_a_table(template: Template) -> None:
    assert not any("dynamodb:Scan" in allowed(template, name) for name in names(template))


def test_only_provision_launches_and_it_terminates_nothing(template: Template) -> None:
    launching = [name for name in names(template) if "ec2:RunInstances" in allowed(template, name)]

    assert launching == ["provision-pool-aws"]
    assert "ec2:TerminateInstances" not in allowed(template, "provision-pool-aws")


@pytest.mark.parametrize(
    ("action", "functions"),
    [
        ("ec2:TerminateInstances", ("scan-pool-aws", "advance-aws", "notices-aws")),
        ("ec2:RebootInstances", ("advance-aws",)),
        ("ec2:DeleteVolume", ("sweep-aws",)),
    ],
)
def test_only_what_has_our_tag_can_be_taken_away_or_rebooted(
    template: Template, action: str, functions: tuple[str, ...]
) -> None:
    for name in functions:
        [found] = [found for found in statements(template, name) if action in actions(found)]
        assert set(actions(found)) <= {"ec2:TerminateInstances", "ec2:RebootInstances", action}
        assert found["Condition"] == {
            "StringEquals": {"aws:ResourceTag/worker-manager:deployment": "worker-manager-local"}
        }


def test_a_machine_is_launched_only_with_our_tag(template: Template) -> None:
    launches = [
        found
        for found in statements(template, "provision-pool-aws")
        if "ec2:RunInstances" in actions(found)
    ]
    unconditioned = [found for found in launches if "Condition" not in found]

    assert not any(
        ":instance/*" in json.dumps(found) or ":volume/*" in json.dumps(found)
        for found in unconditioned
    )
    assert {
        "StringEquals": {"aws:RequestTag/worker-manager:deployment": "worker-manager-local"}
    } in [found.get("Condition") for found in launches]


def test_no_role_can_be_passed_to_machines_unless_settings_name_it(
    template: Template,
) -> None:
    assert not any("iam:PassRole" in allowed(template, name) for name in names(template))


def test_an_instance_role_in_the_settings_may_be_passed_to_machines_only(
    prod_template: Template,
) -> None:
    [found] = [
        found
        for found in statements(prod_template, "provision-pool-aws")
        if "iam:PassRole" in actions(found)
    ]

    assert resources(found) == ["arn:aws:iam::123456789012:role/worker"]
    assert found["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def test_each_function_writes_only_to_its_own_log(template: Template) -> None:
    groups = of_type(template, "AWS::Logs::LogGroup")

    for name in names(template):
        [found] = [
            found for found in statements(template, name) if "logs:PutLogEvents" in actions(found)
        ]
        [group] = referred_to(found["Resource"])
        assert groups[group]["LogGroupName"] == f"/aws/lambda/wm-local-{name}"
