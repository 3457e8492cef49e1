"""Calls that name machines."""

from __future__ import annotations

import pytest

from tests.providers.aws.wire import Wire, described, instance, refusal, terminated
from tests.providers.orders import OREGON, VIRGINIA, a_worker
from worker_manager.core.errors import CloudUnavailableError, NotAuthorizedError, ThrottledError

NOT_FOUND = "InvalidInstanceID.NotFound"


def ids_of(sent: dict[str, str]) -> list[str]:
    return [value for name, value in sent.items() if name.startswith("InstanceId")]


def test_many_ids_are_asked_for_a_hundred_at_a_time() -> None:
    workers = [a_worker(f"i-{number}") for number in range(250)]
    wire = Wire([described([]) for _ in range(3)])
    assert set(wire.provider().lookup(OREGON, workers).values()) == {None}
    assert [len(ids_of(sent)) for sent in wire.parameters()] == [100, 100, 50]


def test_nobody_to_look_up_is_no_call() -> None:
    wire = Wire([])
    assert wire.provider().lookup(OREGON, []) == {}
    assert wire.sent == []


def test_named_bad_ids_are_gone_and_the_rest_is_asked_again() -> None:
    workers = [a_worker(name) for name in ("i-a", "i-ab", "i-c", "i-d")]
    wire = Wire(
        [
            refusal(NOT_FOUND, "The instance IDs 'i-ab, i-d' do not exist"),
            described([instance("i-a"), instance("i-c", state="terminated")]),
        ]
    )
    found = wire.provider().lookup(OREGON, workers)
    assert {key.worker_id for key, seen in found.items() if seen} == {"i-a"}
    assert len(found) == 4
    assert [ids_of(sent) for sent in wire.parameters()] == [
        ["i-a", "i-ab", "i-c", "i-d"],
        ["i-a", "i-c"],
    ]


def test_an_id_that_is_none_is_gone_too() -> None:
    workers = [a_worker("no-id"), a_worker("i-a")]
    wire = Wire(
        [
            refusal("InvalidInstanceID.Malformed", 'Invalid id: "no-id"'),
            described([instance("i-a")]),
        ]
    )
    found = wire.provider().lookup(OREGON, workers)
    assert [bool(found[worker.key]) for worker in workers] == [False, True]


def test_a_refusal_that_names_nobody_is_narrowed_down_by_halves() -> None:
    workers = [a_worker(name) for name in ("i-a", "i-b", "i-c")]
    wire = Wire(
        [
            refusal(NOT_FOUND),
            described([instance("i-a")]),
            refusal(NOT_FOUND),
            refusal(NOT_FOUND),
            described([instance("i-c")]),
        ]
    )
    found = wire.provider().lookup(OREGON, workers)
    assert [bool(found[worker.key]) for worker in workers] == [True, False, True]


def test_a_lookup_that_failed_is_an_error_and_never_none() -> None:
    """B37: not found is gone; anything else is unknown."""
    with pytest.raises(CloudUnavailableError):
        Wire([refusal("InternalError", status=500)]).provider().lookup(OREGON, [a_worker("i-a")])


def test_terminating_asks_each_region_once() -> None:
    workers = [a_worker("i-a"), a_worker("i-b", location=VIRGINIA), a_worker("i-c")]
    wire = Wire([terminated(), terminated()])
    result = wire.provider().terminate(workers)
    assert result.done == {worker.key for worker in workers}
    assert sorted(ids_of(sent) for sent in wire.parameters()) == [["i-a", "i-c"], ["i-b"]]


def test_an_unknown_machine_counts_as_terminated() -> None:
    workers = [a_worker("i-a"), a_worker("i-b")]
    wire = Wire([refusal(NOT_FOUND, "The instance ID 'i-a' does not exist"), terminated()])
    result = wire.provider().terminate(workers)
    assert result.done == {worker.key for worker in workers}
    assert ids_of(wire.parameters()[1]) == ["i-b"]


def test_one_protected_machine_fails_alone() -> None:
    protected, plain = a_worker("i-a"), a_worker("i-b")
    message = "The instance 'i-a' may not be terminated. Modify its attribute and try again."
    wire = Wire([refusal("OperationNotPermitted", message), terminated()])
    result = wire.provider().terminate([protected, plain])
    assert result.done == {plain.key}
    assert result.failed[protected.key].code == "OperationNotPermitted"


def test_another_error_fails_its_own_region_only() -> None:
    here, there = a_worker("i-a"), a_worker("i-b", location=VIRGINIA)
    wire = Wire([refusal("UnauthorizedOperation"), terminated()])
    result = wire.provider().terminate([here, there])
    assert result.done == {there.key}
    assert isinstance(result.failed[here.key], NotAuthorizedError)


def test_throttling_ends_the_asking() -> None:
    workers = [a_worker(f"i-{number}") for number in range(250)]
    wire = Wire([terminated(), refusal("RequestLimitExceeded", status=503)])
    result = wire.provider().terminate(workers)
    assert len(wire.sent) == 2
    assert len(result.done) == 100
    assert {type(error) for error in result.failed.values()} == {ThrottledError}
