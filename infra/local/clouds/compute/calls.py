"""One call of the API, read.  Read next: ``service``, which makes it; ``actions``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.errors import ComputeError, invalid
from infra.local.clouds.compute.inserts import read_request_id
from infra.local.clouds.compute.masks import Mask, mask_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PAGE = 500


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the API."""

    action: str
    zone: str = ""
    """Empty for calls about all zones."""
    name: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request_id(self) -> str:
        """Its ``requestId``, checked."""
        return read_request_id(self.query.get("requestId", ""))

    @property
    def mask(self) -> Mask:
        """Its ``fields``."""
        return mask_of(self.query.get("fields", ""))

    @property
    def page_size(self) -> int:
        """Its ``maxResults``, checked; 0 and none are the most that a page may have."""
        text = self.query.get("maxResults", "0")
        if not text.isdecimal() or int(text) > MAX_PAGE:
            raise invalid("maxResults", text, f"Must be between 0 and {MAX_PAGE}.")
        return int(text) or MAX_PAGE

    @property
    def last_seen(self) -> int:
        """The sequence of the last thing of the page before, by its ``pageToken``; else 0."""
        token = self.query.get("pageToken", "")
        if not token:
            return 0
        sequence = token.removeprefix("after-")
        if sequence == token or not sequence.isdecimal():
            raise ComputeError("invalid", f"Invalid value for field 'pageToken': '{token}'.")
        return int(sequence)

    @property
    def accepts_part(self) -> bool:
        """Whether zones that cannot be looked into may be left out."""
        return self.query.get("returnPartialSuccess", "") == "true"


def token_after(sequence: int) -> str:
    """The ``pageToken`` of the page after this thing."""
    return f"after-{sequence}"
