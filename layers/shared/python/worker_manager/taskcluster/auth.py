"""Who is calling, and what may they do: from a signed request to an identity.

The order is the reference's: read the claim, find the permanent client behind it, apply its
certificate, check the signature, apply ``authorizedScopes``, add what anybody may do.

Where to read next: ``hawk`` (signatures), ``certificates`` (temporary credentials),
``core.scopes`` (whether an identity's scopes are enough).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.core.scopes import AllOf, Expression, missing_scopes, satisfies
from worker_manager.taskcluster.certificates import (
    Ext,
    read_ext,
    temporary_token,
    verify_certificate,
)
from worker_manager.taskcluster.hawk import read_claim, verify_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from worker_manager.core.roles import Roles
    from worker_manager.taskcluster.clients import Client
    from worker_manager.taskcluster.hawk import SignedRequest

ANONYMOUS_SCOPE = "assume:anonymous"
"""What everybody holds, signed or not."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller whose signature held, or anybody.

    ``client_id`` is ``None`` for a request that was not signed; ``scopes`` are expanded and in
    normal form.
    """

    client_id: str | None
    scopes: tuple[str, ...]

    def satisfies(self, required: Expression) -> bool:
        """Whether this caller may do what requires these scopes."""
        return satisfies(self.scopes, required)


class Authenticator(Protocol):
    """Whoever can say who signed a request: we ourselves, or a Taskcluster auth service."""

    def authenticate(self, request: SignedRequest) -> Identity:
        """Say who signed ``request``; anonymous if nobody did.

        Raises ``AuthenticationFailedError`` when a signature is there and does not hold.
        """
        ...


class LocalAuthenticator:
    """Checks signatures against our own clients, without asking anybody."""

    def __init__(
        self, clients: Iterable[Client], roles: Roles, now: Callable[[], datetime]
    ) -> None:
        self._clients = {client.client_id: client for client in clients}
        self._roles = roles
        self._now = now
        self._expanded = {
            client.client_id: roles.expand(client.scopes) for client in self._clients.values()
        }
        self._anybody = Identity(client_id=None, scopes=roles.expand([ANONYMOUS_SCOPE]))

    def authenticate(self, request: SignedRequest) -> Identity:
        """Say who signed ``request``; anonymous if nobody did.

        Raises ``AuthenticationFailedError`` when a signature is there and does not hold.
        """
        claim = read_claim(request)
        if claim is None:
            return self._anybody
        now = self._now()
        ext = read_ext(claim.ext, client_id=claim.client_id)
        granted = self._grant(claim.client_id, ext, now)
        verify_claim(claim, request, key=granted.key, now=now)
        return Identity(
            client_id=claim.client_id,
            scopes=self._restrict(granted.scopes, ext.authorized_scopes),
        )

    def _grant(self, client_id: str, ext: Ext, now: datetime) -> _Grant:
        """The key and scopes that go with what was claimed; the signature is still unproven."""
        issuer = self._permanent(ext.issuer_behind(client_id), now)
        scopes = self._expanded[issuer.client_id]
        certificate = ext.certificate
        if certificate is None:
            return _Grant(issuer.access_token, scopes)
        verify_certificate(
            certificate,
            client_id=client_id,
            issuer_token=issuer.access_token,
            issuer_scopes=scopes,
            now=now,
        )
        key = temporary_token(issuer.access_token, certificate.seed)
        return _Grant(key, certificate.scopes)

    def _permanent(self, client_id: str, now: datetime) -> Client:
        """The client of this id; temporary ones are never found, so they issue nothing."""
        client = self._clients.get(client_id)
        if client is None:
            raise AuthenticationFailedError(f"Client {client_id} does not exist")
        if client.disabled:
            raise AuthenticationFailedError(f"Client {client_id} is disabled")
        if client.expires is not None and client.expires <= now:
            raise AuthenticationFailedError(f"Client {client_id} has expired")
        return client

    def _restrict(
        self, granted: tuple[str, ...], authorized: tuple[str, ...] | None
    ) -> tuple[str, ...]:
        everything = self._roles.expand([*granted, ANONYMOUS_SCOPE])
        if authorized is None:
            return everything
        missing = missing_scopes(everything, AllOf(authorized))
        if missing:
            raise AuthenticationFailedError(
                f"authorizedScopes oversteps the caller's scopes: {', '.join(missing)}"
            )
        return self._roles.expand([*authorized, ANONYMOUS_SCOPE])


@dataclass(frozen=True, slots=True)
class _Grant:
    key: str
    scopes: tuple[str, ...]
