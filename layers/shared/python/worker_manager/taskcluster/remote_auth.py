"""Having signatures checked by a Taskcluster auth service, and how often it need not be asked.

Only the service knows the keys of its clients, so every request is asked about, but for two cases:
the very same signature once more (a bewit, a request sent twice), and credentials of our own
issuer, which is what every worker has: their keys follow from the issuer's, so once the service has
said what a credential is worth, its signatures are proven here.  Nothing is believed beyond the
credential's own end, and no refusal or failure is remembered at all.

Where to read next: ``auth`` (the local twin), ``auth_service`` (the question), ``memory``.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import AuthenticationFailedError, ProofUnavailableError
from worker_manager.taskcluster.auth_service import Granted
from worker_manager.taskcluster.certificates import read_ext, temporary_token
from worker_manager.taskcluster.hawk import (
    MAX_SKEW,
    read_claim,
    signed_resource,
    verify_claim,
    verify_payload,
)
from worker_manager.taskcluster.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from worker_manager.taskcluster.auth import Identity
    from worker_manager.taskcluster.auth_service import AuthService
    from worker_manager.taskcluster.credentials import Issuer
    from worker_manager.taskcluster.hawk import Claim, SignedRequest

PATIENCE = timedelta(seconds=5)
"""For all questions about one request together; the gateway waits for 29 s."""
SIGNATURE_KEPT = timedelta(seconds=60)
"""Longest that the same signature, or what anybody may do, is believed without asking."""
CREDENTIAL_KEPT = timedelta(minutes=5)
"""Longest that the scopes of a credential of our own issuer are believed without asking."""
MOST_KEPT = 8192
"""Answers of each kind; one takes some 3 KB."""
MOST_ASKED = 6
"""Spellings of one request that the service is asked about, the likeliest first.

All orders of three query keys.  Anybody can sign wrongly, so it is also how often one request of a
stranger makes us ask.
"""

_ANYBODY = "anybody"
_OF_MAC = re.compile(r"\bmac\b", re.IGNORECASE)


class RemoteAuthenticator:
    """Asks an auth service who signed a request.

    ``issuer`` is the client in whose name we issue credentials; the service knows it too.  Safe to
    use from threads.
    """

    def __init__(
        self,
        service: AuthService,
        *,
        issuer: Issuer,
        now: Callable[[], datetime],
        patience: timedelta = PATIENCE,
    ) -> None:
        self._service = service
        self._issuer = issuer
        self._now = now
        self._patience = patience
        self._signatures: Memory[tuple[str, Identity]] = Memory(MOST_KEPT)
        self._credentials: Memory[Identity] = Memory(MOST_KEPT)

    def authenticate(self, request: SignedRequest) -> Identity:
        """Say who signed ``request``; anonymous if nobody did.

        Raises ``AuthenticationFailedError`` when a signature is there and does not hold, and
        ``ProofUnavailableError`` when the service does not say.
        """
        now = self._now()
        claim = read_claim(request)
        if claim is None:
            return self._anybody(request, now)
        verify_payload(claim, request)
        key = self._own_key(claim)
        return self._recall(claim, request, key=key, now=now) or self._prove(
            claim, request, key=key, now=now
        )

    def _anybody(self, request: SignedRequest, now: datetime) -> Identity:
        """Nobody signed; what anybody may do is the service's to say."""
        known = self._credentials.get(_ANYBODY, now)
        if known is not None:
            return known
        answer = self._service.ask(request, request.resources[0], patience=self._patience)
        if not isinstance(answer, Granted):
            raise ProofUnavailableError("the auth service refuses what nobody signed")
        until = min(now + SIGNATURE_KEPT, answer.expires)
        self._credentials.put(_ANYBODY, answer.identity, until=until, now=now)
        return answer.identity

    def _own_key(self, claim: Claim) -> str | None:
        """The key of a credential of our own issuer; ``None`` for everybody else's."""
        try:
            ext = read_ext(claim.ext, client_id=claim.client_id)
        except AuthenticationFailedError:
            return None  # for the service to refuse
        if ext.issuer_behind(claim.client_id) != self._issuer.client_id:
            return None
        if ext.certificate is None:
            return self._issuer.access_token
        return temporary_token(self._issuer.access_token, ext.certificate.seed)

    def _recall(
        self, claim: Claim, request: SignedRequest, *, key: str | None, now: datetime
    ) -> Identity | None:
        """Who it is by what the service said before; ``None`` if it must be asked."""
        if key is not None:
            identity = self._credentials.get(_credential(claim), now)
            if identity is not None and _holds(claim, request, key=key, now=now):
                return identity
        resource, identity = self._signatures.get(_signature(request), now) or ("", None)
        return identity if resource in request.resources else None

    def _prove(
        self, claim: Claim, request: SignedRequest, *, key: str | None, now: datetime
    ) -> Identity:
        """Ask about each likely spelling, as only a wrong MAC may be due to the spelling."""
        ends = now + self._patience
        message = "Bad mac"
        for resource in _likely(claim, request, key=key):
            left = ends - self._now()
            if left <= timedelta():
                raise ProofUnavailableError("the auth service took too long")
            answer = self._service.ask(request, resource, patience=left)
            if isinstance(answer, Granted):
                self._remember(answer, claim, request, resource=resource, key=key, now=now)
                return answer.identity
            message = answer.message
            if not _OF_MAC.search(message):
                break
        raise AuthenticationFailedError(message)

    def _remember(
        self,
        answer: Granted,
        claim: Claim,
        request: SignedRequest,
        *,
        resource: str,
        key: str | None,
        now: datetime,
    ) -> None:
        """Keep what was said, by credential where its signatures can be proven here.

        Raises ``AuthenticationFailedError`` if the service speaks of another body than the claim.
        """
        if answer.content_hash != claim.content_hash:
            raise AuthenticationFailedError("Bad payload hash")
        if key is not None and _holds(claim, request, key=key, now=now):
            until = min(now + CREDENTIAL_KEPT, answer.expires)
            self._credentials.put(_credential(claim), answer.identity, until=until, now=now)
            return
        until = min(answer.expires, _end(claim, now))
        self._signatures.put(_signature(request), (resource, answer.identity), until=until, now=now)


def _likely(claim: Claim, request: SignedRequest, *, key: str | None) -> Sequence[str]:
    """What the client may have signed: one resource, where we can tell, else the likeliest few."""
    signed = None if key is None else signed_resource(claim, request, key=key)
    return request.resources[:MOST_ASKED] if signed is None else (signed,)


def _holds(claim: Claim, request: SignedRequest, *, key: str, now: datetime) -> bool:
    try:
        verify_claim(claim, request, key=key, now=now)
    except AuthenticationFailedError:
        return False
    return True


def _end(claim: Claim, now: datetime) -> datetime:
    """When the signature itself ends: a bewit says so, a header grows too old."""
    lifetime = timedelta() if claim.kind == "bewit" else MAX_SKEW
    left = timedelta(seconds=int(claim.timestamp) - now.timestamp()) + lifetime
    return now + min(left, SIGNATURE_KEPT)


def _credential(claim: Claim) -> str:
    """Whose credential it is and all that restricts it, certificate and authorised scopes."""
    return _digest(claim.client_id, claim.ext)


def _signature(request: SignedRequest) -> str:
    """The signature, and what it was for but the resource, which may have several spellings."""
    return _digest(
        request.authorization or "",
        request.bewit or "",
        request.method,
        request.host,
        str(request.port),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
