"""What many answers come to, about one machine each.  Where to read next: ``protocol``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    MachineGoneError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.model import Sighting
from worker_manager.providers.protocol import Launched

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from worker_manager.core.model import WorkerKey

_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")


def launched(
    answers: Sequence[Sighting | CloudError],
    *,
    follow_after: timedelta,
    keys: Sequence[WorkerKey] = (),
) -> Launched:
    """What an order brought, from the answer for each of its machines.

    ``keys`` are the machines', where their names are ours.  Raises a ``CloudError`` when no machine
    was accepted: what left one waiting or unknown, else the refusal.
    """
    machines = tuple(answer for answer in answers if isinstance(answer, Sighting))
    errors = [answer for answer in answers if isinstance(answer, CloudError)]
    refused = [error for error in errors if not is_open(error)]
    unanswered = most_telling([error for error in errors if is_open(error)])
    error = refused[0] if refused else None
    if not machines and (why := unanswered or error):
        raise why
    return Launched(
        machines=machines,
        refused=len(refused),
        error=error,
        unanswered=unanswered,
        not_made=frozenset(
            key
            for key, answer in zip(keys, answers, strict=False)
            if isinstance(answer, CloudError) and not is_open(answer)
        ),
        follow_after=follow_after if machines else None,
    )


def is_open(error: CloudError) -> bool:
    """Whether the machine may be asked for again: it waits, or nobody knows of it."""
    return isinstance(error, ThrottledError | CloudUnavailableError)


def most_telling(errors: Sequence[CloudError]) -> CloudError | None:
    """The longest wait that was asked for; else a call that may have acted; else any."""
    waits = [error for error in errors if isinstance(error, ThrottledError)]
    doubtful = [e for e in errors if not isinstance(e, ThrottledError | NotReachedError)]
    if waits:
        longest = max(waits, key=lambda error: error.retry_after)
        return longest.in_doubt() if doubtful else longest
    return next(iter(doubtful or errors), None)


def failures(keys: Iterable[_Key], answers: Iterable[object]) -> dict[_Key, CloudError]:
    """The errors among the answers, by what was asked about."""
    return {
        key: answer
        for key, answer in zip(keys, answers, strict=True)
        if isinstance(answer, CloudError)
    }


def learned(keys: Iterable[_Key], answers: Sequence[_Answer | CloudError]) -> dict[_Key, _Answer]:
    """What was answered, by what was asked about; raises the first error if there is no answer."""
    found = {
        key: answer
        for key, answer in zip(keys, answers, strict=True)
        if not isinstance(answer, CloudError)
    }
    for answer in answers:
        if isinstance(answer, CloudError) and not found:
            raise answer
    return found


def gone(name: str) -> MachineGoneError:
    """Why nothing can be done to a machine that there is no more."""
    return MachineGoneError(f"the machine {name} is gone", code="MachineGone")
