"""One token for all the calls of a provider, however many threads want it at once.

The SDK's pipeline asks for a token before a call, in every thread that finds none: sixteen calls
side by side would sign in sixteen times.  Where to read next: ``setup``.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.credentials import AccessToken, TokenCredential

FRESH_SECONDS = 600
"""A token that is valid for less is exchanged; the SDK begins to think of it at 300."""


class SharedToken:
    """A credential that asks ``credential`` once for all threads; of one scope only.

    Who waited for an attempt that failed shares its error: nobody waits for longer than one
    attempt takes.  ``clock`` gives seconds since 1970.
    """

    def __init__(
        self, credential: TokenCredential, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._credential = credential
        self._clock = clock
        self._lock = Lock()
        self._token: AccessToken | None = None
        self._failed: tuple[float, Exception] | None = None

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """A token that is valid for a while; raises what the credential raises."""
        asked = self._clock()
        with self._lock:
            if self._failed is not None and self._failed[0] > asked:
                raise self._failed[1]
            if self._token is None or self._is_old(self._token) or options.get("claims"):
                self._token = self._fetch(*scopes, **options)
            return self._token

    def _fetch(self, *scopes: str, **options: Any) -> AccessToken:
        try:
            return self._credential.get_token(*scopes, **options)
        except Exception as error:
            self._failed = (self._clock(), error)
            raise

    def _is_old(self, token: AccessToken) -> bool:
        return token.expires_on - self._clock() < FRESH_SECONDS
