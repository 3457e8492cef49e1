"""What many answers come to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.providers.orders import a_worker
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NotReachedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.core.model import MachineStatus, Sighting, WorkerKey
from worker_manager.providers.answers import failures, launched, learned

SOON = timedelta(seconds=10)
FULL = OutOfCapacityError("full")
QUOTA = QuotaExceededError("quota")
SLOW = ThrottledError("slow", retry_after=timedelta(seconds=1))
SLOWER = ThrottledError("slower", retry_after=timedelta(seconds=30))
LOST = CloudUnavailableError("lost")
UNREACHED = NotReachedError("unreached")


def key(number: int) -> WorkerKey:
    return a_worker(f"vm-{number}").key


def machine(number: int) -> Sighting:
    worker = a_worker(f"vm-{number}")
    return Sighting(key=worker.key, location=worker.location, status=MachineStatus.PENDING)


def is_doubtful(error: CloudError | None) -> bool:
    """Whether an order is left of which something may have been done."""
    return error is LOST or (isinstance(error, ThrottledError) and error.is_doubtful)


@pytest.mark.parametrize(
    ("errors", "refused", "error", "unanswered"),
    [
        ([], 0, None, None),
        ([FULL, QUOTA], 2, FULL, None),
        ([LOST], 0, None, LOST),
        ([FULL, SLOW, SLOWER, LOST], 1, FULL, SLOWER),
        ([UNREACHED, SLOW], 0, None, SLOW),
        ([UNREACHED, LOST], 0, None, LOST),
        ([UNREACHED], 0, None, UNREACHED),
    ],
)
def test_what_an_order_brought_is_told_machine_by_machine(
    errors: list[CloudError],
    refused: int,
    error: CloudError | None,
    unanswered: CloudError | None,
) -> None:
    """B40: some made, some refused, some nobody knows."""
    answers: list[Sighting | CloudError] = [*errors, machine(9)]
    found = launched(answers, keys=[key(n) for n in range(len(answers))], follow_after=SOON)

    assert found.machines == (machine(9),)
    assert (found.refused, found.error) == (refused, error)
    assert found.not_made == {key(n) for n, one in enumerate(errors) if one in (FULL, QUOTA)}
    assert str(found.unanswered) == str(unanswered)
    assert is_doubtful(found.unanswered) is (LOST in errors)
    assert found.follow_after == SOON


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ([FULL, QUOTA], FULL),
        ([FULL, LOST], LOST),
        ([LOST, SLOW], SLOW),
        ([UNREACHED, LOST], LOST),
        ([UNREACHED, UNREACHED], UNREACHED),
    ],
)
def test_an_order_that_brought_no_machine_is_an_error(
    errors: list[CloudError], raised: CloudError
) -> None:
    with pytest.raises(CloudError) as caught:
        launched(errors, follow_after=SOON)
    assert (type(caught.value), str(caught.value)) == (type(raised), str(raised))
    assert is_doubtful(caught.value) is (LOST in errors)


def test_an_order_of_which_nothing_was_wanted_brought_nothing() -> None:
    found = launched([], follow_after=SOON)
    assert (found.machines, found.refused, found.follow_after) == ((), 0, None)


def test_answers_and_errors_are_told_apart_by_what_was_asked_about() -> None:
    assert failures("abc", [None, LOST, 0]) == {"b": LOST}
    assert learned("abc", [None, LOST, 0]) == {"a": None, "c": 0}
    assert learned("", []) == {}
    with pytest.raises(OutOfCapacityError):
        learned("ab", [FULL, LOST])
