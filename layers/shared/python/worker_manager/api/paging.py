"""Pages of lists: tokens that mean nothing to a client, and a limit to what one page takes.

A token is where the last page ended, so pages stay right while the list changes; a page may be
short, or even empty, before the end.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any, TypeVar

from worker_manager.api.refusals import input_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pydantic import BaseModel

LARGEST_PAGE = 1000
"""Items; also what is given when no limit is."""

_T = TypeVar("_T")


def page_size(query: Mapping[str, str], *, default: int = LARGEST_PAGE) -> int:
    """How many items are wanted: at least one, at most a thousand."""
    return max(1, min(int(query.get("limit", default)), LARGEST_PAGE))


def to_token(position: str) -> str:
    """A token for going on after ``position``."""
    return urlsafe_b64encode(position.encode()).decode().rstrip("=")


def position(query: Mapping[str, str], is_one: Callable[[str], bool]) -> str | None:
    """Where the caller's token says to go on; ``None`` at the beginning.

    A token that does not decode to a position (``is_one``) was not made here and is a 400.
    """
    token = query.get("continuationToken")
    if token is None:
        return None
    try:
        found = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
    except ValueError:
        found = ""
    if not found or to_token(found) != token or not is_one(found):
        raise input_error("Invalid continuationToken")
    return found


def size_of(item: BaseModel) -> int:
    """Bytes that an item takes in a page, as a JSON text inside JSON."""
    text = item.model_dump_json(by_alias=True, exclude_unset=True)
    return len(json.dumps(text, ensure_ascii=False).encode())


def cut(items: Iterable[_T], size: Callable[[_T], int], *, most_bytes: int) -> Iterator[_T]:
    """The first items, at least one, that together take at most so many bytes of a page."""
    total = 0
    for item in items:
        more = size(item)
        if total and total + more > most_bytes:
            return
        total += more
        yield item


def with_token(token_of: str | None) -> dict[str, Any]:
    """The field of a page that leads on after a position; none on the last page."""
    return {} if token_of is None else {"continuation_token": to_token(token_of)}
