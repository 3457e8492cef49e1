"""What a client may have sent as path and query, when we see it only after a gateway.

A REST API keeps the path as sent but hands over the query decoded and unordered; a load balancer
leaves the query encoded, but unordered too; some front doors decode ``%2F`` in the path.  So every
spelling that a stock client could have signed is a candidate, and the MAC decides: a wrong
candidate opens nothing.  Where to read next: ``hawk``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_SHUFFLED_KEYS = 5
"""Up to so many query keys (120 orders) every order is tried, beyond it the likely ones only."""

_FIXED_SEGMENTS = 4
"""``/api/<service>/<version>/`` comes before anything that names a pool."""
_POOL_HEAD = re.compile(r"(?:[a-z-]+:)?[a-zA-Z0-9_-]{1,38}")
_POOL_TAIL = re.compile(r"[a-z](?:[-a-z0-9]{0,36}[a-z0-9])?:?")
_UNESCAPED_BY_SOME = "!'()*"
"""Left as they are by JavaScript's encoders, escaped by Python's and Go's."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where clients believe to talk to: the parts of the root URL that they sign."""

    host: str
    port: int
    prefix: str
    """What comes before ``/api``, without trailing slash; mostly empty."""

    @classmethod
    def of(cls, root_url: str) -> Endpoint:
        """Split a root URL.  Raises ``ValueError`` unless it is an absolute HTTP(S) URL."""
        parts = urlsplit(root_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"root URL {root_url!r} is not an absolute http or https URL")
        if parts.query or parts.fragment:
            raise ValueError(f"root URL {root_url!r} has a query or a fragment")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(host=parts.hostname, port=port, prefix=parts.path.rstrip("/"))


def resource_candidates(
    path: str,
    query_pairs: Iterable[tuple[str, str]],
    *,
    prefix: str = "",
    is_encoded: bool = False,
) -> tuple[str, ...]:
    """Every path and query that a client may have signed, the likeliest first, none twice.

    ``path`` begins with ``/api`` and is as the front door gave it; ``prefix`` is the root URL's.
    ``query_pairs`` are decoded, or with ``is_encoded`` as they were sent; any ``bewit`` among them
    is left out, as it never signs itself.
    """
    pairs = [(key, value) for key, value in query_pairs if key != "bewit"]
    found = _as_sent(pairs) if is_encoded else _queries(pairs)
    queries = tuple(dict.fromkeys(found))
    paths = tuple(dict.fromkeys(_paths(path)))
    return tuple(prefix + each + query for each in paths for query in queries)


def _orders(pairs: Sequence[tuple[str, str]]) -> Iterable[Sequence[tuple[str, str]]]:
    """Orders in which a client may have given the pairs, the one we see first."""
    return permutations(pairs) if len(pairs) <= MAX_SHUFFLED_KEYS else (pairs, sorted(pairs))


def _as_sent(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Queries of pairs that nobody has decoded; ``?a`` and ``?a=`` look the same to us."""
    for order in _orders(pairs):
        yield "?" + "&".join(f"{key}={value}" for key, value in order) if order else ""
        if any(not value for _, value in order):
            yield "?" + "&".join(f"{key}={value}" if value else key for key, value in order)


def _queries(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not pairs:
        yield ""
        return
    for order in _orders(pairs):
        for encode in (quote_plus, quote):
            for safe in ("", _UNESCAPED_BY_SOME):
                encoded = (f"{encode(k, safe=safe)}={encode(v, safe=safe)}" for k, v in order)
                yield "?" + "&".join(encoded)


def _paths(path: str) -> Iterator[str]:
    """The path, and if it may have been decoded, the ways in which it may have been encoded."""
    yield path
    if "%" in path:
        return
    for candidate in (path, *_with_joined_pool_id(path)):
        yield candidate
        yield candidate.replace(":", "%3A")


def _with_joined_pool_id(path: str) -> Iterator[str]:
    """The path with each two neighbouring segments joined that could be a pool id."""
    segments = path.split("/")
    for index in range(_FIXED_SEGMENTS, len(segments) - 1):
        head, tail = segments[index : index + 2]
        if _POOL_HEAD.fullmatch(head) and _POOL_TAIL.fullmatch(tail):
            yield "/".join([*segments[:index], f"{head}%2F{tail}", *segments[index + 2 :]])
