"""Attested data: how a simulated machine proves who it is.

Azure signs a JSON document as PKCS #7 and serves it from the instance metadata service ("Azure
Instance Metadata Service", attested data).  Only the signer's certificate is in it; the certificate
of its issuer is found under a URL that it names (authority information access), and leads to a root
that verifiers know.  Ours has a chain of its own, whose root is given to the system as trusted.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from infra.local.clouds.keys import SigningKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import rsa

    from infra.local.clouds.arm.resources import Machine

ISSUER_PATH = "/_certificates/issuer.crt"
"""Where the server has the issuer's certificate, as DER."""
_ROOT_FROM = datetime(2020, 1, 1, tzinfo=UTC)
_ROOT_TO = datetime(2060, 1, 1, tzinfo=UTC)
_ROOT_SERIAL = 2020


class Attestation:
    """The chain of one simulated cloud: a root, an issuer, and the signer of documents.

    The root follows from its key alone: another process with the same key has the same root.
    ``issuer_url`` is where verifiers shall find the issuer's certificate.
    """

    def __init__(self, root: SigningKey, *, issuer_url: str, now: datetime) -> None:
        self._root = root
        self.root = _root_of(root)
        issuer, self._signer_key = SigningKey.generate(), SigningKey.generate()
        ending = now + timedelta(days=365)
        self.issuer = _certificate(
            "Simulated Azure Issuing CA 01",
            issuer.private_key.public_key(),
            issuer=self.root.subject,
            issuer_key=root.private_key.public_key(),
            lasting=(now - timedelta(days=1), ending),
            is_authority=True,
        ).sign(root.private_key, hashes.SHA256())
        access = x509.AccessDescription(
            AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(issuer_url)
        )
        self.signer = (
            _certificate(
                "metadata.azure.com",
                self._signer_key.private_key.public_key(),
                issuer=self.issuer.subject,
                issuer_key=issuer.private_key.public_key(),
                lasting=(now - timedelta(days=1), ending),
                is_authority=False,
            )
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName("metadata.azure.com")]), critical=False
            )
            .add_extension(x509.AuthorityInformationAccess([access]), critical=False)
            .sign(issuer.private_key, hashes.SHA256())
        )

    def sign(self, document: bytes) -> str:
        """The base64 PKCS #7 message of these bytes, without signed attributes."""
        message = (
            pkcs7.PKCS7SignatureBuilder()
            .set_data(document)
            .add_signer(self.signer, self._signer_key.private_key, hashes.SHA256())
            .sign(
                serialization.Encoding.DER,
                [pkcs7.PKCS7Options.Binary, pkcs7.PKCS7Options.NoAttributes],
            )
        )
        return base64.b64encode(message).decode()


def root_pem(root: SigningKey) -> str:
    """The root certificate that follows from a key, as PEM text."""
    return _root_of(root).public_bytes(serialization.Encoding.PEM).decode()


def document_of(
    machine: Machine, *, subscription: str, nonce: str, now: float, seconds: float
) -> bytes:
    """The attested document of a machine, with the fields of Azure's."""
    fields = {
        "licenseType": "",
        "nonce": nonce,
        "plan": {"name": "", "product": "", "publisher": ""},
        "sku": "",
        "subscriptionId": subscription,
        "timeStamp": {"createdOn": _stamp(now), "expiresOn": _stamp(now + seconds)},
        "vmId": machine.vm_id,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%m/%d/%y %H:%M:%S -0000")


def _root_of(key: SigningKey) -> x509.Certificate:
    return _certificate(
        "Simulated Azure Root",
        key.private_key.public_key(),
        issuer=_name("Simulated Azure Root"),
        issuer_key=key.private_key.public_key(),
        lasting=(_ROOT_FROM, _ROOT_TO),
        is_authority=True,
        serial=_ROOT_SERIAL,
    ).sign(key.private_key, hashes.SHA256())


def _certificate(
    common_name: str,
    key: rsa.RSAPublicKey,
    *,
    issuer: x509.Name,
    issuer_key: rsa.RSAPublicKey,
    lasting: tuple[datetime, datetime],
    is_authority: bool,
    serial: int | None = None,
) -> x509.CertificateBuilder:
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(_name(common_name))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(lasting[0])
        .not_valid_after(lasting[1])
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False
        )
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "US"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Simulated Azure"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
