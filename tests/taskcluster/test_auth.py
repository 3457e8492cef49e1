from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.taskcluster.signing import (
    CERTIFICATE_EXPIRY,
    CERTIFICATE_START,
    ISSUER,
    ISSUER_GRANTS,
    KEY,
    NOW,
    RESOURCE,
    a_bewit,
    a_certificate,
    a_client,
    a_header,
    a_named_header,
    a_request,
    an_authenticator,
    encoded,
    temporary_key,
)
from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.core.roles import Role
from worker_manager.core.scopes import AllOf
from worker_manager.taskcluster.auth import Identity, LocalAuthenticator

if TYPE_CHECKING:
    from worker_manager.taskcluster.clients import Client

DAY_MS = 86_400_000


def authenticate(
    authorization: str, authenticator: LocalAuthenticator | None = None, **overrides: Any
) -> Identity:
    authenticator = authenticator or an_authenticator()
    return authenticator.authenticate(a_request(authorization=authorization, **overrides))


def refuses(authorization: str, message: str, *clients: Client, **overrides: Any) -> None:
    with pytest.raises(AuthenticationFailedError, match=message):
        authenticate(authorization, an_authenticator(*clients, **overrides))


def test_an_unsigned_request_is_anybodys() -> None:
    roles = [Role("anonymous", ("ping",))]
    identity = an_authenticator(roles=roles).authenticate(a_request())
    assert identity == Identity(client_id=None, scopes=("assume:anonymous", "ping"))


def test_a_client_holds_its_scopes_its_roles_and_what_anybody_holds() -> None:
    roles = [Role("anonymous", ("ping",)), Role("team:*", ("repo:<..>",))]
    client = a_client(scopes=("assume:team:x", "own"))
    identity = authenticate(a_header(), an_authenticator(client, roles=roles))
    assert identity.client_id == ISSUER
    assert identity.scopes == ("assume:anonymous", "assume:team:x", "own", "ping", "repo:x")
    assert identity.satisfies(AllOf(("repo:x", "ping")))
    assert not identity.satisfies("repo:y")


def test_an_empty_ext_object_as_the_python_client_sends_restricts_nothing() -> None:
    assert "scope:*" in authenticate(a_header(ext={})).scopes


def test_unknown_keys_in_ext_are_ignored() -> None:
    assert "scope:*" in authenticate(a_header(ext={"other": 1, "certificate": None})).scopes


@pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("padding", ["", "="])
def test_ext_is_read_in_both_alphabets_with_and_without_padding(
    alphabet: Any, padding: str
) -> None:
    ext = json.dumps({"authorizedScopes": ["scope:???>>>~~~~"]}).encode()
    text = alphabet(ext).decode().rstrip("=")
    text += padding * (-len(text) % 4)
    assert authenticate(a_header(ext=text)).scopes == ("assume:anonymous", "scope:???>>>~~~~")


@pytest.mark.parametrize(
    "ext",
    [
        "!",
        "abc",
        encoded([]),
        encoded("text"),
        base64.b64encode(b'"text"').decode(),
        base64.b64encode(b"\xff\xfe").decode(),
        base64.b64encode(b"[" * 2500).decode(),
        encoded({"certificate": []}),
        encoded({"certificate": "x"}),
        encoded({"authorizedScopes": "scope:a"}),
        encoded({"authorizedScopes": [1]}),
        encoded({"authorizedScopes": ["\u00fc"]}),
        encoded({"authorizedScopes": {}}),
    ],
)
def test_a_malformed_ext_is_refused(ext: str) -> None:
    refuses(a_header(ext=ext), "ext")


def test_an_unknown_client_is_refused() -> None:
    refuses(a_header(client_id="nobody"), "nobody does not exist")


def test_a_client_with_another_key_is_refused() -> None:
    refuses(a_header(key="z" * 43), "^Bad mac$")


def test_a_disabled_client_is_refused() -> None:
    refuses(a_header(), "disabled", a_client(disabled=True))


def test_a_client_is_refused_from_the_moment_it_expires() -> None:
    refuses(a_header(), "has expired", a_client(expires=NOW))
    alive = a_client(expires=NOW + timedelta(milliseconds=1))
    assert authenticate(a_header(), an_authenticator(alive)).client_id == alive.client_id


def test_named_temporary_credentials_are_accepted() -> None:
    identity = authenticate(a_named_header(a_certificate()))
    assert identity.client_id == "test/named"
    assert identity.scopes == ("assume:anonymous", "scope:a", "scope:b/*")


