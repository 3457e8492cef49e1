"""Which URLs an ``http`` action may have: those of hosts that this deployment allows.

A URL is read by one strict pattern and not by a parser, as parsers differ on what is odd: there is
no user, no backslash, no character beyond ASCII, no placeholder in its host.
Read next: ``placeholders`` (what is filled into its path), ``calls`` (who calls it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_URL = 1000

_HOST = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]"
_PORT = r"[1-9][0-9]{0,4}"
_ALLOWED = re.compile(rf"(?P<host>{_HOST})(?::(?P<port>{_PORT}))?")
# No ";": what follows it in a path is left out by the stock way of signing.
_REST = r"(?:[A-Za-z0-9._~!$&'()*+,=:@/<>-]|%[0-9A-Fa-f]{2})*"
_URL = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>{_PORT}))?/{_REST}(?:\?{_REST})?"
)
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:[/?]|$)", re.IGNORECASE)
_DEFAULT_PORTS = {"https": 443, "http": 80}
_LOOPBACK = frozenset({"127.0.0.1", "[::1]", "localhost"})


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that ``http`` actions may call."""

    allowed: frozenset[tuple[str, int]] = frozenset()
    """Host, in lower case, and port."""
    plain: frozenset[tuple[str, int]] = frozenset()
    """Those of them that may be called without encryption: on this machine, by their port."""

    @classmethod
    def of(cls, given: Iterable[str]) -> Hosts:
        """From ``host`` or ``host:port`` each.  ``ValueError`` for what is neither.

        Without a port it is that of https.
        """
        allowed: set[tuple[str, int]] = set()
        plain: set[tuple[str, int]] = set()
        for text in given:
            found = _ALLOWED.fullmatch(text)
            if found is None or int(found["port"] or 443) > 65535:
                raise ValueError(f"{text!r} is neither host nor host:port, in lower case")
            place = found["host"], int(found["port"] or 443)
            allowed.add(place)
            if found["port"] and found["host"] in _LOOPBACK:
                plain.add(place)
        return cls(frozenset(allowed), frozenset(plain))

    def fault_of(self, url: str) -> str | None:
        """Why this is no URL of theirs, in words; ``None`` if it is one."""
        found = _URL.fullmatch(url) if len(url) <= LONGEST_URL else None
        if found is None:
            return (
                f"must be an https URL of up to {LONGEST_URL} characters: host in lower case, "
                "port if it is another, a path, a query if need be, and nothing else"
            )
        if _DOTS.search(url.partition("?")[0].partition("://")[2]):
            return "its path must not have . or .. in it"
        host = found["host"]
        place = host, int(found["port"] or _DEFAULT_PORTS[found["scheme"]])
        if place not in self.allowed:
            return f"{host} with port {place[1]} is not among the hosts that this deployment allows"
        if found["scheme"] == "http" and place not in self.plain:
            return "must be https"
        return None


NOWHERE = Hosts()
"""No host at all: then there are no ``http`` actions."""
