"""Signatures that other implementations of Hawk made or accepted, for one fixed moment."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import timedelta

import pytest

from tests.taskcluster.signing import (
    HOST,
    ISSUER,
    KEY,
    NOW,
    RESOURCE,
    SEED,
    a_client,
    a_header,
    a_request,
    an_authenticator,
)
from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.taskcluster.certificates import Certificate, signed_text, temporary_token
from worker_manager.taskcluster.hawk import payload_hash

EMPTY_HASH = "B0weSUXsMcb5UhL41FZbrUJCAotzSI3HawE1NPLRUz8="
JSON_HASH = "qKG2AtsqLMhIdy7+OrxWG0bU8wTDncYSW0gmNukAKpI="
BEWIT = (
    "dGVzdC9pc3N1ZXJcMTcwMDAwMDkwMFxKVllROG5wcWpSOUhzdXdwVUYwVDNETGxkNGl0Mmk0ZmVQZUR3SkhwSEswPVw"
)
NAMED_HEADER = (
    'Hawk mac="iMvkEBKPnn80gXCkvpZ7BsVeQHa5G4FaLRXSSVhw5Z4=",'
    ' hash="B0weSUXsMcb5UhL41FZbrUJCAotzSI3HawE1NPLRUz8=", id="test/named", ts="1700000000",'
    ' nonce="j4h3g2", ext="eyJjZXJ0aWZpY2F0ZSI6eyJ2ZXJzaW9uIjoxLCJzY29wZXMiOlsic2NvcGU6YSIsInNjb3B'
    "lOmIvKiJdLCJzdGFydCI6MTY5OTk5OTIwMDAwMCwiZXhwaXJ5IjoxNzAwMDg1NjAwMDAwLCJzZWVkIjoiQUFBQUFBQUFR"
    "d0NBQUFBQUFBQUFBQUJCQkJCQkJCUXdDQkJCQkJCQkJCQkIiLCJpc3N1ZXIiOiJ0ZXN0L2lzc3VlciIsInNpZ25hdHVyZ"
    "SI6Imtxa2JaUUJ4ZTE2aVJubklqTWZSVXNOblkvUXpEVDVtcFNFNjNDajRhWTQ9In0sImF1dGhvcml6ZWRTY29wZXMiOl"
    'sic2NvcGU6YSJdfQ=="'
)


def header(mac: str, content_hash: str | None = None) -> str:
    extra = f', hash="{content_hash}"' if content_hash else ""
    return f'Hawk id="{ISSUER}", ts="1700000000", nonce="j4h3g2", mac="{mac}"{extra}'


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"", "", EMPTY_HASH),
        (b'{"a":1}', "application/json", JSON_HASH),
        (b'{"a":1}', "application/json; charset=utf-8", JSON_HASH),
        (b'{"a":1}', " Application/JSON ;x=y", JSON_HASH),
    ],
)
def test_the_payload_hash_is_that_of_others(body: bytes, content_type: str, expected: str) -> None:
    assert payload_hash(body, content_type) == expected


@pytest.mark.parametrize(
    "authorization",
    [
        header("W9/r2ZRTIAnXLgvS+RpXk377MO+8B8u6DU266hYSaWk=", EMPTY_HASH),
        header("P/t6+WHZCjKhEbSmuJYj1UtPWszPyARTqq1ELYCF43s="),
    ],
    ids=["with the hash of an empty body", "without a hash, as Go sends it"],
)
def test_a_signed_get_is_accepted(authorization: str) -> None:
    identity = an_authenticator().authenticate(a_request(authorization=authorization))
    assert identity.client_id == ISSUER


def test_a_signed_post_is_accepted() -> None:
    request = a_request(
        method="post",
        authorization=header("Ju5VL/qDHV2KhYOveVj2zjAb9MKe8uZ+4oEQHnIZGdM=", JSON_HASH),
        content_type="application/json",
        body=b'{"a":1}',
    )
    assert an_authenticator().authenticate(request).client_id == ISSUER


def test_a_bewit_is_accepted_until_it_expires_and_not_at_that_second() -> None:
    request = a_request(resources=(RESOURCE + "?limit=5",), bewit=BEWIT)
    expires = NOW + timedelta(seconds=900)
    before = an_authenticator(now=expires - timedelta(milliseconds=1))
    assert before.authenticate(request).client_id == ISSUER
    with pytest.raises(AuthenticationFailedError, match="Access expired"):
        an_authenticator(now=expires).authenticate(request)


@pytest.mark.parametrize(
    ("issuer", "signature"),
    [
        (ISSUER, "kqkbZQBxe16iRnnIjMfRUsNnY/QzDT5mpSE63Cj4aY4="),
        (None, "p58NrFq9V+EkVsTk3hjsBskNCOllBz6S/mAxKwcReLU="),
    ],
    ids=["named", "unnamed"],
)
def test_the_text_of_a_certificate_is_signed_as_others_sign_it(
    issuer: str | None, signature: str
) -> None:
    certificate = Certificate(
        seed=SEED,
        start=1699999200000,
        expiry=1700085600000,
        scopes=("scope:a", "scope:b/*"),
        signature="",
        issuer=issuer,
    )
    text = signed_text(certificate, "test/named")
    ours = base64.b64encode(hmac.digest(KEY.encode(), text.encode(), hashlib.sha256)).decode()
    assert ours == signature


def test_the_temporary_token_is_that_of_others() -> None:
    assert temporary_token(KEY, SEED) == "Vt_l4mOX_dAJcVoMotdYDOELUaoXec2Hmu99I6GmcY8"


def test_the_header_of_the_python_client_with_named_credentials_is_accepted() -> None:
    identity = an_authenticator().authenticate(a_request(authorization=NAMED_HEADER))
    assert identity.client_id == "test/named"
    assert identity.scopes == ("assume:anonymous", "scope:a")


@pytest.mark.parametrize("lacking", [("scope:*",), ("auth:create-client:test/*",)])
def test_the_same_header_fails_if_its_issuer_lacks_a_scope(lacking: tuple[str, ...]) -> None:
    authenticator = an_authenticator(a_client(scopes=lacking))
    with pytest.raises(AuthenticationFailedError, match=r"may not create|oversteps"):
        authenticator.authenticate(a_request(authorization=NAMED_HEADER))


@pytest.mark.parametrize("seconds", [-899, 899, -900, 900])
def test_a_clock_may_be_up_to_900_seconds_off(seconds: int) -> None:
    authorization = a_header(at=NOW + timedelta(seconds=seconds))
    assert an_authenticator().authenticate(a_request(authorization=authorization)).client_id


@pytest.mark.parametrize("seconds", [-901, 901])
def test_a_clock_that_is_further_off_is_refused(seconds: int) -> None:
    authorization = a_header(at=NOW + timedelta(seconds=seconds))
    with pytest.raises(AuthenticationFailedError, match="Stale timestamp"):
        an_authenticator().authenticate(a_request(authorization=authorization))


def test_the_decoded_path_is_not_what_was_signed() -> None:
    request = a_request(
        resources=("/api/worker-manager/v1/worker-pool/proj-x/pool-1",),
        authorization=header("W9/r2ZRTIAnXLgvS+RpXk377MO+8B8u6DU266hYSaWk=", EMPTY_HASH),
    )
    with pytest.raises(AuthenticationFailedError, match="Bad mac"):
        an_authenticator().authenticate(request)


def test_the_host_is_compared_in_lower_case() -> None:
    request = a_request(host=HOST.upper(), authorization=a_header())
    assert an_authenticator().authenticate(request).client_id == ISSUER
