from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs7 import PKCS7Options, PKCS7SignatureBuilder
from hypothesis import given
from hypothesis import strategies as st

from tests.azure_signer import (
    BETWEEN,
    ISSUER_URL,
    OTHER_URL,
    ROOT,
    SIGNER,
    VM_ID,
    Identity,
    a_document,
    content,
    issue,
    message,
)
from tests.factories import NOW, a_worker
from worker_manager.core.errors import ProofError, ProofUnavailableError
from worker_manager.core.model import State
from worker_manager.identity.azure import verify_document
from worker_manager.identity.azure_certificates import AzureAnchors, bundled_roots, load_roots
from worker_manager.identity.azure_downloads import IssuerDownloads
from worker_manager.identity.downloads import Downloaded

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Worker

WORKER = a_worker("vm-1", group="eastus", state=State.REQUESTED, identity={"vmId": VM_ID})
SHA256_OID = bytes.fromhex("0609608648016503040201")
SHA1_RSA_OID = bytes.fromhex("06092a864886f70d010105")
SHA3_OID = bytes.fromhex("0609608648016503040208")
SHA256_RSA_OID = bytes.fromhex("06092a864886f70d01010b")


class Web:
    """What is at each address; ``None`` is nothing, as is an address that it does not know."""

    def __init__(self, **found: bytes | None) -> None:
        self.found: dict[str, bytes | None] = {
            ISSUER_URL: found.get("first", BETWEEN.der),
            OTHER_URL: found.get("second"),
        }
        self.asked: list[str] = []

    def __call__(self, url: str) -> Downloaded:
        self.asked.append(url)
        body = self.found.get(url)
        if body is None:
            raise ProofUnavailableError(f"{url} does not answer")
        return Downloaded(body)

    def anchors(self) -> AzureAnchors:
        return AzureAnchors([ROOT.certificate], IssuerDownloads(fetching=self))


def check(
    document: object,
    *,
    worker: Worker = WORKER,
    anchors: AzureAnchors | None = None,
    now: datetime = NOW,
) -> None:
    verify_document({"document": document}, worker, anchors=anchors or Web().anchors(), now=now)


def as_azure_names_it(der: bytes) -> bytes:
    """The digest's algorithm named as Azure does, by that of the whole signature."""
    return der.replace(SHA256_OID, SHA256_RSA_OID)


def encoded(der: bytes) -> str:
    return base64.b64encode(der).decode()


def a_signer(name: str = "metadata.azure.com", **how: Any) -> Identity:
    usual: dict[str, Any] = {"by": BETWEEN, "is_authority": False, "urls": [ISSUER_URL]}
    return issue(name, **(usual | how))


REGIONAL = a_signer("eastus.metadata.azure.com", key=SIGNER.key)


@pytest.mark.parametrize(
    "document",
    [
        a_document(),
        encoded(as_azure_names_it(message())),
        a_document(options=()),
        a_document(by=REGIONAL),
        a_document(others=[BETWEEN, ROOT]),
        a_document(content(vmId=VM_ID.upper())),
        "\r\n".join(a_document()[start : start + 64] for start in range(0, 9000, 64)),
    ],
    ids=count(),
)
def test_the_document_of_the_worker_itself_is_accepted_every_time(document: str) -> None:
    anchors = Web().anchors()
    check(document, anchors=anchors)
    check(document, anchors=anchors)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (None, "must be text"),
        ("", "must be text"),
        ({"a": 1}, "must be text"),
        ("A" * 65_537, "must be text"),
        ("!", "not base64"),
        ("ü", "not base64"),
        ("AAAA", "not encoded"),
        (encoded(b"{}"), "not encoded"),
        (encoded(ROOT.der), "not encoded"),
        (encoded(message()[:-1]), "not encoded"),
        (encoded(message() + b"\0"), "not encoded"),
        (encoded(message().replace(VM_ID.encode(), VM_ID[::-1].encode())), "was changed"),
        (encoded(message(options=()).replace(b'"sku"', b'"SKU"')), "attributes"),
        (encoded(message().replace(SHA256_OID, SHA1_RSA_OID)), "not accepted"),
        (encoded(message().replace(SHA256_OID, SHA3_OID)), "not accepted"),
        (a_document(options=[PKCS7Options.NoCerts, PKCS7Options.NoAttributes]), "lacks"),
        (a_document(options=[PKCS7Options.DetachedSignature]), "not encoded"),
        (a_document(by=replace(SIGNER, key=BETWEEN.key)), "was changed"),
        (a_document(others=[a_signer(key=SIGNER.key) for _ in range(8)]), "signed by one"),
        (a_document(b"\xff"), "not JSON"),
        (a_document(b"[" * 20_000), "not JSON"),
        (a_document([1]), "not an object"),
        (a_document(content(vmId=VM_ID.replace("a", "b"))), "another machine"),
        (a_document(content(vmId=None)), "another machine"),
        (a_document(content(timeStamp=None)), "until when"),
        (a_document(content(timeStamp={"expiresOn": "2026-01-03T00:00:00Z"})), "until when"),
        (a_document(content(timeStamp={"expiresOn": "01/02/26 03:04:05 -0000"})), "expired"),
    ],
    ids=count(),
)
def test_a_document_that_proves_nothing_is_refused_without_asking_anybody(
    document: object, why: str
) -> None:
    web = Web()
    with pytest.raises(ProofError, match=why):
        check(document, anchors=web.anchors())
    assert web.asked == []


