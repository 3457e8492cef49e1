"""Who signs identity tokens in tests: Google's certificates and tokens, with keys of our own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.factories import NOW
from worker_manager.core.errors import ProofUnavailableError
from worker_manager.identity.downloads import Downloaded
from worker_manager.identity.google_keys import GoogleKeys

PROJECT, SERVICE_ACCOUNT = "proj", "104000000000000000001"
ZONE, INSTANCE = "us-central1-a", "4567890123456789012"
AUDIENCE = "https://tc.example.com"
OURS = rsa.generate_private_key(public_exponent=65537, key_size=2048)
FOREIGN = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def certificate_of(key: rsa.RSAPrivateKey) -> str:
    """A certificate as Google publishes them: of its key nothing but the key counts."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "federated-signon")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    valid = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=16))
    made = valid.public_key(key.public_key()).sign(key, SHA256())
    return made.public_bytes(Encoding.PEM).decode()


PUBLISHED = {"kid-1": certificate_of(OURS), "kid-2": certificate_of(FOREIGN)}


@dataclass
class Published:
    """Google's address of certificates; while ``fails`` it answers nothing."""

    certificates: dict[str, str] = field(default_factory=lambda: {"kid-1": PUBLISHED["kid-1"]})
    headers: dict[str, str] = field(
        default_factory=lambda: {"cache-control": "public, max-age=3600, must-revalidate"}
    )
    fails: bool = False
    asked: int = 0

    def __call__(self, url: str) -> Downloaded:
        self.asked += 1
        if self.fails:
            raise ProofUnavailableError(f"{url} does not answer")
        return Downloaded(json.dumps(self.certificates).encode(), self.headers)

    def keys(self) -> GoogleKeys:
        return GoogleKeys(fetching=self)


def claims(
    machine: dict[str, Any] | None = None, *, full: bool = True, **overrides: Any
) -> dict[str, Any]:
    """What a token says; ``machine`` changes what it says of the instance."""
    engine = {
        "instance_creation_timestamp": 1_700_000_000,
        "instance_id": INSTANCE,
        "instance_name": "worker-1",
        "project_id": PROJECT,
        "project_number": 12345,
        "zone": ZONE,
    }
    return {
        "aud": AUDIENCE,
        "azp": SERVICE_ACCOUNT,
        "email": "worker@proj.iam.gserviceaccount.com",
        "email_verified": True,
        "exp": int(NOW.timestamp()) + 3600,
        "iat": int(NOW.timestamp()),
        "iss": "https://accounts.google.com",
        "sub": SERVICE_ACCOUNT,
        **({"google": {"compute_engine": engine | (machine or {})}} if full else {}),
        **overrides,
    }


def a_token(
    said: dict[str, Any] | None = None,
    *,
    key: Any = OURS,
    algorithm: str = "RS256",
    kid: Any = "kid-1",
) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims() if said is None else said, key, algorithm, headers)