def test_unnamed_temporary_credentials_are_accepted() -> None:
    certificate = a_certificate(issuer=None)
    identity = authenticate(a_named_header(certificate, client_id=ISSUER))
    assert identity.client_id == ISSUER
    assert identity.scopes == ("assume:anonymous", "scope:a", "scope:b/*")


def test_unnamed_credentials_do_not_need_the_scope_to_create_clients() -> None:
    certificate = a_certificate(issuer=None)
    authenticator = an_authenticator(a_client(scopes=("scope:*",)))
    assert authenticate(a_named_header(certificate, client_id=ISSUER), authenticator)


@pytest.mark.parametrize("issuer", [a_client(disabled=True), a_client(expires=NOW)])
def test_temporary_credentials_of_a_client_that_is_out_are_refused(issuer: Client) -> None:
    refuses(a_named_header(a_certificate()), "disabled|expired", issuer)


def test_temporary_scopes_are_expanded_and_may_come_from_a_role_of_the_issuer() -> None:
    roles = [Role("issuers", ISSUER_GRANTS), Role("a", ("from:a",)), Role("all", ("assume:a",))]
    issuer = a_client(scopes=("assume:issuers", "assume:all"))
    certificate = a_certificate(scopes=["assume:a", "scope:a"])
    identity = authenticate(a_named_header(certificate), an_authenticator(issuer, roles=roles))
    assert identity.scopes == ("assume:a", "assume:anonymous", "from:a", "scope:a")


def test_temporary_credentials_cannot_issue_temporary_credentials() -> None:
    second = a_certificate(client_id="test/second", issuer="test/named")
    refuses(a_named_header(second, client_id="test/second"), "test/named does not exist")


def test_an_issuer_must_be_allowed_to_create_the_named_client() -> None:
    refuses(
        a_named_header(a_certificate()),
        "may not create client test/named",
        a_client(scopes=("scope:*", "auth:create-client:other/*")),
    )


def test_an_issuer_cannot_give_what_it_does_not_have() -> None:
    refuses(a_named_header(a_certificate(scopes=["scope:a", "other"])), "oversteps.*: other$")


def test_a_certificate_of_31_days_is_accepted_and_a_longer_one_is_not() -> None:
    longest = CERTIFICATE_START + 31 * DAY_MS
    assert authenticate(a_named_header(a_certificate(expiry=longest)))
    refuses(a_named_header(a_certificate(expiry=longest + 1)), "more than 31 days")


def test_a_certificate_counts_from_five_minutes_before_its_start() -> None:
    start = int(NOW.timestamp() * 1000) + 300_000
    assert authenticate(a_named_header(a_certificate(start=start)))
    refuses(a_named_header(a_certificate(start=start + 1)), "not valid yet")


def test_a_certificate_counts_until_five_minutes_after_its_expiry() -> None:
    expiry = int(NOW.timestamp() * 1000) - 300_000
    assert authenticate(a_named_header(a_certificate(expiry=expiry)))
    refuses(a_named_header(a_certificate(expiry=expiry - 1)), "Certificate has expired")


@pytest.mark.parametrize(
    "forged",
    [
        {"scopes": ["scope:a", "scope:b/*", "scope:c"]},
        {"scopes": ["scope:b/*", "scope:a"]},
        {"scopes": []},
        {"expiry": CERTIFICATE_EXPIRY + 1},
        {"start": CERTIFICATE_START - 1},
        {"seed": "B" * 44},
        {"signature": ""},
        {"signature": "x" * 44},
    ],
    ids=str,
)
def test_a_certificate_that_was_changed_is_refused(forged: dict[str, Any]) -> None:
    refuses(a_named_header(a_certificate() | forged), "signature is not valid")


def test_a_certificate_is_good_for_its_own_name_only() -> None:
    refuses(a_named_header(a_certificate(), client_id="test/other"), "signature is not valid")


def test_a_certificate_of_another_key_is_refused() -> None:
    other = a_client(client_id="test/other-issuer", access_token="o" * 43)
    certificate = a_certificate(issuer="test/other-issuer")
    refuses(a_named_header(certificate), "signature is not valid", other)


def test_a_certificate_alone_is_not_enough() -> None:
    refuses(a_named_header(a_certificate(), key="z" * 43), "^Bad mac$")


def test_the_key_of_temporary_credentials_does_not_work_without_their_certificate() -> None:
    refuses(a_header(key=temporary_key()), "^Bad mac$")