def test_a_document_signed_by_two_or_with_another_kind_of_key_is_refused() -> None:
    builder = PKCS7SignatureBuilder().set_data(json.dumps(content()).encode())
    for signer in (SIGNER, BETWEEN):
        builder = builder.add_signer(signer.certificate, signer.key, SHA256())
    with pytest.raises(ProofError, match="signed by one"):
        check(encoded(builder.sign(Encoding.DER, [PKCS7Options.Binary])))
    with pytest.raises(ProofError, match="RSA"):
        check(a_document(by=a_signer(key=ec.generate_private_key(ec.SECP256R1()))))


@pytest.mark.parametrize(
    "name",
    [
        "example.com",
        "metadata.azure.com.example.com",
        "xmetadata.azure.com",
        "metadata.azure.us",
        "azure.com",
    ],
)
def test_whoever_is_not_azures_metadata_service_is_refused(name: str) -> None:
    web = Web()
    with pytest.raises(ProofError, match="not signed by Azure"):
        check(a_document(by=a_signer(name, key=SIGNER.key)), anchors=web.anchors())
    assert web.asked == []


@pytest.mark.parametrize(
    "later", [timedelta(days=-11), timedelta(days=11)], ids=["not yet", "no more"]
)
def test_certificates_that_are_not_valid_now_are_refused(later: timedelta) -> None:
    """Of the signer, and of the issuer."""
    document = a_document(content(timeStamp={"expiresOn": "01/01/30 00:00:00 -0000"}))
    with pytest.raises((ProofError, ProofUnavailableError)):
        check(document, now=NOW + later)
    dates: dict[str, Any] = {"start": NOW + later, "end": NOW + later + timedelta(hours=1)}
    with pytest.raises(ProofError):
        check(a_document(by=a_signer(key=SIGNER.key, **dates)))
    issuer = issue("Test Issuing CA 02", by=ROOT, key=BETWEEN.key, **dates)
    signer = a_signer(key=SIGNER.key, by=issuer)
    with pytest.raises(ProofError, match="issuer is not known"):
        check(a_document(by=signer), anchors=Web(first=issuer.der).anchors())


