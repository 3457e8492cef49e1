"""Calls that name machines, in which one bad id must spoil nothing.

EC2 refuses such a call as a whole when one of its ids is unknown (``InvalidInstanceID.NotFound``),
no id at all (``.Malformed``), protected (``OperationNotPermitted``) or in a state that does not
allow it (``IncorrectInstanceState``), and names the culprits in its message.  They are set apart
and the rest is asked again; a message that names nobody is answered by asking for each half.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from worker_manager.core.errors import CloudError, ThrottledError
from worker_manager.providers.aws.errors import cloud_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Answer = TypeVar("Answer")

IDS_PER_CALL = 100
"""Few enough that one refusal delays few; EC2 itself takes a thousand."""

GONE_CODES = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})
UNFIT_CODES = frozenset({"OperationNotPermitted", "IncorrectInstanceState", "IncorrectState"})
"""What is not done to such an instance, though it exists."""


@dataclass(slots=True)
class Outcome:
    """What became of each id: ``answered``, ``gone`` or ``failed``; disjoint, and all of them."""

    answered: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    failed: dict[str, CloudError] = field(default_factory=dict)


def call_by_id(
    ids: Sequence[str], call: Callable[[list[str]], Answer], *, keep: Callable[[Answer], None]
) -> Outcome:
    """Run ``call`` for all ids, some at a time, giving each answer to ``keep``.

    Every round answers ids, sets some apart or halves its question, so it ends.  Raises nothing:
    errors are kept by id.  A throttled call ends the asking, and the ids still waiting share its
    error.
    """
    outcome = Outcome()
    waiting = [list(ids[at : at + IDS_PER_CALL]) for at in range(0, len(ids), IDS_PER_CALL)]
    while waiting:
        asked = waiting.pop(0)
        try:
            with cloud_errors():
                keep(call(asked))
        except ThrottledError as error:
            outcome.failed.update(dict.fromkeys([*asked, *chain(*waiting)], error))
            break
        except CloudError as error:
            waiting[:0] = _set_apart(asked, error, outcome)
        else:
            outcome.answered.update(asked)
    return outcome


def _set_apart(asked: list[str], error: CloudError, outcome: Outcome) -> list[list[str]]:
    """Book the ids that the refusal is about; give the questions that are left to ask."""
    if error.code not in GONE_CODES | UNFIT_CODES:
        outcome.failed.update(dict.fromkeys(asked, error))
        return []
    named = set(re.split(r"[^\w-]+", str(error))).intersection(asked)
    culprits = named or (set(asked) if len(asked) == 1 else set())
    if error.code in GONE_CODES:
        outcome.gone |= culprits
    else:
        outcome.failed.update(dict.fromkeys(culprits, error))
    if not culprits:
        middle = len(asked) // 2
        return [asked[:middle], asked[middle:]]
    rest = [name for name in asked if name not in culprits]
    return [rest] if rest else []
