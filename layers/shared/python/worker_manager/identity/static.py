"""A shared secret as proof: of machines in one's own racks, and of every renewal.

Only a salted hash is stored.  Where to read next: ``aws`` (its twin).

One round of SHA-256 is enough here, and a slow hash (scrypt, PBKDF2) would be the wrong tool.
Those protect secrets that can be guessed, as people's passwords can, by making each guess dear.
These secrets are 44 random characters, some 240 bits: no number of guesses finds one, dear or not,
while 34 registrations a second would each pay for it.  The salt keeps equal secrets from looking
equal in the table.
"""

from __future__ import annotations

import hashlib
import hmac

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
