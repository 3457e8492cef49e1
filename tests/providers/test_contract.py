"""What every provider promises, over the fake and every cloud.

Where to read next: ``test_contract_of_regions``, ``test_contract_of_steps``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.providers.orders import (
    INPUTS,
    OTHER_DEPLOYMENT,
    worker_of,
)
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    NotReachedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.core.model import MachineStatus
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    from tests.providers.contract import Stage
    from worker_manager.core.model import Sighting, WorkerKey
    from worker_manager.providers.protocol import CloudProvider


def listed(stage: Stage) -> dict[WorkerKey, Sighting]:
    return {seen.key: seen for seen in stage.provider.instances(stage.location)}


def test_a_launched_machine_is_listed_with_all_that_says_where_it_came_from(stage: Stage) -> None:
    launched = stage.provider.launch(stage.order())
    assert launched.refused == 0
    assert launched.error is None
    seen = listed(stage)
    assert seen.keys() == {machine.key for machine in launched.machines}
    assert len(seen) == 2
    for sighting in seen.values():
        assert sighting.key.pool_id == "proj/linux"
        assert sighting.key.group == stage.group
        assert sighting.location == stage.location
        assert sighting.launch_config_id == "lc-6350aa384f6ab04fc4d1"
        assert sighting.order_id == "wm-0123456789abcdef"
        assert sighting.status is MachineStatus.RUNNING
        assert sighting.launched is not None
        assert sighting.launched.tzinfo is not None


def test_launching_one_order_twice_gives_one_set_of_machines(stage: Stage) -> None:
    """S8, B52: the order's id makes a repetition harmless."""
    first = stage.provider.launch(stage.order())
    second = stage.provider.launch(stage.order())
    assert {machine.key for machine in first.machines} == {one.key for one in second.machines}
    assert len(listed(stage)) == 2


def test_another_order_gives_other_machines(stage: Stage) -> None:
    stage.provider.launch(stage.order())
    stage.provider.launch(stage.order(order_id="wm-fedcba9876543210"))
    assert len(listed(stage)) == 4


def test_an_order_whose_answer_was_lost_can_be_repeated(stage: Stage) -> None:
    """S8: the machines exist; the repetition finds them instead of launching more."""
    stage.lose_answer(Method.LAUNCH)
    with pytest.raises(CloudUnavailableError):
        stage.provider.launch(stage.order())
    again = stage.provider.launch(stage.order())
    assert len(again.machines) == 2
    assert listed(stage).keys() == {machine.key for machine in again.machines}


def test_fewer_machines_than_ordered_is_a_result(stage: Stage) -> None:
    """B40: seven of ten are seven machines and three refused, not a failed order."""
    stage.allow(7)
    launched = stage.provider.launch(stage.order(count=10))
    assert (len(launched.machines), launched.refused) == (7, 3)
    assert isinstance(launched.error, OutOfCapacityError)
    assert len(listed(stage)) == 7


def test_no_room_at_all_is_an_error_and_a_later_attempt_may_succeed(stage: Stage) -> None:
    stage.allow(0)
    with pytest.raises(OutOfCapacityError):
        stage.provider.launch(stage.order())
    stage.allow(2)
    assert len(stage.provider.launch(stage.order()).machines) == 2


def test_one_failing_launch_config_does_not_stop_the_others(stage: Stage) -> None:
    """S6: an order stands for itself."""
    stage.refuse(Method.LAUNCH, InvalidLaunchConfigError)
    with pytest.raises(InvalidLaunchConfigError):
        stage.provider.launch(stage.order(order_id="wm-1", launch_config_id="lc-bad"))
    assert len(stage.provider.launch(stage.order(order_id="wm-2")).machines) == 2


def test_terminating_twice_is_fine(stage: Stage) -> None:
    workers = [worker_of(one) for one in stage.provider.launch(stage.order()).machines]
    keys = {worker.key for worker in workers}
    for _ in range(2):
        terminated = stage.provider.terminate(workers)
        assert terminated.done == keys
        assert not terminated.failed
    assert not listed(stage)


def test_terminating_what_is_gone_counts_as_done(stage: Stage) -> None:
    gone, alive = (worker_of(one) for one in stage.provider.launch(stage.order()).machines)
    stage.vanish(gone.key)
    assert stage.provider.terminate([gone, alive, stage.absent]).done == {
        gone.key,
        alive.key,
        stage.absent.key,
    }
    assert not listed(stage)


def test_a_termination_whose_answer_was_lost_can_be_repeated(stage: Stage) -> None:
    workers = [worker_of(one) for one in stage.provider.launch(stage.order()).machines]
    stage.lose_answer(Method.TERMINATE)
    with suppress(CloudUnavailableError):
        assert stage.provider.terminate(workers).failed
    assert len(stage.provider.terminate(workers).done) == 2


