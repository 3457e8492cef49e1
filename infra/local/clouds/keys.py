"""The key with which a simulated cloud signs what its machines prove who they are with.

Read next: a cloud's ``identity``, which writes what is signed.
"""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa


class SigningKey:
    """The key pair of one simulated cloud (RSA 2048)."""

    def __init__(self, private_key: rsa.RSAPrivateKey) -> None:
        self.private_key = private_key

    @classmethod
    def generate(cls) -> SigningKey:
        """Make a new pair."""
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=2048))

    @classmethod
    def from_pem(cls, pem: str) -> SigningKey:
        """Read a private key; raises ``ValueError`` when it is not an RSA key."""
        key = serialization.load_pem_private_key(pem.encode(), password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError("the signing key must be an RSA private key")
        return cls(key)

    def public_pem(self) -> str:
        """The public half, as PEM text."""
        return (
            self.private_key.public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            .decode()
        )

    def sign(self, content: bytes) -> bytes:
        """The signature of exactly these bytes: PKCS #1 v1.5 with SHA-256."""
        return self.private_key.sign(content, padding.PKCS1v15(), hashes.SHA256())
