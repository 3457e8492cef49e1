"""The signed message that Azure's attested document is: PKCS #7 SignedData (RFC 5652), in DER.

Azure signs the content itself; the usual way, over attributes that hold the content's digest, is
understood as well.  Where to read next: ``azure``, ``azure_certificates`` (who signed).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import (
    Certificate,
    DuplicateExtension,
    InvalidVersion,
    ObjectIdentifier,
    UnsupportedGeneralNameType,
)

from worker_manager.core.errors import ProofError

MOST_CERTIFICATES = 8
"""In one message; Azure sends the signer's alone."""

MALFORMED = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    DuplicateExtension,
    InvalidVersion,
    UnsupportedGeneralNameType,
)
"""What the library raises for bytes that are no message, or no certificate, as one is read."""

DATA = ObjectIdentifier("1.2.840.113549.1.7.1")
SIGNED_DATA = ObjectIdentifier("1.2.840.113549.1.7.2")
CONTENT_TYPE = ObjectIdentifier("1.2.840.113549.1.9.3")
MESSAGE_DIGEST = ObjectIdentifier("1.2.840.113549.1.9.4")
_PLAIN_RSA = "1.2.840.113549.1.1.1"
_DIGESTS: dict[str, hashes.HashAlgorithm] = {
    "2.16.840.1.101.3.4.2.1": hashes.SHA256(),
    "2.16.840.1.101.3.4.2.2": hashes.SHA384(),
    "2.16.840.1.101.3.4.2.3": hashes.SHA512(),
    # Azure writes the whole signature's algorithm where the digest's belongs.
    "1.2.840.113549.1.1.11": hashes.SHA256(),
    "1.2.840.113549.1.1.12": hashes.SHA384(),
    "1.2.840.113549.1.1.13": hashes.SHA512(),
}


@asn1.sequence
class Algorithm:
    """What was used."""

    name: ObjectIdentifier
    parameters: asn1.Null | None


@asn1.sequence
class Content:
    """What is said."""

    type: ObjectIdentifier
    octets: Annotated[bytes, asn1.Explicit(0)]


@asn1.sequence
class Attribute:
    """What is signed beside the content."""

    type: ObjectIdentifier
    values: asn1.SetOf[asn1.TLV]


@asn1.sequence
class CertificateName:
    """Which of the certificates a signer used."""

    issuer: asn1.TLV
    serial: int


@asn1.sequence
class Signer:
    """Who signed, how, and the signature."""

    version: int
    certificate: CertificateName
    digest: Algorithm
    attributes: Annotated[asn1.SetOf[asn1.TLV] | None, asn1.Implicit(0)]
    algorithm: Algorithm
    signature: bytes
    unsigned_attributes: Annotated[asn1.SetOf[asn1.TLV] | None, asn1.Implicit(1)]


@asn1.sequence
class SignedData:
    """Content, certificates and signers."""

    version: int
    digests: asn1.SetOf[Algorithm]
    content: Content
    certificates: Annotated[asn1.SetOf[Certificate] | None, asn1.Implicit(0)]
    revocations: Annotated[asn1.SetOf[asn1.TLV] | None, asn1.Implicit(1)]
    signers: asn1.SetOf[Signer]


@asn1.sequence
class Envelope:
    """The outermost layer."""

    type: ObjectIdentifier
    message: Annotated[SignedData, asn1.Explicit(0)]


@dataclass(frozen=True, slots=True)
class Message:
    """What a message says, who signed it, and what other certificates came along."""

    content: bytes
    signer: Certificate
    others: tuple[Certificate, ...]


def open_message(der: bytes) -> Message:
    """Take a message apart and check that its signer signed its content.

    Nothing is said yet about who the signer is.  Raises ``ProofError``.
    """
    try:
        envelope = asn1.decode_der(Envelope, der)
        signed = envelope.message
        certificates = [] if signed.certificates is None else signed.certificates.as_list()
        signers = signed.signers.as_list()
        is_expected = envelope.type == SIGNED_DATA and signed.content.type == DATA
        if not is_expected or len(signers) != 1 or len(certificates) > MOST_CERTIFICATES:
            raise ProofError("the document is no message signed by one")
        certificate = _certificate_of(signers[0], certificates)
        _verify(signers[0], certificate, signed.content.octets)
    except MALFORMED as error:
        raise ProofError("the document is not encoded as it should be") from error
    others = tuple(other for other in certificates if other != certificate)
    return Message(signed.content.octets, certificate, others)


def _certificate_of(signer: Signer, certificates: list[Certificate]) -> Certificate:
    named = signer.certificate
    issuer = asn1.encode_der(named.issuer)
    for certificate in certificates:
        is_issuer = certificate.issuer.public_bytes() == issuer
        if is_issuer and certificate.serial_number == named.serial:
            return certificate
    raise ProofError("the document lacks its signer's certificate")


def _verify(signer: Signer, certificate: Certificate, content: bytes) -> None:
    key = certificate.public_key()
    if not isinstance(key, RSAPublicKey):
        raise ProofError("the document is not signed with an RSA key")
    digest = _digest(signer)
    signed = content
    if signer.attributes is not None:
        _compare_attributes(signer.attributes.as_list(), content, digest)
        signed = asn1.encode_der(signer.attributes)
    try:
        key.verify(signer.signature, signed, PKCS1v15(), digest)
    except InvalidSignature:
        raise ProofError("the document was changed, or not signed by whom it names") from None


def _digest(signer: Signer) -> hashes.HashAlgorithm:
    """How the content was digested, if both places that say it agree."""
    digest = _DIGESTS.get(signer.digest.name.dotted_string)
    algorithm = signer.algorithm.name.dotted_string
    of_signature = digest if algorithm == _PLAIN_RSA else _DIGESTS.get(algorithm)
    if digest is None or of_signature is None or digest.name != of_signature.name:
        raise ProofError("the document is signed in a way that is not accepted")
    return digest


def _compare_attributes(
    attributes: list[asn1.TLV], content: bytes, digest: hashes.HashAlgorithm
) -> None:
    """Signed attributes count only if they speak of this content."""
    found = [attribute.parse(Attribute) for attribute in attributes]
    said = {
        attribute.type: [asn1.encode_der(value) for value in attribute.values.as_list()]
        for attribute in found
    }
    hasher = hashes.Hash(digest)
    hasher.update(content)
    expected = {
        CONTENT_TYPE: [asn1.encode_der(DATA)],
        MESSAGE_DIGEST: [asn1.encode_der(hasher.finalize())],
    }
    if len(said) != len(found) or any(said.get(name) != value for name, value in expected.items()):
        raise ProofError("the document's signed attributes are of other content")