def test_a_stopped_machine_is_seen_stopped_and_can_be_terminated(stage: Stage) -> None:
    """B27: powered off is neither running nor gone."""
    first, second = stage.provider.launch(stage.order()).machines
    stage.stop(first.key)
    seen = listed(stage)
    assert seen[first.key].status is MachineStatus.STOPPED
    assert seen[second.key].status is MachineStatus.RUNNING
    stage.provider.terminate([worker_of(first)])
    assert listed(stage).keys() == {second.key}


def test_a_gone_machine_is_none_and_spoils_nothing_for_the_others(stage: Stage) -> None:
    first, second, third = stage.provider.launch(stage.order(count=3)).machines
    stage.vanish(first.key)
    stage.provider.terminate([worker_of(second)])
    workers = [worker_of(one) for one in (first, second, third)]
    found = stage.provider.lookup(stage.location, [*workers, stage.absent])
    assert found.keys() == {first.key, second.key, third.key, stage.absent.key}
    assert {key for key, seen in found.items() if seen is not None} == {third.key}
    sighting = found[third.key]
    assert sighting is not None
    assert sighting.status is MachineStatus.RUNNING


def test_a_lookup_that_fails_is_an_error_and_never_says_gone(stage: Stage) -> None:
    """B37: an outage is not an absence."""
    (machine,) = stage.provider.launch(stage.order(count=1)).machines
    stage.refuse(Method.LOOKUP, CloudUnavailableError)
    with pytest.raises(CloudUnavailableError):
        stage.provider.lookup(stage.location, [worker_of(machine)])


def test_a_list_that_fails_is_an_error_and_never_an_end(stage: Stage) -> None:
    stage.provider.launch(stage.order())
    stage.refuse(Method.INSTANCES, CloudUnavailableError)
    with pytest.raises(CloudUnavailableError):
        list(stage.provider.instances(stage.location))


def test_machines_of_another_deployment_are_never_listed(stage: Stage) -> None:
    theirs = stage.order(order_id="wm-theirs", inputs={**INPUTS, "deployment": OTHER_DEPLOYMENT})
    stage.elsewhere.launch(theirs)
    assert not listed(stage)
    stage.provider.launch(stage.order(count=1))
    assert len(listed(stage)) == 1
    assert len(list(stage.elsewhere.instances(stage.location))) == 2


LAUNCH_ERRORS = (
    OutOfCapacityError,
    QuotaExceededError,
    InvalidLaunchConfigError,
    ThrottledError,
    CloudUnavailableError,
    NotAuthorizedError,
)


@pytest.mark.parametrize("error", LAUNCH_ERRORS)
def test_a_refused_launch_raises_our_error_and_launches_nothing(
    stage: Stage, error: type[CloudError]
) -> None:
    """B50: each kind of refusal has its own error."""
    stage.refuse(Method.LAUNCH, error)
    with pytest.raises(CloudError) as caught:
        stage.provider.launch(stage.order())
    assert type(caught.value) is error
    assert not listed(stage)


def ask(stage: Stage, method: Method, provider: CloudProvider) -> object:
    match method:
        case Method.INSTANCES:
            return list(provider.instances(stage.location))
        case Method.LOOKUP:
            return provider.lookup(stage.location, [stage.absent])
        case Method.TERMINATE:
            (failed,) = provider.terminate([stage.absent]).failed.values()
            raise failed
        case _:
            return provider.launch(stage.order())


@pytest.mark.parametrize(
    "method", [Method.INSTANCES, Method.LOOKUP, Method.LAUNCH, Method.TERMINATE]
)
@pytest.mark.parametrize("error", [ThrottledError, CloudUnavailableError, NotAuthorizedError])
def test_each_call_fails_in_our_words(
    stage: Stage, method: Method, error: type[CloudError]
) -> None:
    stage.refuse(method, error)
    with pytest.raises(CloudError) as caught:
        ask(stage, method, stage.provider)
    assert type(caught.value) is error
    assert caught.value.kind == error.kind


@pytest.mark.parametrize("method", [Method.LAUNCH, Method.INSTANCES])
def test_who_waits_in_vain_gives_up_in_time_and_claims_to_know_nothing(
    stage: Stage, method: Method
) -> None:
    """S4: a cloud that does not answer costs a timeout; what it did is for the next look."""
    provider = stage.impatient
    stage.hang(method)
    with pytest.raises(CloudUnavailableError) as caught:
        ask(stage, method, provider)
    assert not isinstance(caught.value, NotReachedError)
    assert len(stage.provider.launch(stage.order()).machines) == 2
    assert len(listed(stage)) == 2
