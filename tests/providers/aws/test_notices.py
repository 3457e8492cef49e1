"""EC2's events, read as notices; and whose instances they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.events import a_bus_event, an_ec2_notice
from tests.providers.orders import OREGON, an_order
from worker_manager.core.model import MachineStatus
from worker_manager.core.notices import Notice
from worker_manager.providers.aws.notices import STATES, read_notice

if TYPE_CHECKING:
    from tests.providers.stages import Ec2Stage

INSTANCE = "i-0123456789abcdef0"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("shutting-down", MachineStatus.STOPPING),
        ("terminated", MachineStatus.GONE),
        ("stopping", MachineStatus.STOPPED),
        ("stopped", MachineStatus.STOPPED),
        (None, None),
    ],
)
def test_a_change_of_state_and_a_warning_are_notices(
    state: str | None, status: MachineStatus | None
) -> None:
    event = an_ec2_notice(INSTANCE, state, region=OREGON)

    assert read_notice(event) == Notice(event["id"], OREGON, INSTANCE, status)


def test_every_state_that_is_asked_for_can_be_read() -> None:
    for state in STATES:
        assert read_notice(an_ec2_notice(INSTANCE, state)).status is not None


@pytest.mark.parametrize(
    "event",
    [
        {},
        a_bus_event("worker-stopped", {}),
        {**an_ec2_notice(INSTANCE, "terminated"), "detail": {"state": "terminated"}},
        an_ec2_notice(INSTANCE, "hovering"),
    ],
)
def test_an_event_that_was_not_asked_for_is_refused(event: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        read_notice(event)


def test_any_number_of_ids_is_asked_for_200_at_a_time(ec2: Ec2Stage) -> None:
    launched = ec2.provider.launch(an_order())
    ids = [f"i-{number:017x}" for number in range(399)]
    ids[250:250] = [machine.key.worker_id for machine in launched.machines]
    before = ec2.cloud.calls_of("DescribeInstances")

    found = ec2.provider.recognise(OREGON, ids)

    assert {one.key for one in found} == {machine.key for machine in launched.machines}
    assert ec2.cloud.calls_of("DescribeInstances") - before == 3
