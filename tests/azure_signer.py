"""Who signs attested documents in tests: a root, an issuer, Azure's signer, and messages."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs7 import PKCS7Options, PKCS7SignatureBuilder
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

ISSUER_URL = "http://www.microsoft.com/pkiops/certs/issuer.crt"
OTHER_URL = "http://caissuers.microsoft.com/pkiops/certs/issuer.crt"
VM_ID = "0b1c2d3e-0000-4000-8000-00000000000a"
TIME_FORMAT = "%m/%d/%y %H:%M:%S -0000"


def _rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


def issue(
    name: str,
    *,
    by: Identity | None = None,
    key: Key | None = None,
    is_authority: bool = True,
    urls: Iterable[str] = (),
    start: datetime = NOW - timedelta(days=10),
    end: datetime = NOW + timedelta(days=10),
) -> Identity:
    """A certificate as public authorities make them; signed by itself without ``by``."""
    key = key or _rsa()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_key = key if by is None else by.key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )
    for extension, is_critical in _extensions(name, key, issuer_key, is_authority, urls):
        builder = builder.add_extension(extension, is_critical)
    return Identity(builder.sign(issuer_key, SHA256()), key)


def _extensions(
    name: str, key: Key, issuer_key: Key, is_authority: bool, urls: Iterable[str]
) -> Iterable[tuple[x509.ExtensionType, bool]]:
    yield x509.BasicConstraints(ca=is_authority, path_length=None), True
    yield (
        x509.KeyUsage(
            digital_signature=not is_authority,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        ),
        True,
    )
    yield x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False
    yield x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False
    yield x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False
    if not is_authority:
        yield x509.SubjectAlternativeName([x509.DNSName(name)]), False
    places = [
        x509.AccessDescription(
            AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(url)
        )
        for url in urls
    ]
    ocsp = x509.UniformResourceIdentifier("http://oneocsp.microsoft.com/ocsp")
    places.append(x509.AccessDescription(AuthorityInformationAccessOID.OCSP, ocsp))
    yield x509.AuthorityInformationAccess(places), False


ROOT = issue("Test Root")
BETWEEN = issue("Test Issuing CA 01", by=ROOT)
SIGNER = issue("metadata.azure.com", by=BETWEEN, is_authority=False, urls=[ISSUER_URL, OTHER_URL])


def content(**overrides: Any) -> dict[str, Any]:
    """What an attested document says."""
    return {
        "licenseType": "",
        "nonce": "20260102-090405",
        "plan": {"name": "", "product": "", "publisher": ""},
        "sku": "win2022",
        "subscriptionId": "00000000-0000-4000-8000-000000000000",
        "timeStamp": {
            "createdOn": NOW.strftime(TIME_FORMAT),
            "expiresOn": (NOW + timedelta(hours=6)).strftime(TIME_FORMAT),
        },
        "vmId": VM_ID,
        **overrides,
    }


def message(
    said: Any = None,
    *,
    by: Identity = SIGNER,
    others: Sequence[Identity] = (),
    options: Sequence[PKCS7Options] = (PKCS7Options.NoAttributes,),
) -> bytes:
    """A signed message in DER; bytes are signed as they are, anything else as JSON."""
    octets = said if isinstance(said, bytes) else json.dumps(said or content()).encode()
    builder = PKCS7SignatureBuilder().set_data(octets)
    builder = builder.add_signer(by.certificate, by.key, SHA256())
    for other in others:
        builder = builder.add_certificate(other.certificate)
    return builder.sign(Encoding.DER, [PKCS7Options.Binary, *options])


def a_document(said: Any = None, **how: Any) -> str:
    """A signed message as a machine sends it."""
    return base64.b64encode(message(said, **how)).decode()
