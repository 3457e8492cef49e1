"""An EC2 instance's proof: its identity document, signed by AWS.

The document is what the instance reads at ``/latest/dynamic/instance-identity/document``, the
signature that at ``…/signature`` (RSA with SHA-256, PKCS #1 v1.5; not ``pkcs7``, not ``rsa2048``).
The document does not say when it was asked for, so a copied one stays valid: that a proof counts
once is the registration's part.  Where to read next: ``static`` (its twin).
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate

from worker_manager.core.errors import ProofError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker_manager.core.model import Json, Worker

KNOWN_FIELDS = (
    "privateIp",
    "accountId",
    "availabilityZone",
    "architecture",
    "imageId",
    "instanceType",
)
"""Compared where the cloud told us them at launch or in a list; their names are the document's."""

_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)
_BUNDLED = Path(__file__).with_name("aws_keys")


def load_keys(texts: Iterable[str]) -> tuple[RSAPublicKey, ...]:
    """Read RSA public keys from PEM texts, each of any number of public keys or certificates.

    AWS publishes a certificate per region that has its own; of a certificate only the key counts,
    as AWS lets them run out.  Raises ``ValueError`` for a text without a key or with another kind.
    """
    return tuple(key for text in texts for key in _keys_in(text))


def bundled_keys() -> tuple[RSAPublicKey, ...]:
    """The key with which AWS signs in all commercial regions that have none of their own.

    Source: the EC2 user guide's page of public certificates; without a bundled one: Hong Kong,
    Bahrain, Cape Town, Milan, Jakarta and later regions, China, GovCloud.
    """
    return load_keys(path.read_text("ascii") for path in sorted(_BUNDLED.glob("*.pem")))


def verify_document(
    proof: Mapping[str, object], worker: Worker, trusted_keys: Iterable[RSAPublicKey]
) -> None:
    """Return if ``proof`` shows that its sender runs on the instance that ``worker`` is.

    ``proof`` has a ``document`` and a ``signature``, both text.  Region and instance id must match
    always, the other fields where the worker's row knows them.  Raises ``ProofError`` otherwise,
    with a message for our log only.
    """
    match proof:
        case {"document": str(document), "signature": str(signature)} if document and signature:
            _verify_signature(document, signature, trusted_keys)
            _compare(_parse(document), worker)
        case _:
            raise ProofError("document and signature must both be text, and not empty")


def _keys_in(text: str) -> list[RSAPublicKey]:
    keys = []
    for block in _PEM.finditer(text):
        pem = block.group().encode()
        is_certificate = block.group(1) == "CERTIFICATE"
        key = (
            load_pem_x509_certificate(pem).public_key()
            if is_certificate
            else load_pem_public_key(pem)
        )
        if not isinstance(key, RSAPublicKey):
            raise ValueError("a trusted key is not an RSA key")
        keys.append(key)
    if not keys:
        raise ValueError("a text of trusted keys has no PEM block")
    return keys


def _verify_signature(document: str, signature: str, trusted_keys: Iterable[RSAPublicKey]) -> None:
    try:
        signed = document.encode()
        # The metadata service breaks the signature into lines.
        given = base64.b64decode("".join(signature.split()), validate=True)
    except ValueError as error:
        raise ProofError("document or signature is not encoded as it should be") from error
    if not any(_is_signed_by(key, given, signed) for key in trusted_keys):
        raise ProofError("no trusted key made this signature of the document")


def _is_signed_by(key: RSAPublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def _parse(document: str) -> Json:
    try:
        parsed = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ProofError("the signed document is not JSON") from error
    if not isinstance(parsed, dict):
        raise ProofError("the signed document is not an object")
    return parsed


def _compare(document: Json, worker: Worker) -> None:
    expected = {name: worker.identity.get(name) for name in KNOWN_FIELDS}
    known = {name: value for name, value in expected.items() if value is not None}
    known |= {"region": worker.location, "instanceId": worker.key.worker_id}
    wrong = [name for name, value in known.items() if document.get(name) != value]
    if wrong:
        raise ProofError(f"the document is of another instance: {', '.join(sorted(wrong))} differ")
