"""A boto3 client that remembers what it was asked and answers as a test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class RecordingClient:
    """``answer`` makes an answer of a call's number and arguments; exceptions are raised."""

    answer: Callable[[int, dict[str, Any]], dict[str, Any]]
    calls: list[dict[str, Any]] = field(default_factory=list)

    def _call(self, **arguments: Any) -> dict[str, Any]:
        self.calls.append(arguments)
        return self.answer(len(self.calls), arguments)

    put_events = send_message_batch = _call
