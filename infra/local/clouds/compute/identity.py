"""Identity tokens: how a simulated machine proves who it is.

Compute Engine's metadata server gives each machine a JWT, signed with RS256 by one of the keys
whose certificates Google publishes at ``/oauth2/v1/certs`` ("Verify VM identity").  Ours are signed
with a key of the simulated cloud, whose certificate is published at the same path.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from infra.local.clouds.keys import SigningKey

if TYPE_CHECKING:
    from infra.local.clouds.compute.instances import Instance
    from infra.local.clouds.compute.settings import Settings

ISSUER = "https://accounts.google.com"
_SUBJECT = "federated-signon.system.gserviceaccount.com"


class CertifiedKey:
    """A signing key with its certificate; ``kid`` is the certificate's fingerprint."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        certificate = _certificate(key)
        self.kid = certificate.fingerprint(hashes.SHA1()).hex()
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()

    @classmethod
    def generate(cls) -> CertifiedKey:
        """Make a new one."""
        return cls(SigningKey.generate())

    def token(self, claims: dict[str, Any]) -> str:
        """A JWT with these claims."""
        header = {"alg": "RS256", "kid": self.kid, "typ": "JWT"}
        signed = f"{_part(json.dumps(header).encode())}.{_part(json.dumps(claims).encode())}"
        return f"{signed}.{_part(self._key.sign(signed.encode()))}"


def claims_of(
    instance: Instance, settings: Settings, *, email: str, audience: str, full: bool, now: float
) -> dict[str, Any]:
    """What the token of an instance says; ``full`` adds what is known of the instance."""
    claims: dict[str, Any] = {
        "aud": audience,
        "azp": settings.service_account_id,
        "exp": int(now + settings.token_seconds),
        "iat": int(now),
        "iss": ISSUER,
        "sub": settings.service_account_id,
    }
    if full:
        claims |= {"email": email, "email_verified": True}
        claims["google"] = {
            "compute_engine": {
                "instance_creation_timestamp": int(instance.created_at),
                "instance_id": instance.instance_id,
                "instance_name": instance.name,
                "project_id": instance.project,
                "project_number": settings.project_number,
                "zone": instance.zone,
            }
        }
    return claims


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _certificate(key: SigningKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _SUBJECT)])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.private_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .sign(key.private_key, hashes.SHA256())
    )
