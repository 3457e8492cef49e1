"""A shared secret as proof: of machines in one's own racks, and of every renewal.

Only a salted hash is stored.  While a machine gets another secret the old one is good for a time
too, so that the two need not be exchanged at the same moment here and there.
Where to read next: ``aws`` (its twin).

One round of SHA-256 is enough here, and a slow hash (scrypt, PBKDF2) would be the wrong tool.
Those protect secrets that can be guessed, as people's passwords can, by making each guess dear.
These secrets are 44 random characters, some 240 bits: no number of guesses finds one, dear or not,
while 34 registrations a second would each pay for it.  The salt keeps equal secrets from looking
equal in the table.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from worker_manager.core.moments import from_wire, to_wire

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Json

_CURRENT = "staticSecretHash"
_PREVIOUS = "previousSecretHash"
_UNTIL = "previousSecretValidUntil"
_SCHEME = "sha256"
_SEPARATOR = "$"


def hash_secret(secret: str, salt: str) -> str:
    """What to store of ``secret``: scheme, salt and digest, as one text.

    ``salt`` is fresh random ASCII text for each secret.  Raises ``ValueError`` if it is empty, not
    ASCII, or has a ``$`` in it.
    """
    if not salt or not salt.isascii() or _SEPARATOR in salt:
        raise ValueError("a salt is ASCII text without $, and not empty")
    digest = hmac.digest(salt.encode(), secret.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return _SEPARATOR.join((_SCHEME, salt, digest.hex()))


def matches(secret: str, stored: str | None) -> bool:
    """Whether ``stored`` was made of ``secret``; never true of nothing stored.

    Takes the same time wherever the first difference is.  Raises ``ValueError`` if ``stored`` was
    not made by ``hash_secret``: that is a fault of ours, not of the caller.
    """
    if stored is None:
        return False
    scheme, salt, _ = stored.split(_SEPARATOR)
    if scheme != _SCHEME:
        raise ValueError(f"a stored secret has the unknown scheme {scheme!r}")
    return hmac.compare_digest(hash_secret(secret, salt), stored)


def first_identity(secret: str, *, salt: str) -> Json:
    """What a machine's row keeps of its first secret."""
    return {_CURRENT: hash_secret(secret, salt)}


def rotated(identity: Json, secret: str, *, salt: str, until: datetime, now: datetime) -> Json:
    """``identity`` once ``secret`` is the machine's; the one before it is valid ``until`` then.

    Only the latest two are ever valid.  A secret that is the machine's already changes nothing,
    so that a rotation may be repeated.
    """
    if matches(secret, identity.get(_CURRENT)):
        return identity
    after = {_CURRENT: hash_secret(secret, salt)}
    if until > now and _CURRENT in identity:
        after |= {_PREVIOUS: identity[_CURRENT], _UNTIL: to_wire(until)}
    return after


def cut_short(identity: Json, *, until: datetime, now: datetime) -> Json:
    """``identity`` whose previous secret, if it has one, is valid no longer than ``until``."""
    end = previous_until(identity, now)
    if end is not None and now < until < end:
        return {**identity, _UNTIL: to_wire(until)}
    if end is not None and until >= end:
        return identity
    return {_CURRENT: identity[_CURRENT]} if _CURRENT in identity else {}


def previous_until(identity: Json, now: datetime) -> datetime | None:
    """Until when the secret before the current one is valid too; ``None`` if it is not."""
    until = from_wire(identity[_UNTIL]) if _UNTIL in identity else now
    return until if until > now else None


def is_current(secret: str, identity: Json) -> bool:
    """Whether a secret is the machine's latest."""
    return matches(secret, identity.get(_CURRENT))


def is_valid(secret: str, identity: Json, now: datetime) -> bool:
    """Whether a secret proves a machine at ``now``; takes the same time whichever it is."""
    previous = identity.get(_PREVIOUS) if previous_until(identity, now) else None
    return matches(secret, previous) | matches(secret, identity.get(_CURRENT))
