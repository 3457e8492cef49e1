from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from worker_manager.core.errors import ProofError
from worker_manager.core.model import Location, State, Worker, WorkerKey
from worker_manager.identity.aws import bundled_keys, load_keys, verify_document

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS = rsa.generate_private_key(public_exponent=65537, key_size=2048)
FOREIGN = rsa.generate_private_key(public_exponent=65537, key_size=2048)
KNOWN = {
    "privateIp": "10.0.0.1",
    "accountId": "123456789012",
    "availabilityZone": "us-east-1a",
    "architecture": "x86_64",
    "imageId": "ami-1",
    "instanceType": "m5.large",
}
WORKER = Worker(
    key=WorkerKey("proj/ci", "us-east-1", "i-0abc"),
    provider_id="aws",
    location=Location("us-east-1"),
    state=State.REQUESTED,
    capacity=1,
    created=NOW,
    modified=NOW,
    expires=NOW + timedelta(days=7),
    identity=KNOWN,
)


def a_document(**overrides: Any) -> str:
    fields = KNOWN | {
        "region": "us-east-1",
        "instanceId": "i-0abc",
        "version": "2017-09-30",
        "pendingTime": "2026-01-01T00:00:00Z",
        "kernelId": None,
    }
    return json.dumps(fields | overrides, indent=2)


def sign(
    document: str, key: rsa.RSAPrivateKey = OURS, algorithm: HashAlgorithm | None = None
) -> str:
    signature = key.sign(document.encode(), PKCS1v15(), algorithm or SHA256())
    return base64.b64encode(signature).decode()


def a_proof(document: str | None = None, **overrides: Any) -> dict[str, object]:
    document = a_document() if document is None else document
    return {"document": document, "signature": sign(document)} | overrides


def check(proof: dict[str, object], worker: Worker = WORKER) -> None:
    verify_document(proof, worker, [OURS.public_key()])


def pem_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public.decode()


def a_certificate_of(key: rsa.RSAPrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ec2.amazonaws.com")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=20))
        .not_valid_after(NOW - timedelta(days=10))
        .sign(key, SHA256())
    )
    return certificate.public_bytes(Encoding.PEM).decode()


def test_the_document_of_the_worker_itself_is_accepted() -> None:
    check(a_proof())


def test_any_of_several_trusted_keys_is_enough() -> None:
    keys = [FOREIGN.public_key(), OURS.public_key()]
    verify_document(a_proof(), WORKER, keys)
    verify_document(a_proof(), WORKER, reversed(keys))


def test_a_signature_that_is_broken_into_lines_is_read() -> None:
    document = a_document()
    text = sign(document)
    check(a_proof(document, signature=f"{text[:64]}\n{text[64:128]}\r\n{text[128:]}\n"))


def test_a_tampered_document_is_refused() -> None:
    document = a_document(instanceId="i-0bad")
    tampered = a_document()
    with pytest.raises(ProofError, match="no trusted key"):
        check({"document": tampered, "signature": sign(document)})


def test_a_document_that_was_only_reformatted_is_refused() -> None:
    document = a_document()
    with pytest.raises(ProofError, match="no trusted key"):
        check({"document": json.dumps(json.loads(document)), "signature": sign(document)})


def test_a_foreign_key_is_refused() -> None:
    document = a_document()
    with pytest.raises(ProofError, match="no trusted key"):
        check({"document": document, "signature": sign(document, key=FOREIGN)})


def test_without_trusted_keys_nothing_is_accepted() -> None:
    with pytest.raises(ProofError, match="no trusted key"):
        verify_document(a_proof(), WORKER, [])


def test_an_older_hash_is_refused() -> None:
    document = a_document()
    with pytest.raises(ProofError, match="no trusted key"):
        check({"document": document, "signature": sign(document, algorithm=SHA1())})


@pytest.mark.parametrize(
    "proof",
    [
        {},
        {"document": a_document()},
        {"signature": "x"},
        {"document": "", "signature": sign("")},
        {"document": a_document(), "signature": ""},
        {"document": json.loads(a_document()), "signature": "x"},
        {"document": a_document(), "signature": ["x"]},
        {"document": a_document(), "signature": None},
    ],
)
def test_a_proof_without_both_parts_as_text_is_refused(proof: dict[str, object]) -> None:
    with pytest.raises(ProofError, match="both be text"):
        check(proof)


@pytest.mark.parametrize("signature", ["!!!!", "abc", "ü", "\ud800"])
def test_a_signature_that_is_not_base64_is_refused(signature: str) -> None:
    with pytest.raises(ProofError, match="encoded"):
        check(a_proof(signature=signature))


def test_a_document_that_cannot_be_bytes_is_refused() -> None:
    with pytest.raises(ProofError, match="encoded"):
        check({"document": "\ud800", "signature": "AAAA"})


@pytest.mark.parametrize("document", ["x", "[]", "null", '"text"', "[" * 100_000])
def test_a_signed_text_that_is_no_identity_document_is_refused(document: str) -> None:
    with pytest.raises(ProofError, match="signed document"):
        check(a_proof(document))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("region", "us-west-2"),
        ("region", None),
        ("instanceId", "i-0other"),
        ("privateIp", "10.0.0.2"),
        ("accountId", "999999999999"),
        ("availabilityZone", "us-east-1b"),
        ("architecture", "arm64"),
        ("imageId", "ami-2"),
        ("instanceType", "m5.24xlarge"),
    ],
)
def test_the_document_of_another_instance_is_refused_and_the_difference_logged(
    field: str, value: str | None
) -> None:
    with pytest.raises(ProofError, match=f": {field} differ"):
        check(a_proof(a_document(**{field: value})))


@pytest.mark.parametrize("unknown", [{}, {"privateIp": None}, {"imageId": "ami-1"}])
def test_what_is_not_known_of_a_machine_is_not_compared(unknown: dict[str, object]) -> None:
    document = a_document(privateIp="10.9.9.9", instanceType="other")
    check(a_proof(document), replace(WORKER, identity=unknown))


def test_region_and_instance_are_compared_even_if_nothing_else_is_known() -> None:
    stranger = replace(WORKER, identity={}, key=WorkerKey("proj/ci", "us-east-1", "i-0zzz"))
    with pytest.raises(ProofError, match="instanceId"):
        check(a_proof(), stranger)
    moved = replace(WORKER, identity={}, location=Location("eu-west-1"))
    with pytest.raises(ProofError, match="region"):
        check(a_proof(), moved)


def test_the_bundled_key_is_the_one_that_aws_publishes() -> None:
    (key,) = bundled_keys()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert hashlib.sha256(der).hexdigest() == (
        "8a61ba393a4aa067e73b9b5e75851ea4345aa5e6dab02538e8c1acd435b1f93f"
    )


def test_keys_are_read_from_public_keys_and_certificates_also_expired_ones() -> None:
    keys = load_keys([pem_of(OURS) + "\n" + pem_of(FOREIGN), a_certificate_of(FOREIGN)])
    expected = [OURS.public_key(), FOREIGN.public_key(), FOREIGN.public_key()]
    assert list(keys) == expected


@pytest.mark.parametrize(
    "text",
    ["", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"],
)
def test_a_text_without_a_readable_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        load_keys([text])


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not an RSA key"):
        load_keys([pem_of(ec.generate_private_key(ec.SECP256R1()))])
