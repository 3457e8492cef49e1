"""Identifiers: their patterns, and how ids are derived from what is being done.

Derived ids make repeats harmless: the same decision has the same name wherever it is made again.
Patterns and the launch config hash are the reference's (``spec`` 2.1, 2.2).
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

IDENTIFIER = r"^[a-zA-Z0-9_-]{1,38}$"
POOL_ID = r"^[a-zA-Z0-9_-]{1,38}/[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"
SLUGID = r"^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$"
SECRET = r"^[a-zA-Z0-9_-]{44}$"
DECISION_ID = r"^[0-9A-Za-z:.#_-]{1,200}$"
"""Of a decision, which is the tick of its plan."""
ERROR_KIND = r"[-a-z0-9]+"
"""Of a pool error's kind; as in the reference it need not be all of it."""


def matches(pattern: str, text: str) -> bool:
    """Whether all of ``text`` is what ``pattern`` allows, to the last character."""
    return re.fullmatch(pattern, text, re.ASCII) is not None


def is_identifier(text: str) -> bool:
    """Whether ``text`` may name a provider, a worker group, a worker or a launch config."""
    return matches(IDENTIFIER, text)


def is_pool_id(text: str) -> bool:
    """Whether ``text`` is ``<provisioner id>/<worker type>``."""
    return matches(POOL_ID, text)


class ExactFloat(float):
    """A JSON number with a fraction or exponent that remembers how it was written.

    Use it as ``json.loads(text, parse_float=ExactFloat)`` where a launch config id may have to
    be derived: ``1.0`` and ``1`` hash differently.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> ExactFloat:
        """Keep the literal beside its value."""
        self = super().__new__(cls, text)
        self.text = text
        return self


def jsonb_text(value: Any) -> str:
    """PostgreSQL's canonical text of a ``jsonb`` value, which the reference hashes.

    Keys are ordered by length, then bytes; numbers lose their exponent but keep their scale;
    there is no negative zero.
    """
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        inner = ", ".join(f"{jsonb_text(key)}: {jsonb_text(value[key])}" for key in keys)
        return "{" + inner + "}"
    if isinstance(value, float):
        literal = value.text if isinstance(value, ExactFloat) else repr(value)
        number = Decimal(literal)
        return format(number if number else number.copy_abs(), "f")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(jsonb_text(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def launch_config_id(pool_id: str, body: Mapping[str, Any]) -> str:
    """The id of a launch config that was given none, from its body without ``workerManager``."""
    text = pool_id + jsonb_text(body)
    return "lc-" + hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:20]


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()


def order_id(pool_id: str, tick: str, launch_config: str, part: int) -> str:
    """Name of one order: an EC2 client token, and a valid label on every cloud."""
    return "o-" + _digest("order", pool_id, tick, launch_config, part).hex()[:30]


def derived_slugid(*parts: object) -> str:
    """A well-formed slugid (v4) that is the same for the same ``parts``."""
    raw = bytearray(_digest("slugid", *parts)[:16])
    raw[6] = (raw[6] & 0x0F) | 0x40
    raw[8] = (raw[8] & 0x3F) | 0x80
    return urlsafe_b64encode(bytes(raw)).decode().rstrip("=")


def event_id(name: str, *parts: object) -> str:
    """Identity of an event: the same transition of the same thing, the same event."""
    return _digest("event", name, *parts).hex()[:32]
