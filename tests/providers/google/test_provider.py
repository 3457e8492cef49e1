"""Launching, following, looking up and deleting, call by call."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.providers.google.wire import (
    PATH,
    PROJECT,
    ZONE,
    Answer,
    a_worker,
    an_order,
    instance,
    not_found,
    operation,
    refusal,
)
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.core.model import MachineStatus, State
from worker_manager.providers.google.launch import machine_name
from worker_manager.providers.protocol import Failed, Leftover, Made, Pending, Stepwise, Sweeps

if TYPE_CHECKING:
    from tests.providers.google.wire import Call, Wire

FULL = [("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone is full")]
NAMES = [machine_name(an_order(), index) for index in range(3)]
EXISTS = f"The resource '{PATH}/instances/{NAMES[0]}' already exists"
OURS = instance("42", name=NAMES[0])


def by_name(**answers: Answer) -> Any:
    """Answers inserts by the index of their machine (``m0``), everything else as unexpected."""

    def answer(call: Call) -> Answer:
        if call.method != "POST":
            return Answer(500, {})
        return answers[f"m{NAMES.index(call.body['name'])}"]

    return answer


def test_each_machine_is_one_insert_with_its_own_name_and_request_id(wire: Wire) -> None:
    wire.answer = by_name(m0=operation(target="40"), m1=operation(target="41"))
    launched = wire.provider().launch(an_order())

    assert [machine.key.worker_id for machine in launched.machines] == ["40", "41"]
    assert {machine.key.group for machine in launched.machines} == {ZONE}
    assert [dict(machine.identity) for machine in launched.machines] == [
        {"name": NAMES[0], "operation": "operation-40"},
        {"name": NAMES[1], "operation": "operation-41"},
    ]
    assert launched.follow_after == timedelta(seconds=10)
    assert {call.path for call in wire.calls} == {f"{PATH}/instances"}
    assert len({call.query["requestId"] for call in wire.calls}) == 2


def test_a_part_that_was_refused_late_or_at_once_is_a_refusal(wire: Wire) -> None:
    """B53: seen in the answer, it does not wait for anybody to follow it."""
    wire.answer = by_name(
        m0=operation(target="40"),
        m1=operation("DONE", target="41", errors=FULL),
        m2=refusal(403, "quotaExceeded", "Quota 'CPUS' exceeded."),
    )
    launched = wire.provider().launch(an_order(count=3))

    assert [machine.key.worker_id for machine in launched.machines] == ["40"]
    assert launched.refused == 2
    assert isinstance(launched.error, OutOfCapacityError)
    assert launched.unanswered is None


def test_a_failure_that_leaves_open_what_happened_is_followed_like_any_other(wire: Wire) -> None:
    wire.says(operation("DONE", errors=[("INTERNAL_ERROR", "oops")]))
    (machine,) = wire.provider().launch(an_order(count=1)).machines

    assert machine.identity["operation"] == "operation-42"


def test_a_machine_that_waits_is_asked_for_again_and_those_that_exist_are_not(wire: Wire) -> None:
    """Else a rate quota could be used up before the first missing machine, send after send."""
    provider = wire.provider()
    wire.answer = by_name(m0=operation(target="40"), m1=refusal(429, "rateLimitExceeded"))
    first = provider.launch(an_order())
    assert isinstance(first.unanswered, ThrottledError)
    assert len(first.machines) == 1

    wire.calls.clear()
    wire.answer = by_name(m1=operation(target="41"))
    second = provider.launch(an_order())
    assert second.unanswered is None
    assert {machine.key.worker_id for machine in second.machines} == {"40", "41"}
    assert [call.body["name"] for call in wire.calls] == [NAMES[1]]

    wire.calls.clear()
    wire.answer = by_name(m0=operation(target="40"), m1=operation(target="41"))
    provider.launch(an_order())
    assert len(wire.calls) == 2


def test_a_name_that_is_taken_by_the_order_itself_is_its_machine(wire: Wire) -> None:
    """S8: the request was forgotten, the machine was not."""
    wire.says(refusal(409, "alreadyExists", EXISTS), Answer(200, OURS))
    (machine,) = wire.provider().launch(an_order(count=1)).machines

    assert machine.key.worker_id == "42"
    assert machine.identity == {"name": NAMES[0]}
    assert wire.calls[1].path == f"{PATH}/instances/{NAMES[0]}"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([refusal(409, "alreadyExists", EXISTS), not_found("instances/x")], CloudUnavailableError),
        (
            [refusal(409, "alreadyExists", EXISTS), Answer(200, {**OURS, "labels": {}})],
            CloudUnavailableError,
        ),
        (
            [refusal(409, "alreadyExists", f"The resource '{PATH}/disks/d' already exists")],
            InvalidLaunchConfigError,
        ),
        ([refusal(404, "notFound", "image 'x' was not found")], InvalidLaunchConfigError),
        ([operation("DONE", target="0", errors=[("INTERNAL_ERROR", "x")])], CloudUnavailableError),
        ([Answer(0, "")], CloudUnavailableError),
    ],
)
def test_an_order_that_brought_nothing_says_why(
    wire: Wire, answers: list[Answer], expected: type[CloudError]
) -> None:
    wire.says(*answers)
    with pytest.raises(CloudError) as caught:
        wire.provider().launch(an_order(count=1))
    assert type(caught.value) is expected


FORGOTTEN = not_found("operations/operation-42")
UNKNOWN = not_found("instances/42")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([operation("RUNNING")], Pending(timedelta(seconds=20))),
        ([operation("PENDING")], Pending(timedelta(seconds=20))),
        ([operation("DONE")], Made({"name": "proj-linux-x"})),
        ([FORGOTTEN, Answer(200, OURS)], Made({"name": "proj-linux-x"})),
        ([operation("DONE", errors=FULL)], OutOfCapacityError),
        (
            [operation("DONE", httpErrorStatusCode=403, errors=[("QUOTA_EXCEEDED", "CPUS")])],
            QuotaExceededError,
        ),
        ([FORGOTTEN, UNKNOWN], CloudUnavailableError),
    ],
)
def test_what_became_of_an_accepted_machine_is_followed(
    wire: Wire, answers: list[Answer], expected: object
) -> None:
    """B33, B53: an error that comes after the call was accepted is found."""
    provider = wire.provider()
    assert isinstance(provider, Stepwise)
    worker = a_worker(operation="operation-42")
    wire.says(*answers)
    step = provider.follow(PROJECT, [worker])[worker.key]

    assert (type(step.error) if isinstance(step, Failed) else step) == expected
    assert wire.calls[0].path == f"{PATH}/operations/operation-42"


@pytest.mark.parametrize("state", [State.RUNNING, State.STOPPING])
def test_a_worker_that_registered_is_made_and_nobody_is_asked(wire: Wire, state: State) -> None:
    """B32: it outlives every doubt about its making."""
    worker = replace(a_worker(operation="operation-42"), state=state)
    step = wire.provider().follow(PROJECT, [worker])[worker.key]
    assert (step, wire.calls) == (Made({"name": "proj-linux-x"}), [])


def test_a_machine_without_an_operation_is_made_if_it_is_there(wire: Wire) -> None:
    worker = a_worker()
    wire.says(Answer(200, OURS))

    assert wire.provider().follow(PROJECT, [worker]) == {worker.key: Made(worker.identity)}


def test_one_unanswered_question_leaves_out_one_machine_and_all_of_them_are_an_error(
    wire: Wire,
) -> None:
    workers = [a_worker(number, operation=f"operation-{number}") for number in "12"]
    wire.answer = lambda call: (
        operation("DONE") if call.path.endswith("1") else refusal(503, "backendError")
    )
    assert wire.provider().follow(PROJECT, workers).keys() == {workers[0].key}
    with pytest.raises(CloudUnavailableError):
        wire.provider().follow(PROJECT, workers[1:])


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([Answer(200, OURS)], MachineStatus.RUNNING),
        ([UNKNOWN, operation("RUNNING")], MachineStatus.PENDING),
        ([UNKNOWN, operation("DONE", errors=FULL)], MachineStatus.GONE),
        ([UNKNOWN, operation("DONE")], None),
        ([UNKNOWN, FORGOTTEN], None),
    ],
)
def test_a_missing_machine_is_looked_up_and_then_its_operation(
    wire: Wire, answers: list[Answer], status: MachineStatus | None
) -> None:
    worker = a_worker(operation="operation-42")
    wire.says(*answers)
    seen = wire.provider().lookup(PROJECT, [worker])[worker.key]

    assert (seen.status if seen else None) is status
    if seen is not None:
        assert seen.key == worker.key
        assert isinstance(seen.failure, OutOfCapacityError) is (status is MachineStatus.GONE)


def test_a_missing_machine_without_an_operation_is_gone(wire: Wire) -> None:
    wire.says(UNKNOWN)
    assert wire.provider().lookup(PROJECT, [a_worker()]) == {a_worker().key: None}


def test_machines_are_deleted_by_number_and_one_refusal_is_its_own(wire: Wire) -> None:
    workers = [a_worker(number) for number in ("1", "2", "3")]
    wire.answer = lambda call: {
        "1": operation(),
        "2": not_found("instances/2"),
        "3": refusal(400, "resourceNotReady"),
    }[call.path.rpartition("/")[2]]
    terminated = wire.provider().terminate(workers)

    assert terminated.done == {workers[0].key, workers[1].key}
    assert type(terminated.failed[workers[2].key]) is CloudUnavailableError
    assert {call.method for call in wire.calls} == {"DELETE"}
    # The id of a delete that failed would make Compute Engine ignore the next one.
    assert not any("requestId" in call.query for call in wire.calls)


def disk(name: str, **given: Any) -> dict[str, Any]:
    return {**instance(), "name": name, "status": "READY", **given}


def test_disks_that_no_machine_uses_are_found_and_removed(wire: Wire) -> None:
    provider = wire.provider()
    assert isinstance(provider, Sweeps)
    disks = [disk("used", users=["an instance"]), disk("lone"), disk("going", status="DELETING")]
    wire.says(Answer(200, {"items": {f"zones/{ZONE}": {"disks": disks}}}))
    (leftover,) = provider.leftovers(PROJECT)

    assert leftover.kind == "disk"
    assert leftover.resource_id == f"zones/{ZONE}/disks/lone"
    assert leftover.pool_id == "proj/linux"
    assert leftover.since is not None

    others = [Leftover("disk", f"zones/{ZONE}/disks/{name}") for name in ("gone", "held")]
    wire.answer = lambda call: {
        "lone": operation(),
        "gone": not_found("disks/gone"),
        "held": refusal(400, "resourceInUseByAnotherResource"),
    }[call.path.rpartition("/")[2]]
    removed = provider.remove(PROJECT, [leftover, *others])

    assert removed.done == {leftover.resource_id, others[0].resource_id}
    assert removed.failed.keys() == {others[1].resource_id}


def test_a_disk_of_a_whole_region_is_left_alone_with_a_warning(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """We make none, so that somebody gave it our labels; it is in no zone."""
    regional = disk("regional", region="regions/us-central1")
    del regional["zone"]
    found = {"regions/us-central1": {"disks": [regional]}, "zones/z": {"disks": [disk("lone")]}}
    wire.says(Answer(200, {"items": found}))
    with caplog.at_level(logging.WARNING):
        (leftover,) = wire.provider().leftovers(PROJECT)
    assert leftover.resource_id.endswith("/disks/lone")
    assert [record.message for record in caplog.records] == ["a disk of ours in no zone"]
