"""The certificates with which Google signs identity tokens, kept by the container.

Google changes them every few days, and publishes a new one before it signs with it.
Where to read next: ``google``.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import load_pem_x509_certificate

from worker_manager.core.errors import ProofError, ProofUnavailableError
from worker_manager.identity.downloads import fetch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.identity.downloads import Downloaded, Fetch

CERTIFICATES_URL = "https://www.googleapis.com/oauth2/v1/certs"
"""A JSON object of certificates in PEM by key id."""

SHORTEST, LONGEST = timedelta(minutes=5), timedelta(hours=24)
"""Whatever ``Cache-Control`` says, answers are kept at least and at most this long."""
STALE = timedelta(hours=24)
"""How much longer they serve if no new ones can be had."""
BETWEEN = timedelta(minutes=1)
"""From one answer to asking again because a token names a key that is not in it."""
BETWEEN_FAILURES = timedelta(seconds=5)
"""From one failure to asking again."""

_SECONDS = 3
_MOST_BYTES = 256 * 1024
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=(\d{1,9})", re.ASCII | re.IGNORECASE)


class GoogleKeys:
    """Public keys by key id, fetched when first wanted and when they may have changed."""

    def __init__(self, url: str = CERTIFICATES_URL, *, fetching: Fetch | None = None) -> None:
        self._url = url
        self._fetch = fetching or partial(fetch, seconds=_SECONDS, most_bytes=_MOST_BYTES)
        self._keys: Mapping[str, RSAPublicKey] = {}
        self._fetched: datetime | None = None
        self._failed: datetime | None = None
        self._kept = SHORTEST

    def key(self, key_id: str, *, now: datetime) -> RSAPublicKey:
        """The key of this id.

        Raises ``ProofError`` if Google has none, ``ProofUnavailableError`` if that is not known.
        """
        fails = self._refresh(now) if self._is_worth_asking(key_id, now) else self._has_failed(now)
        if key_id in self._keys and self._age(now) < self._kept + STALE:
            return self._keys[key_id]
        if fails:
            raise ProofUnavailableError("Google's certificates could not be fetched")
        raise ProofError("the token names a key that Google does not publish")

    def _age(self, now: datetime) -> timedelta:
        return timedelta.max if self._fetched is None else now - self._fetched

    def _has_failed(self, now: datetime) -> bool:
        """Whether asking failed just now, and nothing was heard since."""
        return self._failed is not None and now - self._failed < BETWEEN_FAILURES

    def _is_worth_asking(self, key_id: str, now: datetime) -> bool:
        if self._has_failed(now):
            return False
        return self._age(now) >= (self._kept if key_id in self._keys else min(BETWEEN, self._kept))

    def _refresh(self, now: datetime) -> bool:
        """Ask Google; what is known stays if that fails.  Whether it failed."""
        try:
            answer = self._fetch(self._url)
            self._keys = _keys_in(answer)
        except ProofUnavailableError:
            self._failed = now
            return True
        self._fetched, self._failed, self._kept = now, None, _kept(answer)
        return False


def _keys_in(answer: Downloaded) -> Mapping[str, RSAPublicKey]:
    try:
        found = {
            key_id: load_pem_x509_certificate(pem.encode()).public_key()
            for key_id, pem in json.loads(answer.body).items()
        }
    except (ValueError, AttributeError) as error:
        raise ProofUnavailableError("Google's certificates cannot be read") from error
    return {key_id: key for key_id, key in found.items() if isinstance(key, RSAPublicKey)}


def _kept(answer: Downloaded) -> timedelta:
    """How long an answer is good for, by what it says and within our bounds."""
    said = _MAX_AGE.search(answer.headers.get("cache-control", ""))
    age = timedelta(seconds=int(said.group(1))) if said else SHORTEST
    return min(max(age, SHORTEST), LONGEST)