class TestAForgery:
    """Whoever signs with something self-made is refused, and nothing of it is kept."""

    FOREIGN_ROOT = issue("Test Root")
    BY_NAME = issue("Test Issuing CA 01", by=FOREIGN_ROOT)
    """A self-made issuer with the names that a real one has: the reference would trust it."""
    NO_AUTHORITY = issue("Test Issuing CA 01", by=ROOT, key=BY_NAME.key, is_authority=False)

    @pytest.mark.parametrize(
        ("by", "others", "downloaded"),
        [
            (BY_NAME, [], BY_NAME),
            (BY_NAME, [], BETWEEN),
            (BY_NAME, [BY_NAME, FOREIGN_ROOT], BY_NAME),
            (NO_AUTHORITY, [], NO_AUTHORITY),
            (NO_AUTHORITY, [NO_AUTHORITY], NO_AUTHORITY),
            (SIGNER, [SIGNER], BETWEEN),
            (None, [], BETWEEN),
        ],
        ids=[
            "downloaded",
            "of another key",
            "sent along",
            "no authority",
            "no authority, sent along",
            "azures own signer",
            "signed by itself",
        ],
    )
    def test_of_an_issuer_is_refused(
        self, by: Identity | None, others: list[Identity], downloaded: Identity
    ) -> None:
        anchors = Web(first=downloaded.der).anchors()
        forged = a_document(by=a_signer(by=by), others=others)
        with pytest.raises(ProofError, match=r"no root|not known"):
            check(forged, anchors=anchors)
        assert anchors.kept == ()
        assert anchors.roots == (ROOT.certificate,)

    @given(st.integers(0, len(message()) - 1), st.integers(1, 255))
    @pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
    def test_of_any_byte_is_refused_or_changes_nothing(self, place: int, change: int) -> None:
        der = bytearray(message())
        der[place] ^= change
        anchors = AzureAnchors([ROOT.certificate, BETWEEN.certificate])
        with_other_id = replace(WORKER, identity={"vmId": "another"})
        with pytest.raises(ProofError):
            check(encoded(bytes(der)), worker=with_other_id, anchors=anchors)


class TestAnIssuer:
    def test_is_downloaded_once(self) -> None:
        web = Web()
        anchors = web.anchors()
        for _ in range(3):
            check(a_document(), anchors=anchors)
        assert web.asked == [ISSUER_URL]
        assert anchors.kept == (BETWEEN.certificate,)
        assert anchors.roots == (ROOT.certificate,)

    @pytest.mark.parametrize("first", [None, b"<html>", issue("Another", by=ROOT).der], ids=count())
    def test_is_looked_for_at_the_next_address(self, first: bytes | None) -> None:
        web = Web(first=first, second=BETWEEN.der)
        check(a_document(), anchors=web.anchors())
        assert web.asked == [ISSUER_URL, OTHER_URL]

    @pytest.mark.parametrize("second", [None, b"<html>", SIGNER.der], ids=count())
    def test_that_cannot_be_had_is_no_refusal(self, second: bytes | None) -> None:
        """B30: taskcluster PR#7673."""
        web = Web(first=None, second=second)
        anchors = web.anchors()
        with pytest.raises(ProofUnavailableError):
            check(a_document(), anchors=anchors)
        web.found[ISSUER_URL] = BETWEEN.der
        check(a_document(), anchors=anchors)

    def test_may_stand_behind_another_that_a_root_signed(self) -> None:
        upper = issue("Test Upper CA", by=ROOT, key=BETWEEN.key)
        lower = issue("Test Lower CA", by=upper, urls=[OTHER_URL], key=BETWEEN.key)
        signer = a_signer(by=lower, key=SIGNER.key)
        anchors = Web(first=lower.der, second=upper.der).anchors()
        check(a_document(by=signer), anchors=anchors)
        assert anchors.kept == (lower.certificate, upper.certificate)

    def test_is_looked_for_at_no_more_than_three_addresses(self) -> None:
        urls = [f"http://cacerts.digicert.com/{number}.crt" for number in range(5)]
        web = Web()
        with pytest.raises(ProofUnavailableError):
            check(a_document(by=a_signer(urls=urls, key=SIGNER.key)), anchors=web.anchors())
        assert web.asked == urls[:3]

    @pytest.mark.parametrize(
        ("url", "allowed"),
        [
            ("http://cacerts.digicert.com/a.crt", True),
            ("https://CACERTS.digicert.CN:443/a.crt", True),
            ("http://cacerts.geotrust.com:80/a.crt", True),
            ("http://caissuers.microsoft.com/a.crt", True),
            ("https://www.microsoft.com/pkiops/certs/a%20b.crt", True),
            ("http://127.0.0.1:8001/a.crt", True),
            ("http://127.0.0.1:8002/a.crt", False),
            ("http://www.microsoft.com/", False),
            ("http://www.microsoft.com/pkiops/certs/../x.crt", False),
            ("http://www.microsoft.com/pkiops/certs/%2e%2e/x.crt", False),
            ("http://cacerts.digicert.com:8080/a.crt", False),
            ("http://cacerts.digicert.com:x/a.crt", False),
            ("http://user@cacerts.digicert.com/a.crt", False),
            ("http://cacerts.digicert.com@example.com/a.crt", False),
            ("http://cacerts.digicert.com.example.com/a.crt", False),
            ("http://169.254.169.254/latest/meta-data", False),
            ("http://[::1]/a.crt", False),
            ("http://[x/a.crt", False),
            ("ftp://cacerts.digicert.com/a.crt", False),
            ("file:///etc/passwd", False),
            ("//cacerts.digicert.com/a.crt", False),
            ("", False),
        ],
    )
    def test_is_looked_for_only_where_authorities_keep_theirs(
        self, url: str, allowed: bool
    ) -> None:
        downloads = IssuerDownloads(further_hosts=["127.0.0.1:8001"])
        signer = a_signer(urls=[url], key=SIGNER.key)
        assert downloads.addresses(signer.certificate) == ([url] if allowed else [])

    def test_that_may_be_looked_for_nowhere_is_refused(self) -> None:
        signer = a_signer(urls=["http://example.com/a.crt"], key=SIGNER.key)
        with pytest.raises(ProofError, match="issuer is not known"):
            check(a_document(by=signer))

    def test_gives_way_to_later_ones(self) -> None:
        anchors = Web(first=None).anchors()
        issuers = [issue(f"Test CA {n}", by=ROOT, key=BETWEEN.key) for n in range(17)]
        for issuer in issuers:
            check(
                a_document(by=a_signer(by=issuer, key=SIGNER.key), others=[issuer]),
                anchors=anchors,
            )
        assert anchors.kept == tuple(issuer.certificate for issuer in issuers[1:])

    def test_that_runs_out_is_downloaded_anew(self) -> None:
        short = issue("Test CA", by=ROOT, key=BETWEEN.key, end=NOW + timedelta(hours=1))
        web = Web(first=short.der)
        anchors = web.anchors()
        document = a_document(by=a_signer(by=short, key=SIGNER.key))
        check(document, anchors=anchors)
        web.found[ISSUER_URL] = issue("Test CA", by=ROOT, key=BETWEEN.key).der
        check(document, anchors=anchors, now=NOW + timedelta(hours=2))
        assert web.asked == [ISSUER_URL, ISSUER_URL]


