"""What must not be left half done: power that is off because somebody was stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def wholly(doing: Coroutine[Any, Any, T]) -> T:
    """Do it to its end, also when cancelled meanwhile; then be cancelled."""
    task = asyncio.ensure_future(doing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
