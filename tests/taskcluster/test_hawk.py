from __future__ import annotations

import base64

import pytest

from tests.taskcluster.signing import (
    KEY,
    NOW,
    RESOURCE,
    a_bewit,
    a_header,
    a_request,
)
from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.taskcluster.hawk import (
    MAX_LENGTH,
    SignedRequest,
    decode_base64,
    read_claim,
    verify_claim,
)


def check(request: SignedRequest) -> None:
    claim = read_claim(request)
    assert claim is not None
    verify_claim(claim, request, key=KEY, now=NOW)


def bewit_of(*parts: str) -> str:
    return base64.urlsafe_b64encode("\\".join(parts).encode()).decode().rstrip("=")


def test_an_unsigned_request_claims_nothing() -> None:
    assert read_claim(a_request()) is None


def test_a_header_and_a_bewit_together_are_refused() -> None:
    request = a_request(authorization=a_header(), bewit=a_bewit())
    with pytest.raises(AuthenticationFailedError, match="together"):
        read_claim(request)


@pytest.mark.parametrize("scheme", ["Hawk", "hawk", "HAWK"])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    check(a_request(authorization=a_header().replace("Hawk", scheme, 1)))


def test_the_order_of_attributes_does_not_matter() -> None:
    attributes = a_header().removeprefix("Hawk ").split(", ")
    check(a_request(authorization="Hawk " + ",".join(reversed(attributes))))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "scheme"),
        ("Hawk", "format"),
        ("Hawk ", "attributes"),
        ("Bearer abc", "scheme"),
        ("Basic dGVzdDp0ZXN0", "scheme"),
        (a_header() + ', id="other"', "format"),
        (a_header() + ', nonce="j4h3g2"', "format"),
        (a_header() + ', color="red"', "format"),
        (a_header() + ', tsm="x"', "attributes"),
        (a_header() + ", stray", "format"),
        (a_header().replace('ts="', "ts='"), "format"),
        (a_header().replace('ts="1', 'ts="\\1'), "format"),
        (a_header().replace('ts="1', 'ts="x'), "seconds"),
        (a_header().replace('ts="1', 'ts="-1'), "seconds"),
        (a_header().replace('ts="1', 'ts="' + "1" * 20), "seconds"),
        (a_header().replace("ts=", "TS="), "format"),
        (a_header().replace("id=", "app="), "attributes"),
        (a_header().replace("mac=", "dlg="), "attributes"),
        (a_header().replace("nonce=", "app="), "attributes"),
        (a_header() + "\n", "printable"),
        (a_header().replace("j4h3g2", "j4h3g2\n"), "printable"),
        (a_header().replace("j4h3g2", "jähg2"), "printable"),
    ],
)
def test_a_malformed_header_is_refused(header: str, message: str) -> None:
    with pytest.raises(AuthenticationFailedError, match=message):
        read_claim(a_request(authorization=header))


def test_a_header_of_4096_characters_is_read_and_a_longer_one_is_not() -> None:
    frame = len(a_header(ext="x")) - 1
    check(a_request(authorization=a_header(ext="x" * (MAX_LENGTH - frame))))
    too_long = a_header(ext="x" * (MAX_LENGTH - frame + 1))
    with pytest.raises(AuthenticationFailedError, match="4096"):
        read_claim(a_request(authorization=too_long))


@pytest.mark.parametrize(
    "overrides",
    [
        {"method": "POST"},
        {"resources": (RESOURCE + "x",)},
        {"resources": ()},
        {"host": "other.example.com"},
        {"port": 80},
        {"authorization": a_header().replace("j4h3g2", "j4h3g3")},
        {"authorization": a_header().replace("1700000000", "1700000001")},
        {"authorization": a_header() + ', ext="x"'},
        {"authorization": a_header() + ', app="x"'},
        {"authorization": a_header().replace('mac="', 'mac="A')},
        {"authorization": a_header().replace('hash="B', 'hash="C')},
    ],
    ids=str,
)
def test_anything_else_than_what_was_signed_is_a_bad_mac(overrides: dict[str, object]) -> None:
    with pytest.raises(AuthenticationFailedError, match=r"^Bad mac$"):
        check(a_request(**({"authorization": a_header()} | overrides)))


