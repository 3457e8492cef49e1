"""Reading what services answer, of whatever length they send it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

_AT_ONCE = 64 * 1024


async def body_of(response: aiohttp.ClientResponse, *, most: int) -> bytes:
    """The body of an answer; ``ValueError`` if that takes more than ``most`` bytes."""
    body = bytearray()
    async for part in response.content.iter_chunked(_AT_ONCE):
        body += part
        if len(body) > most:
            raise ValueError("the answer is too long")
    return bytes(body)