def test_a_machine_whose_vm_id_is_not_known_yet_is_told_to_come_back() -> None:
    unknown = replace(WORKER, identity={"resourceGroup": "rg"})
    with pytest.raises(ProofUnavailableError, match="not known yet"):
        check(a_document(), worker=unknown)
    with pytest.raises(ProofError):
        check(a_document(by=a_signer(by=None)), worker=unknown)


def test_the_bundled_roots_are_those_that_microsoft_names() -> None:
    """https://learn.microsoft.com/azure/security/fundamentals/azure-ca-details."""
    assert {
        root.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value: root.fingerprint(
            SHA256()
        ).hex()
        for root in bundled_roots()
    } == {
        "DigiCert Global Root G2": (
            "cb3ccbb76031e5e0138f8dd39a23f9de47ffc35e43c1144cea27d46a5ab1cb5f"
        ),
        "Microsoft RSA Root Certificate Authority 2017": (
            "c741f70f4b2a8d88bf2e71c14122ef53ef10eba0cfa5e64cfa20f418853073e0"
        ),
        "Microsoft TLS RSA Root G2": (
            "6a170583db584151e1c454eeca2a64cc5d8e484a5bd1156e720b4458654ee9e5"
        ),
    }
    for root in bundled_roots():
        root.verify_directly_issued_by(root)


def test_further_roots_are_read_from_a_text_of_any_number() -> None:
    assert load_roots([ROOT.pem + BETWEEN.pem]) == (ROOT.certificate, BETWEEN.certificate)
    with pytest.raises(ValueError):
        load_roots(["no certificate"])