@pytest.mark.parametrize(
    "malformed",
    [
        {"version": 2},
        {"version": "1"},
        {"seed": "x" * 43},
        {"seed": "x" * 45},
        {"seed": "x" * 43 + "\n"},
        {"seed": 1},
        {"start": "now"},
        {"start": 1.5},
        {"expiry": None},
        {"scopes": "scope:a"},
        {"scopes": [1]},
        {"scopes": ["a\nb"]},
        {"signature": None},
        {"signature": "\ud800"},
        {"issuer": "\ud800"},
        {"issuer": ""},
        {"issuer": 1},
        {"issuer": None},
        {"issuer": "test/named"},
    ],
    ids=str,
)
def test_a_malformed_certificate_is_refused(malformed: dict[str, Any]) -> None:
    refuses(a_named_header(a_certificate() | malformed), "ext.certificate")


@pytest.mark.parametrize("field", ["version", "seed", "start", "expiry", "scopes", "signature"])
def test_a_certificate_needs_every_field(field: str) -> None:
    certificate = a_certificate()
    del certificate[field]
    refuses(a_named_header(certificate), "malformed")


def test_an_unnamed_certificate_must_not_carry_a_client_id() -> None:
    certificate = a_certificate(issuer=None) | {"clientId": ISSUER}
    refuses(a_named_header(certificate, client_id=ISSUER), "must not have a clientId")


@pytest.mark.parametrize("name", ["test/with space", "test/<x>", "test/$"])
def test_a_name_that_no_client_could_have_is_refused(name: str) -> None:
    refuses(a_named_header(a_certificate(client_id=name), client_id=name), "Client id")


def test_authorized_scopes_replace_those_of_the_caller() -> None:
    roles = [Role("anonymous", ("ping",)), Role("x", ("from:x",))]
    authenticator = an_authenticator(a_client(scopes=("assume:x", "scope:*")), roles=roles)
    identity = authenticate(a_header(ext={"authorizedScopes": ["scope:a"]}), authenticator)
    assert identity.scopes == ("assume:anonymous", "ping", "scope:a")
    identity = authenticate(a_header(ext={"authorizedScopes": ["assume:x"]}), authenticator)
    assert identity.scopes == ("assume:anonymous", "assume:x", "from:x", "ping")


def test_authorized_scopes_may_be_none_at_all() -> None:
    assert authenticate(a_header(ext={"authorizedScopes": []})).scopes == ("assume:anonymous",)


def test_authorized_scopes_may_name_what_anybody_holds_or_a_role_gives() -> None:
    roles = [Role("anonymous", ("ping",))]
    header = a_header(ext={"authorizedScopes": ["ping"]})
    assert authenticate(header, an_authenticator(roles=roles)).scopes == (
        "assume:anonymous",
        "ping",
    )


@pytest.mark.parametrize("scopes", [["other"], ["scope:a", "s*"], ["*"]])
def test_authorized_scopes_never_widen_what_the_caller_holds(scopes: list[str]) -> None:
    refuses(a_header(ext={"authorizedScopes": scopes}), "authorizedScopes oversteps")


def test_authorized_scopes_of_temporary_credentials_stay_within_their_certificate() -> None:
    narrow = {"authorizedScopes": ["scope:b/c"]}
    header = a_named_header(a_certificate(), ext=narrow)
    assert authenticate(header).scopes == ("assume:anonymous", "scope:b/c")
    too_wide = {"authorizedScopes": ["scope:c"]}
    refuses(a_named_header(a_certificate(), ext=too_wide), "authorizedScopes oversteps")


def test_a_bewit_of_temporary_credentials_is_accepted() -> None:
    ext = {"certificate": a_certificate(), "authorizedScopes": ["scope:a"]}
    bewit = a_bewit(client_id="test/named", key=temporary_key(), ext=ext)
    identity = an_authenticator().authenticate(a_request(bewit=bewit))
    assert identity.client_id == "test/named"
    assert identity.scopes == ("assume:anonymous", "scope:a")


def test_the_clock_is_read_for_every_request() -> None:
    times = iter([NOW, NOW + timedelta(hours=1)])
    authenticator = an_authenticator()
    authenticator._now = lambda: next(times)
    assert authenticate(a_header(), authenticator)
    with pytest.raises(AuthenticationFailedError, match="Stale"):
        authenticate(a_header(), authenticator)


def test_a_certificate_does_not_reach_beyond_the_request_that_was_signed() -> None:
    with pytest.raises(AuthenticationFailedError, match="Bad mac"):
        authenticate(a_named_header(a_certificate()), resources=(RESOURCE + "/x",))


def test_a_client_does_not_show_its_token_when_printed() -> None:
    assert KEY not in repr(a_client())
