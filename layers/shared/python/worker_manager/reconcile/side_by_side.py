"""Cloud calls side by side: the only place where reconciling uses threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def side_by_side(
    call: Callable[[_Item], _Answer], items: Sequence[_Item], *, parallel: int
) -> list[_Answer]:
    """What ``call`` answers to each item, in their order; up to ``parallel`` threads at once.

    Where one is enough it is the caller's own.  The first exception, in the items' order, is
    raised when all calls have ended.
    """
    threads = min(parallel, len(items))
    if threads <= 1:
        return [call(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, items))
