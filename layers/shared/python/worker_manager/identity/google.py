"""A Compute Engine instance's proof: a token that Google signed for it.

The token is what the instance reads at ``…/service-accounts/default/identity`` with our root URL
as ``audience`` and ``format=full``; only that format names the instance.  A token lasts an hour,
in which it can be shown again: that a proof counts once is the registration's part.
Where to read next: ``google_keys`` (who signs), ``azure`` and ``aws`` (its twins).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import jwt

from worker_manager.core.errors import ProofError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import Json, Worker
    from worker_manager.identity.google_keys import GoogleKeys

ISSUERS = ("https://accounts.google.com", "accounts.google.com")
ALGORITHM = "RS256"
"""The only one: a token does not choose how it is checked."""
LEEWAY = timedelta(seconds=60)
"""By which Google's clock and ours may differ."""
LONGEST = 16 * 1024
"""Characters of a token; real ones have some 1,200."""


def verify_token(
    proof: Mapping[str, object],
    worker: Worker,
    *,
    project: str,
    audience: str,
    service_account_id: str,
    keys: GoogleKeys,
    now: datetime,
) -> None:
    """Return if ``proof`` shows that its sender runs on the instance that ``worker`` is.

    ``proof`` has a ``token``; ``audience`` is our root URL, ``service_account_id`` the workers'.
    Raises ``ProofError`` otherwise, with a message for our log only, and
    ``ProofUnavailableError`` if Google's keys cannot be had.
    """
    token = proof.get("token")
    if not isinstance(token, str) or not 0 < len(token) <= LONGEST:
        raise ProofError("token must be text, not empty and not long")
    claims = _verified(token, audience, keys, now)
    _require_current(claims, now)
    if claims.get("sub") != service_account_id:
        raise ProofError("the token is of another service account")
    _compare(claims, worker, project)


def _verified(token: str, audience: str, keys: GoogleKeys, now: datetime) -> Json:
    """The claims, if Google made them for us."""
    try:
        header = jwt.get_unverified_header(token)
        key_id = header.get("kid")
        if header.get("alg") != ALGORITHM or not isinstance(key_id, str):
            raise ProofError(f"the token is not signed by {ALGORITHM} with a named key")
        claims: Json = jwt.decode(
            token,
            keys.key(key_id, now=now),
            algorithms=[ALGORITHM],
            audience=audience,
            issuer=ISSUERS,
            # PyJWT would take the time from the machine's clock; see ``_require_current``.
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
        raise ProofError(f"the token does not hold: {error}") from error
    return claims


def _require_current(claims: Json, now: datetime) -> None:
    issued, expires = _seconds(claims.get("iat")), _seconds(claims.get("exp"))
    leeway = LEEWAY.total_seconds()
    if not now.timestamp() <= expires + leeway:
        raise ProofError("the token has expired")
    if not now.timestamp() >= issued - leeway:
        raise ProofError("the token was made in the future")


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ProofError("the token does not say when it was made, or until when it holds")
    return value


def _compare(claims: Json, worker: Worker, project: str) -> None:
    google = claims.get("google")
    machine = google.get("compute_engine") if isinstance(google, dict) else None
    if not isinstance(machine, dict):
        raise ProofError("the token names no instance: it was not asked for in full")
    known = {
        "project_id": project,
        "instance_id": worker.key.worker_id,
        "zone": worker.key.group,
    }
    wrong = [name for name, value in known.items() if machine.get(name) != value]
    if wrong:
        raise ProofError(f"the token is of another instance: {', '.join(sorted(wrong))} differ")
