"""Our own clients and roles, as one JSON text that is kept as a secret.

::

    {"clients": [{"clientId", "accessToken", "scopes": [], "expires"?, "disabled"?}],
     "roles": [{"roleId", "scopes": []}],
     "issuer": {"clientId", "accessToken"}}

It is read once, at start, and anything wrong with it ends the start.  Where to read next:
``auth`` (what they are used for).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from worker_manager.core.roles import Role, Roles
from worker_manager.core.scopes import AllOf, is_grantable_scope, missing_scopes
from worker_manager.taskcluster.certificates import CLIENT_ID
from worker_manager.taskcluster.credentials import (
    ISSUER_SCOPES,
    QUEUE_SCOPES,
    TASK_ISSUER_SCOPES,
    Issuer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_ClientId = Annotated[str, Field(pattern=f"^{CLIENT_ID.pattern}$")]
_AccessToken = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22,66}$")]


@dataclass(frozen=True, slots=True)
class Client:
    """A permanent client; ``scopes`` are as given, not expanded."""

    client_id: str
    access_token: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    expires: datetime | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Clients:
    """Everybody we know: permanent clients by id, roles, and who issues worker credentials."""

    by_id: Mapping[str, Client]
    roles: Roles
    issuer: Issuer

    @classmethod
    def from_json(cls, text: str) -> Clients:
        """Read the secret's text.

        An issuer that is not among the clients becomes one, with just the scopes that issuing
        credentials of workers and tasks and asking the queue take; what the embedded queue's tasks
        may carry themselves only a listed one can hold.  Raises ``ValueError`` when anything is
        malformed, unknown or given twice, when a token contradicts another, or when the issuer
        lacks a scope; its message names the place and never an access token.
        """
        book = _Book.model_validate_json(text)
        roles = Roles(tuple(Role(entry.role_id, entry.scopes) for entry in book.roles))
        issuer = Issuer(book.issuer.client_id, book.issuer.access_token)
        by_id: dict[str, Client] = {}
        for entry in book.clients:
            if entry.client_id in by_id:
                raise ValueError(f"client {entry.client_id} is given twice")
            by_id[entry.client_id] = _client(entry)
        scopes = (*ISSUER_SCOPES, *QUEUE_SCOPES, *TASK_ISSUER_SCOPES)
        issuing = Client(issuer.client_id, issuer.access_token, scopes)
        _check_issuer(issuer, by_id.setdefault(issuer.client_id, issuing), roles)
        return cls(by_id=by_id, roles=roles, issuer=issuer)


class _Entry(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )


class _ClientEntry(_Entry):
    client_id: _ClientId
    access_token: _AccessToken
    scopes: tuple[str, ...]
    expires: AwareDatetime | None = None
    disabled: bool = False


class _RoleEntry(_Entry):
    role_id: str
    scopes: tuple[str, ...]


class _IssuerEntry(_Entry):
    client_id: _ClientId
    access_token: _AccessToken


class _Book(_Entry):
    clients: tuple[_ClientEntry, ...]
    roles: tuple[_RoleEntry, ...] = ()
    issuer: _IssuerEntry


def _client(entry: _ClientEntry) -> Client:
    for scope in entry.scopes:
        if not is_grantable_scope(scope):
            raise ValueError(f"client {entry.client_id}: scope {scope!r} cannot be granted")
    return Client(
        client_id=entry.client_id,
        access_token=entry.access_token,
        scopes=entry.scopes,
        expires=entry.expires,
        disabled=entry.disabled,
    )


def _check_issuer(issuer: Issuer, client: Client, roles: Roles) -> None:
    if client.access_token != issuer.access_token:
        raise ValueError(f"issuer {issuer.client_id} has another token among the clients")
    missing = missing_scopes(roles.expand(client.scopes), AllOf(ISSUER_SCOPES))
    if missing:
        raise ValueError(f"issuer {issuer.client_id} lacks {', '.join(missing)}")
