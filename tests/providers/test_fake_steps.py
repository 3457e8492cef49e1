"""What the fakes that work in steps add to the contract: control over what comes late."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.providers.orders import OREGON, an_order, worker_of
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    OutOfCapacityError,
    ThrottledError,
)
from worker_manager.core.model import MachineStatus
from worker_manager.providers.fake_slow import OverflowingStoreError
from worker_manager.providers.fake_steps import Part
from worker_manager.providers.protocol import Failed, Made, Pending

if TYPE_CHECKING:
    from tests.providers.stages import NamingStage

MINUTE = timedelta(minutes=1)
NONE_LEFT = OutOfCapacityError("none left")


@pytest.fixture
def slow(naming: NamingStage) -> NamingStage:
    """A machine takes a minute to be made, and is in no list before."""
    naming.cloud.creation_time = MINUTE
    naming.cloud.is_hidden = True
    return naming


def test_names_are_known_before_anything_is_asked(slow: NamingStage) -> None:
    named = slow.provider.machines(an_order(count=3))
    assert slow.provider.calls == []

    launched = slow.provider.launch(an_order(count=3, only=frozenset({named[1].key.worker_id})))

    assert [machine.key for machine in launched.machines] == [named[1].key]
    assert launched.machines[0].identity == named[1].identity


def test_a_creation_goes_its_way_from_record_to_machine(slow: NamingStage) -> None:
    (machine,) = slow.provider.launch(an_order(count=1)).machines
    worker = worker_of(machine)
    assert isinstance(slow.provider.follow(OREGON, [worker])[machine.key], Pending)
    found = slow.provider.lookup(OREGON, [worker])[machine.key]
    assert found is not None
    assert found.status is MachineStatus.PENDING
    assert list(slow.provider.instances(OREGON)) == []
    assert len(slow.cloud.records["records"]) == 1

    slow.pass_time(MINUTE)

    assert isinstance(slow.provider.follow(OREGON, [worker])[machine.key], Made)
    assert slow.cloud.records["records"] == {}
    assert len(list(slow.provider.instances(OREGON))) == 1


@pytest.mark.parametrize("stays", [False, True])
def test_a_creation_fails_with_or_without_a_machine(slow: NamingStage, stays: bool) -> None:
    slow.cloud.fail_next(NONE_LEFT, stays=stays)
    (machine,) = slow.provider.launch(an_order(count=1)).machines
    slow.pass_time(MINUTE)
    worker = worker_of(machine)

    assert slow.provider.follow(OREGON, [worker])[machine.key] == Failed(NONE_LEFT)
    found = slow.provider.lookup(OREGON, [worker])[machine.key]
    assert found is not None
    assert (found.failure, found.status is MachineStatus.GONE) == (NONE_LEFT, not stays)
    assert len(slow.cloud.alive()) == stays


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (Part(throttled=2), ThrottledError),
        (Part(unknown=2, acted=True), CloudUnavailableError),
        (Part(throttled=1, unknown=1), ThrottledError),
    ],
)
def test_an_answer_without_any_machine_is_an_error(
    slow: NamingStage, part: Part, error: type[CloudError]
) -> None:
    slow.provider.partly.append(part)
    with pytest.raises(error):
        slow.provider.launch(an_order())

    assert len(slow.cloud.machines) == part.unknown * part.acted
    assert len(slow.provider.launch(an_order()).machines) == 2


def test_a_gone_machine_that_is_asked_for_again_is_made_again_and_that_is_seen(
    slow: NamingStage,
) -> None:
    (machine,) = slow.provider.launch(an_order(count=1)).machines
    slow.provider.launch(an_order(count=1))
    assert slow.cloud.remade == []

    slow.vanish(machine.key)
    slow.provider.launch(an_order(count=1))

    assert slow.cloud.remade == [machine.key]


def test_a_store_that_overflows_is_no_error_that_could_be_caught_as_the_clouds(
    slow: NamingStage,
) -> None:
    slow.cloud.most = 2
    slow.provider.launch(an_order(order_id="o-1"))

    with pytest.raises(OverflowingStoreError):
        slow.provider.launch(an_order(order_id="o-2"))


def test_parts_outlive_their_machine_until_they_are_removed(slow: NamingStage) -> None:
    slow.cloud.outliving = frozenset({"nic"})
    (machine,) = slow.provider.launch(an_order(count=1)).machines
    slow.pass_time(MINUTE)
    slow.provider.follow(OREGON, [worker_of(machine)])
    assert list(slow.provider.leftovers(OREGON)) == []
    slow.vanish(machine.key)

    (leftover,) = slow.provider.leftovers(OREGON)
    assert (leftover.kind, leftover.worker) == ("nic", machine.key)

    slow.provider.remove(OREGON, [leftover])
    assert list(slow.provider.leftovers(OREGON)) == []
