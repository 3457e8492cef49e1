"""Pages of lists with an item a pool, whose parts are read side by side.

Where to read next: ``paging`` (tokens and sizes), ``worker_pools`` and ``stats`` (the lists).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from worker_manager.api import paging
from worker_manager.core.ids import is_pool_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from worker_manager.api.deps import ApiDeps
    from worker_manager.api.routing import Call

PARALLEL = 8
"""Pools read side by side."""

PATIENCE = timedelta(seconds=15)
"""After which a page ends, though it could be longer: the gateway waits for 29 s."""

_ItemT = TypeVar("_ItemT", bound=BaseModel)


def page_of_pools(
    call: Call, deps: ApiDeps, read: Callable[[ApiDeps, str], _ItemT | None]
) -> tuple[list[_ItemT], dict[str, Any]]:
    """The next pools by id, each as ``read`` gives it, and the field that leads on.

    ``read`` takes a pool's id and gives ``None`` for a pool that was removed meanwhile.
    """
    size = paging.page_size(call.query)
    after = paging.position(call.query, is_pool_id)
    ids = list(deps.stores.pools.ids(after=after, limit=size + 1))
    wanted = ids[:size]
    page = list(paging.cut(_read_in_time(deps, wanted, read), _size, most_bytes=deps.page_bytes))
    last = page[-1][0] if page else None
    is_last = not page or (len(page) == len(wanted) and len(ids) <= size)
    items = [item for _, item in page if item is not None]
    return items, paging.with_token(None if is_last else last)


def _read_in_time(
    deps: ApiDeps, ids: Sequence[str], read: Callable[[ApiDeps, str], _ItemT | None]
) -> Iterator[tuple[str, _ItemT | None]]:
    """Each id with its item, as far as time allows."""
    ends = deps.clock() + PATIENCE
    waiting = iter(ids)
    with ThreadPoolExecutor(PARALLEL) as threads:
        while some := list(islice(waiting, PARALLEL)):
            yield from zip(some, threads.map(lambda name: read(deps, name), some), strict=True)
            if deps.clock() >= ends:
                return


def _size(found: tuple[str, BaseModel | None]) -> int:
    _, item = found
    return 0 if item is None else paging.size_of(item)
