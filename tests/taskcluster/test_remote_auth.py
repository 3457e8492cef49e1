"""Signatures judged by an auth service: what it is asked, how often, and when it fails."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import requests

from tests.auth_service import FakeAuthService, an_answer
from tests.taskcluster.signing import (
    CERTIFICATE_EXPIRY,
    HOST,
    ISSUER,
    KEY,
    NOW,
    RESOURCE,
    a_bewit,
    a_certificate,
    a_client,
    a_header,
    a_named_header,
    a_request,
)
from worker_manager.core.errors import AuthenticationFailedError, ProofUnavailableError
from worker_manager.core.roles import Role
from worker_manager.taskcluster.auth_service import AuthService
from worker_manager.taskcluster.credentials import Issuer
from worker_manager.taskcluster.remote_auth import MOST_ASKED, RemoteAuthenticator
from worker_manager.taskcluster.resources import resource_candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from worker_manager.taskcluster.auth import Identity

OTHER = "test/other"
OTHER_KEY = "o" * 43
OTHER_GRANTS = ("auth:create-client:test/*", "scope:*")
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


class Scene:
    """An auth service that knows our issuer and another client, and us who ask it."""

    def __init__(self) -> None:
        self.now = NOW
        self.service = FakeAuthService(
            clients=[
                a_client(),
                a_client(client_id=OTHER, access_token=OTHER_KEY, scopes=OTHER_GRANTS),
            ],
            now=self.clock,
            roles=[Role("anonymous", ("ping",)), Role("team:*", ("repo:<..>",))],
        )
        self.url = ""
        self.authenticator = self.ask_at("http://127.0.0.1:1")

    def clock(self) -> datetime:
        return self.now

    def ask_at(
        self,
        url: str,
        *,
        issuer_token: str = KEY,
        patience: timedelta = MINUTE,
        now: Callable[[], datetime] | None = None,
    ) -> RemoteAuthenticator:
        return RemoteAuthenticator(
            AuthService(url),
            issuer=Issuer(ISSUER, issuer_token),
            now=now or self.clock,
            patience=patience,
        )

    def authenticate(self, **overrides: Any) -> Identity:
        return self.authenticator.authenticate(a_request(**overrides))

    @property
    def asked(self) -> int:
        return len(self.service.questions)


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    with made.service.served() as url:
        made.url = url
        made.authenticator = made.ask_at(url)
        yield made


def others(**overrides: Any) -> str:
    """A header of a client whose key only the service knows."""
    return a_header(**{"client_id": OTHER, "key": OTHER_KEY, **overrides})


def refused(scene: Scene, message: str, **overrides: Any) -> None:
    with pytest.raises(AuthenticationFailedError, match=message):
        scene.authenticate(**overrides)


def test_the_service_says_who_it_is_and_what_they_may_do(scene: Scene) -> None:
    identity = scene.authenticate(authorization=others())
    assert identity.client_id == OTHER
    assert identity.satisfies("scope:x")
    assert identity.satisfies("ping")
    assert not identity.satisfies("repo:x")


def test_the_question_is_what_was_signed_and_with_what(scene: Scene) -> None:
    scene.authenticate(authorization=others(method="POST"), method="POST")
    assert scene.service.questions == [
        {
            "method": "post",
            "resource": RESOURCE,
            "host": HOST,
            "port": 443,
            "authorization": others(method="POST"),
        }
    ]


def test_a_slash_at_the_end_of_the_root_url_is_none_of_the_path(scene: Scene) -> None:
    scene.authenticator = scene.ask_at(f"{scene.url}/")
    assert scene.authenticate(authorization=others()).client_id == OTHER


def test_what_anybody_may_do_is_asked_once_a_minute(scene: Scene) -> None:
    for _ in range(3):
        identity = scene.authenticate()
        assert (identity.client_id, identity.scopes) == (None, ("assume:anonymous", "ping"))
    assert scene.asked == 1
    scene.now += MINUTE
    scene.authenticate(resources=("/elsewhere",))
    assert scene.asked == 2


def test_a_refusal_is_told_in_the_services_words_and_not_remembered(scene: Scene) -> None:
    unknown = a_header(client_id="test/nobody")
    for _ in range(2):
        refused(scene, "Client test/nobody does not exist", authorization=unknown)
    assert scene.asked == 2


def test_a_client_that_was_refused_is_let_in_once_the_service_knows_it(scene: Scene) -> None:
    header = a_header(client_id="test/new")
    refused(scene, "does not exist", authorization=header)
    scene.service.clients = [a_client(client_id="test/new")]
    assert scene.authenticate(authorization=header).client_id == "test/new"


@pytest.mark.parametrize(
    "overrides",
    [
        {"method": "DELETE"},
        {"resources": (f"{RESOURCE}x",)},
        {"host": "other.example.com"},
        {"port": 80},
        {"authorization": others().replace("j4h3g2", "j4h3g3")},
        {"authorization": others().replace('mac="', 'mac="A')},
    ],
    ids=str,
)
def test_anything_else_than_what_was_signed_is_refused_also_after_a_success(
    scene: Scene, overrides: dict[str, Any]
) -> None:
    scene.authenticate(authorization=others())
    refused(scene, "Bad mac", **({"authorization": others()} | overrides))


def test_another_body_is_refused_without_asking(scene: Scene) -> None:
    signed = others(method="PUT", body="{}", content_type="application/json")
    sent = {"method": "PUT", "content_type": "application/json", "authorization": signed}
    scene.authenticate(**sent, body=b"{}")
    refused(scene, "Bad payload hash", **sent, body=b"[]")
    assert scene.asked == 1


def test_a_service_that_speaks_of_another_body_is_not_believed(scene: Scene) -> None:
    judge = scene.service.judge
    scene.service.judge = lambda question: judge(question) | {"hash": "x"}  # type: ignore[method-assign]
    refused(scene, "Bad payload hash", authorization=others())


def test_a_malformed_header_is_refused_without_asking(scene: Scene) -> None:
    refused(scene, "scheme must be Hawk", authorization="Bearer x")
    assert scene.asked == 0


def test_an_ext_that_we_do_not_understand_is_for_the_service_to_refuse(scene: Scene) -> None:
    refused(scene, "ext is not base64 of JSON", authorization=others(ext="?"))
    assert scene.asked == 1


def test_the_same_signature_is_asked_about_once_a_minute(scene: Scene) -> None:
    for _ in range(3):
        scene.authenticate(authorization=others())
    assert scene.asked == 1
    scene.now += MINUTE
    scene.authenticate(authorization=others())
    assert scene.asked == 2


def test_another_signature_of_a_foreign_client_is_asked_about(scene: Scene) -> None:
    scene.authenticate(authorization=others())
    scene.authenticate(authorization=others(at=NOW + SECOND))
    assert scene.asked == 2


def test_a_signature_is_not_believed_beyond_its_clients_end(scene: Scene) -> None:
    ends = NOW + 10 * SECOND
    scene.service.clients = [replace(client, expires=ends) for client in scene.service.clients]
    scene.authenticate(authorization=others())
    scene.now = ends - SECOND
    scene.authenticate(authorization=others())
    assert scene.asked == 1
    scene.now = ends
    refused(scene, "has expired", authorization=others())


def test_a_signature_is_not_believed_once_it_is_stale(scene: Scene) -> None:
    header = others(at=NOW - 15 * MINUTE)
    scene.authenticate(authorization=header)
    scene.now += SECOND
    refused(scene, "Stale timestamp", authorization=header)


def test_a_worker_polls_with_new_signatures_and_is_asked_about_once(scene: Scene) -> None:
    for number in range(5):
        header = a_named_header(a_certificate(), at=NOW + number * SECOND)
        identity = scene.authenticate(authorization=header)
        assert identity.client_id == "test/named"
        assert identity.satisfies("scope:a")
        assert not identity.satisfies("scope:c")
    assert scene.asked == 1


def test_what_a_credential_is_worth_is_asked_again_after_five_minutes(scene: Scene) -> None:
    scene.authenticate(authorization=a_named_header(a_certificate()))
    scene.service.clients = [a_client(disabled=True)]
    scene.now += 5 * MINUTE - SECOND
    scene.authenticate(authorization=a_named_header(a_certificate(), at=scene.now))
    scene.now += SECOND
    refused(scene, "is disabled", authorization=a_named_header(a_certificate(), at=scene.now))


def test_a_credential_is_not_believed_beyond_its_end(scene: Scene) -> None:
    end = NOW + timedelta(milliseconds=CERTIFICATE_EXPIRY - int(NOW.timestamp() * 1000))
    for before in (2 * MINUTE, MINUTE):
        scene.now = end - before
        scene.authenticate(authorization=a_named_header(a_certificate(), at=scene.now))
    assert scene.asked == 1
    for _ in range(2):
        scene.authenticate(authorization=a_named_header(a_certificate(), at=end))
        scene.now = end
    assert scene.asked == 2, "the service lets clocks differ by five minutes, and is asked"
    scene.now = end + 5 * MINUTE + SECOND
    refused(
        scene,
        "Certificate has expired",
        authorization=a_named_header(a_certificate(), at=scene.now),
    )


@pytest.mark.parametrize("kept", [False, True])
def test_a_forged_signature_of_a_worker_is_refused(scene: Scene, kept: bool) -> None:
    if kept:
        scene.authenticate(authorization=a_named_header(a_certificate()))
    forged = a_named_header(a_certificate(), key="f" * 43)
    refused(scene, "Bad mac", authorization=forged)


def test_restricted_credentials_are_others_than_the_unrestricted(scene: Scene) -> None:
    scene.authenticate(authorization=a_named_header(a_certificate()))
    restricted = a_named_header(a_certificate(), ext={"authorizedScopes": ["scope:a"]})
    for _ in range(2):
        identity = scene.authenticate(authorization=restricted)
        assert not identity.satisfies("scope:b/x")
    assert scene.asked == 2


def test_our_issuer_itself_is_asked_about_once(scene: Scene) -> None:
    for number in range(3):
        header = a_header(at=NOW + number * SECOND)
        assert scene.authenticate(authorization=header).client_id == ISSUER
    assert scene.asked == 1


def test_with_another_token_than_the_services_nothing_is_proven_here(scene: Scene) -> None:
    scene.authenticator = scene.ask_at(scene.url, issuer_token="x" * 43)
    for number in range(3):
        header = a_named_header(a_certificate(), at=NOW + number * SECOND)
        assert scene.authenticate(authorization=header).client_id == "test/named"
    assert scene.asked == 3


QUERY = [("limit", "5"), ("continuationToken", "abc"), ("state", "running"), ("a", "1"), ("b", "2")]


def test_each_order_of_two_keys_is_asked_about_until_the_mac_is_right(scene: Scene) -> None:
    header = others(resource=f"{RESOURCE}?{urlencode(QUERY[:2])}")
    resources = resource_candidates(RESOURCE, sorted(QUERY[:2]))
    for _ in range(2):
        scene.authenticate(resources=resources, authorization=header)
    assert scene.asked == 2


def test_three_keys_may_have_stood_in_any_order(scene: Scene) -> None:
    for number, order in enumerate(permutations(QUERY[:3])):
        header = others(resource=f"{RESOURCE}?{urlencode(order)}", at=NOW + number * SECOND)
        resources = resource_candidates(RESOURCE, sorted(QUERY[:3]))
        assert scene.authenticate(resources=resources, authorization=header).client_id == OTHER


def test_spellings_are_tried_up_to_a_bound(scene: Scene) -> None:
    header = others(resource=f"{RESOURCE}?{urlencode(QUERY)}")
    resources = resource_candidates(RESOURCE, sorted(QUERY))
    assert len(resources) > MOST_ASKED
    refused(scene, "Bad mac", resources=resources, authorization=header)
    assert scene.asked == MOST_ASKED


def test_of_a_worker_the_one_spelling_that_it_signed_is_asked_about(scene: Scene) -> None:
    header = a_named_header(a_certificate(), resource=f"{RESOURCE}?{urlencode(QUERY)}")
    resources = resource_candidates(RESOURCE, sorted(QUERY))
    scene.authenticate(resources=resources, authorization=header)
    assert [question["resource"] for question in scene.service.questions] == [
        f"{RESOURCE}?{urlencode(QUERY)}"
    ]


def test_what_no_spelling_can_help_is_asked_about_once(scene: Scene) -> None:
    resources = resource_candidates(RESOURCE, QUERY)
    refused(scene, "exist", resources=resources, authorization=a_header(client_id="test/nobody"))
    assert scene.asked == 1


def test_a_bewit_is_asked_about_as_it_stood_in_the_url_and_remembered(scene: Scene) -> None:
    bewit = a_bewit(resource=f"{RESOURCE}?limit=5", client_id=OTHER, key=OTHER_KEY)
    for _ in range(2):
        identity = scene.authenticate(resources=(f"{RESOURCE}?limit=5",), bewit=f"{bewit}=")
        assert identity.client_id == OTHER
    [question] = scene.service.questions
    assert question["resource"] == f"{RESOURCE}?limit=5&bewit={bewit}"
    assert "authorization" not in question


def test_a_bewit_ends_when_it_says_whatever_was_remembered(scene: Scene) -> None:
    bewit = a_bewit(expires=int(NOW.timestamp()) + 10, client_id=OTHER, key=OTHER_KEY)
    scene.authenticate(bewit=bewit)
    scene.now += 10 * SECOND
    refused(scene, "Access expired", bewit=bewit)


def test_a_bewit_without_end_is_asked_about_again(scene: Scene) -> None:
    bewit = a_bewit(expires=999_999_999_999, client_id=OTHER, key=OTHER_KEY)
    scene.authenticate(bewit=bewit)
    scene.now += MINUTE
    scene.authenticate(bewit=bewit)
    assert scene.asked == 2


SUCCESS = {
    "status": "auth-success",
    "clientId": OTHER,
    "scopes": ["*"],
    "expires": "2100-01-01T00:00:00.000Z",
}


@pytest.mark.parametrize(
    "answer",
    [
        an_answer({"code": "InternalServerError"}, status=500),
        an_answer({}, status=502),
        an_answer({}, status=429),
        an_answer({}, status=404),
        an_answer({}, status=401),
        an_answer(SUCCESS, status=302, Location="http://127.0.0.1:1/"),
        an_answer(SUCCESS, status=201),
        an_answer("<html>"),
        an_answer([]),
        an_answer({"status": "auth-success"}),
        an_answer(SUCCESS | {"scopes": "*"}),
        an_answer(SUCCESS | {"scopes": [1]}),
        an_answer(SUCCESS | {"expires": "soon"}),
        an_answer({name: value for name, value in SUCCESS.items() if name != "expires"}),
        an_answer(SUCCESS | {"status": "maybe"}),
        an_answer(SUCCESS | {"status": "no-auth"}),
        an_answer({"status": "auth-failed"}),
    ],
    ids=lambda answer: f"{answer['statusCode']} {answer['body'][:60]}",
)
def test_an_answer_that_is_none_is_an_outage_and_not_remembered(
    scene: Scene, answer: dict[str, Any]
) -> None:
    scene.service.fails = lambda: answer
    with pytest.raises(ProofUnavailableError):
        scene.authenticate(authorization=others())
    scene.service.fails = lambda: None
    assert scene.authenticate(authorization=others()).client_id == OTHER


@pytest.mark.parametrize("answer", [SUCCESS, {"status": "auth-failed", "message": "no"}])
def test_a_signature_found_where_there_is_none_is_an_outage(
    scene: Scene, answer: dict[str, Any]
) -> None:
    scene.service.fails = lambda: an_answer(answer)
    with pytest.raises(ProofUnavailableError):
        scene.authenticate()


def test_a_service_that_cannot_be_reached_is_an_outage(scene: Scene) -> None:
    scene.authenticator = scene.ask_at("http://127.0.0.1:1")
    with pytest.raises(ProofUnavailableError):
        scene.authenticate(authorization=others())


def test_what_was_remembered_outlives_an_outage_of_the_service(scene: Scene) -> None:
    scene.authenticate(authorization=a_named_header(a_certificate()))
    scene.service.fails = lambda: an_answer({}, status=500)
    scene.now += MINUTE
    scene.authenticate(authorization=a_named_header(a_certificate(), at=scene.now))


def test_a_service_that_does_not_answer_in_time_is_an_outage(scene: Scene) -> None:
    given_up = threading.Event()

    def wait_for_the_end() -> None:
        given_up.wait()

    scene.service.fails = wait_for_the_end
    scene.authenticator = scene.ask_at(scene.url, patience=timedelta(milliseconds=50))
    try:
        with pytest.raises(ProofUnavailableError):
            scene.authenticate(authorization=others())
    finally:
        given_up.set()


def test_a_connection_that_is_lost_late_leaves_no_more_time_for_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 3.0 * len(given))

    def lose(*_: Any, timeout: Any, **__: Any) -> None:
        given.append(timeout.total)
        raise requests.ConnectionError

    monkeypatch.setattr("worker_manager.taskcluster.auth_service.time", clock)
    monkeypatch.setattr(requests.Session, "post", lose)
    scene.authenticator = scene.ask_at(scene.url, patience=5 * SECOND)
    with pytest.raises(ProofUnavailableError):
        scene.authenticate(authorization=others())
    assert given == [5, 2]


def test_all_spellings_together_take_no_longer_than_one_may(scene: Scene) -> None:
    moments = iter([NOW, NOW, NOW + 2 * SECOND, NOW + 5 * SECOND])
    scene.authenticator = scene.ask_at(scene.url, patience=5 * SECOND, now=lambda: next(moments))
    with pytest.raises(ProofUnavailableError, match="too long"):
        scene.authenticate(
            resources=resource_candidates(RESOURCE, QUERY),
            authorization=others(resource="/elsewhere"),
        )
    assert scene.asked == 2


@pytest.mark.parametrize(("losses", "holds"), [(1, True), (2, False)])
def test_a_connection_that_is_lost_is_made_anew_once(
    scene: Scene, losses: int, holds: bool
) -> None:
    def lose() -> None:
        if scene.asked <= losses:
            raise ConnectionResetError

    scene.service.fails = lose
    if holds:
        assert scene.authenticate(authorization=others()).client_id == OTHER
    else:
        with pytest.raises(ProofUnavailableError):
            scene.authenticate(authorization=others())