def test_a_foreign_key_is_a_bad_mac() -> None:
    with pytest.raises(AuthenticationFailedError, match=r"^Bad mac$"):
        check(a_request(authorization=a_header(key="z" * 43)))


def test_app_and_dlg_are_part_of_what_is_signed() -> None:
    header = a_header(app="some-app", dlg="someone")
    check(a_request(authorization=header))
    with pytest.raises(AuthenticationFailedError, match="Bad mac"):
        check(a_request(authorization=header.replace("someone", "nobody")))


def test_one_of_several_resources_is_enough() -> None:
    check(a_request(resources=("/a", "/b", RESOURCE), authorization=a_header()))


@pytest.mark.parametrize(
    "overrides",
    [{"body": b'{"a":2}'}, {"body": b'{"a": 1}'}, {"body": b""}, {"content_type": "text/plain"}],
    ids=str,
)
def test_a_body_or_type_that_does_not_have_the_signed_hash_is_refused(
    overrides: dict[str, object],
) -> None:
    sent = {"body": b'{"a":1}', "content_type": "application/json"}
    header = a_header(method="POST", body='{"a":1}', content_type="application/json")
    check(a_request(method="POST", authorization=header, **sent))
    with pytest.raises(AuthenticationFailedError, match="payload hash"):
        check(a_request(method="POST", authorization=header, **(sent | overrides)))


def test_a_body_without_a_signed_hash_is_accepted_as_go_and_javascript_send_it() -> None:
    header = a_header(method="POST", body=None)
    check(a_request(method="POST", authorization=header, body=b"anything", content_type="x/y"))


@pytest.mark.parametrize("method", ["GET", "HEAD", "get"])
def test_a_bewit_works_for_get_and_head(method: str) -> None:
    check(a_request(method=method, bewit=a_bewit()))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_bewit_changes_nothing(method: str) -> None:
    with pytest.raises(AuthenticationFailedError, match="GET and HEAD"):
        check(a_request(method=method, bewit=a_bewit()))


@pytest.mark.parametrize(
    "bewit",
    [
        "",
        "%%%",
        "A",
        "\u00e4",
        "x" * (MAX_LENGTH + 4),
        bewit_of("id", "1700000900", "mac"),
        bewit_of("id", "1700000900", "mac", "", ""),
        bewit_of("", "1700000900", "mac", ""),
        bewit_of("id", "1700000900", "", ""),
        bewit_of("id", "soon", "mac", ""),
        bewit_of("id", "1700000900", "mac", "\n"),
        bewit_of("\u00e4", "1700000900", "mac", ""),
    ],
)
def test_a_malformed_bewit_is_refused(bewit: str) -> None:
    with pytest.raises(AuthenticationFailedError):
        read_claim(a_request(bewit=bewit))


def test_a_bewit_is_good_for_its_own_resource_only() -> None:
    with pytest.raises(AuthenticationFailedError, match="Bad mac"):
        check(a_request(resources=(RESOURCE + "?limit=6",), bewit=a_bewit()))


def test_a_bewit_cannot_be_prolonged() -> None:
    client_id, _, mac, ext = decode_base64(a_bewit()).decode().split("\\")
    with pytest.raises(AuthenticationFailedError, match="Bad mac"):
        check(a_request(bewit=bewit_of(client_id, "1800000000", mac, ext)))


def test_a_bewit_in_the_standard_alphabet_and_with_padding_is_read_too() -> None:
    raw = decode_base64(a_bewit(ext="?>?>"))
    check(a_request(bewit=base64.b64encode(raw).decode()))


@pytest.mark.parametrize("text", ["-_8", "-_8=", "+/8", "+/8="])
def test_both_alphabets_are_decoded_with_or_without_padding(text: str) -> None:
    assert decode_base64(text) == b"\xfb\xff"


@pytest.mark.parametrize("text", ["a b c", "ab=c", "A", "ä"])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_base64(text)


def test_neither_key_nor_signature_shows_when_a_request_is_printed() -> None:
    header = a_header()
    shown = repr(a_request(authorization=header, bewit="secret-bewit", body=b"secret-body"))
    assert header not in shown
    assert "secret" not in shown
