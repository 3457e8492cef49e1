"""What clouds of regions promise besides: one call an order, machines recognised by their ids.

Where to read next: ``test_contract`` (what all promise).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.providers.orders import INPUTS, NOW, OREGON, OTHER_DEPLOYMENT, VIRGINIA, worker_of
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NotAuthorizedError,
    ThrottledError,
)
from worker_manager.core.model import LaunchConfigHead, MachineStatus
from worker_manager.providers.fake import Method
from worker_manager.providers.protocol import Recognises

if TYPE_CHECKING:
    from tests.providers.contract import Stage
    from worker_manager.core.model import Location, Sighting, WorkerKey
    from worker_manager.providers.protocol import CloudProvider


def listed(stage: Stage) -> dict[WorkerKey, Sighting]:
    return {seen.key: seen for seen in stage.provider.instances(OREGON)}


def recognised(
    provider: CloudProvider, *worker_ids: str, location: Location = OREGON
) -> dict[WorkerKey, MachineStatus]:
    assert isinstance(provider, Recognises)
    return {one.key: one.status for one in provider.recognise(location, worker_ids)}


def test_what_the_launch_said_of_a_machine_is_what_the_list_says(whole_stage: Stage) -> None:
    launched = whole_stage.provider.launch(whole_stage.order())
    seen = listed(whole_stage)
    for machine in launched.machines:
        assert machine.identity["privateIp"]
        assert seen[machine.key].identity == machine.identity


def test_an_orders_id_with_other_content_launches_nothing_more(whole_stage: Stage) -> None:
    whole_stage.provider.launch(whole_stage.order())
    with pytest.raises(CloudUnavailableError) as caught:
        whole_stage.provider.launch(whole_stage.order(count=3))
    assert caught.value.code == "IdempotentParameterMismatch"
    assert len(listed(whole_stage)) == 2


def test_a_partial_order_stays_partial_when_repeated(whole_stage: Stage) -> None:
    whole_stage.allow(1)
    first = whole_stage.provider.launch(whole_stage.order(count=3))
    whole_stage.allow(100)
    second = whole_stage.provider.launch(whole_stage.order(count=3))
    assert [one.key for one in second.machines] == [one.key for one in first.machines]
    assert second.refused == 2


def test_a_list_may_learn_late_of_a_launch(whole_stage: Stage) -> None:
    whole_stage.hide_new_machines(timedelta(seconds=30))
    launched = whole_stage.provider.launch(whole_stage.order())
    workers = [worker_of(one) for one in launched.machines]
    assert not listed(whole_stage)
    assert set(whole_stage.provider.lookup(whole_stage.location, workers).values()) == {None}
    whole_stage.pass_time(timedelta(seconds=31))
    assert len(listed(whole_stage)) == 2


def test_a_location_lists_its_own_machines_only(whole_stage: Stage) -> None:
    whole_stage.provider.launch(whole_stage.order())
    whole_stage.provider.launch(whole_stage.order(order_id="wm-east", location=VIRGINIA, count=1))
    assert len(listed(whole_stage)) == 2
    assert len(list(whole_stage.provider.instances(VIRGINIA))) == 1


def test_workers_of_several_locations_are_terminated_in_one_go(whole_stage: Stage) -> None:
    here = whole_stage.provider.launch(whole_stage.order(count=1)).machines
    there = whole_stage.provider.launch(
        whole_stage.order(order_id="wm-east", location=VIRGINIA, count=1)
    ).machines
    assert len(whole_stage.provider.terminate([worker_of(one) for one in here + there]).done) == 2
    assert not listed(whole_stage)
    assert not list(whole_stage.provider.instances(VIRGINIA))


def test_the_locations_of_launch_configs_are_where_their_machines_are_listed(
    whole_stage: Stage,
) -> None:
    head = LaunchConfigHead("lc-1", OREGON, {}, 1, NOW)
    heads = [head, replace(head, launch_config_id="lc-2", location=VIRGINIA), head]
    assert whole_stage.provider.locations(heads) == {OREGON, VIRGINIA}
    assert whole_stage.provider.locations([]) == frozenset()


def test_our_machines_are_recognised_by_id_among_those_of_others_and_of_nobody(
    whole_stage: Stage,
) -> None:
    (ours, _) = whole_stage.provider.launch(whole_stage.order()).machines
    order = whole_stage.order(
        order_id="wm-theirs", inputs={**INPUTS, "deployment": OTHER_DEPLOYMENT}
    )
    (theirs, _) = whole_stage.elsewhere.launch(order).machines
    ids = (whole_stage.absent.key.worker_id, theirs.key.worker_id, ours.key.worker_id)

    assert recognised(whole_stage.provider, *ids) == {ours.key: MachineStatus.RUNNING}
    assert recognised(whole_stage.provider, *ids, location=VIRGINIA) == {}


def test_a_machine_that_is_gone_is_recognised_as_long_as_the_cloud_knows_it(
    whole_stage: Stage,
) -> None:
    (machine, _) = whole_stage.provider.launch(whole_stage.order()).machines
    whole_stage.provider.terminate([worker_of(machine)])
    whole_stage.pass_time(timedelta(minutes=5))

    assert recognised(whole_stage.provider, machine.key.worker_id) == {
        machine.key: MachineStatus.GONE
    }


@pytest.mark.parametrize("error", [ThrottledError, CloudUnavailableError, NotAuthorizedError])
def test_recognising_fails_in_our_words(whole_stage: Stage, error: type[CloudError]) -> None:
    whole_stage.refuse(Method.RECOGNISE, error)
    with pytest.raises(error):
        recognised(whole_stage.provider, whole_stage.absent.key.worker_id)
