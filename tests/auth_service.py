"""A Taskcluster auth service on loopback: ``authenticateHawk`` over real signatures.

It is as strict about the question as the reference's schema, and remembers every one.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.http_server import serving
from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.core.moments import to_wire
from worker_manager.core.roles import Role, Roles
from worker_manager.taskcluster.auth import Identity, LocalAuthenticator
from worker_manager.taskcluster.certificates import read_ext
from worker_manager.taskcluster.hawk import SignedRequest, read_claim, verify_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from worker_manager.taskcluster.clients import Client

PATH = "/api/auth/v1/authenticate-hawk"
FOREVER = datetime(3000, 1, 1, tzinfo=UTC)

_REQUIRED = {"method", "resource", "host", "port"}
_METHODS = {"get", "head", "post", "put", "delete"}
_HOST = re.compile(r"[a-z0-9.-]+")
_BEWIT = re.compile(r"[?&]bewit=([\w-]+)")

Answer = dict[str, Any]


def an_answer(body: object, *, status: int = 200, **headers: str) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json", **headers},
        "body": text,
    }


@dataclass
class FakeAuthService:
    """Knows ``clients`` and ``roles``; what ``fails`` returns is answered instead, if anything."""

    clients: Sequence[Client]
    now: Callable[[], datetime]
    roles: Sequence[Role] = ()
    fails: Callable[[], Answer | None] = lambda: None
    questions: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def served(self) -> Iterator[str]:
        """Yields its root URL."""
        with serving(lambda _: self.answer) as url:
            yield url

    def answer(self, event: dict[str, Any]) -> Answer:
        """Answer one proxy event."""
        question = json.loads(event["body"])
        self.questions.append(question)
        failure = self.fails()
        if failure is not None:
            return failure
        if (event["httpMethod"], event["path"]) != ("POST", PATH):
            return an_answer({"code": "ResourceNotFound"}, status=404)
        if not _is_question(question):
            return an_answer({"code": "InputValidationError"}, status=400)
        return an_answer(self.judge(question))

    def judge(self, question: dict[str, Any]) -> Answer:
        """What the reference's service says."""
        request = _signed(question)
        book = _Bodiless(self.clients, Roles(tuple(self.roles)), self.now)
        try:
            claim, identity = read_claim(request), book.authenticate(request)
        except AuthenticationFailedError as error:
            prefix = "Unauthorized: " if str(error) in ("Bad mac", "Stale timestamp") else ""
            return {"status": "auth-failed", "message": f"{prefix}{error}"}
        said: Answer = {"scopes": list(identity.scopes)}
        if claim is None:
            expires = self.now() + timedelta(minutes=15)
            return said | {"status": "no-auth", "scheme": "none", "expires": to_wire(expires)}
        said |= {"status": "auth-success", "scheme": "hawk", "clientId": claim.client_id}
        said["expires"] = to_wire(self._end(claim.client_id, claim.ext))
        return said | ({"hash": claim.content_hash} if claim.content_hash else {})

    def _end(self, client_id: str, ext: str) -> datetime:
        understood = read_ext(ext, client_id=client_id)
        issuer = understood.issuer_behind(client_id)
        [client] = [known for known in self.clients if known.client_id == issuer]
        end = client.expires or FOREVER
        return end if understood.certificate is None else min(end, understood.certificate.expires)


class _Bodiless(LocalAuthenticator):
    """Whoever asks has the body, so it is the one to compare the hash."""

    def authenticate(self, request: SignedRequest) -> Identity:
        claim = read_claim(request)
        if claim is None:
            return super().authenticate(request)
        now = self._now()
        ext = read_ext(claim.ext, client_id=claim.client_id)
        granted = self._grant(claim.client_id, ext, now)
        try:
            verify_claim(claim, request, key=granted.key, now=now)
        except AuthenticationFailedError as error:
            if str(error) != "Bad payload hash":
                raise
        return Identity(claim.client_id, self._restrict(granted.scopes, ext.authorized_scopes))


def _is_question(given: dict[str, Any]) -> bool:
    return (
        given.keys() - {"authorization"} == _REQUIRED
        and given["method"] in _METHODS
        and isinstance(given["port"], int)
        and _HOST.fullmatch(given["host"]) is not None
    )


def _signed(question: dict[str, Any]) -> SignedRequest:
    resource = question["resource"]
    authorization = question.get("authorization")
    bewit = _BEWIT.search(resource) if authorization is None else None
    if bewit is not None:
        rest = resource[bewit.end() + 1 :]
        resource = resource[: bewit.start()] + (f"{bewit[0][0]}{rest}" if rest else "")
    return SignedRequest(
        method=question["method"],
        resources=(resource,),
        host=question["host"],
        port=question["port"],
        authorization=authorization,
        bewit=bewit[1] if bewit else None,
    )
