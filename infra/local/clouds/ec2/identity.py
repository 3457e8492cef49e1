"""Instance identity documents: how a simulated machine proves who it is.

EC2 signs a JSON document with RSA and SHA-256 (PKCS #1 v1.5) and serves both from the instance
metadata service ("Instance identity documents" in the EC2 User Guide).  Ours is signed with a key
of the simulated cloud, whose public half is given to the system as a trusted key.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

if TYPE_CHECKING:
    from infra.local.clouds.ec2.instances import Instance


class SigningKey:
    """The key pair of one simulated cloud (RSA 2048)."""

    def __init__(self, private_key: rsa.RSAPrivateKey) -> None:
        self._private_key = private_key

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
            self._private_key.public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            .decode()
        )

    def sign(self, document: str) -> str:
        """The base64 signature of exactly these characters."""
        signature = self._private_key.sign(document.encode(), padding.PKCS1v15(), hashes.SHA256())
        return base64.b64encode(signature).decode()


def document_of(instance: Instance) -> str:
    """The identity document of an instance, with the fields and layout of EC2's."""
    pending = datetime.fromtimestamp(instance.launched_at, UTC)
    fields = {
        "accountId": instance.reservation.owner_id,
        "architecture": instance.architecture,
        "availabilityZone": instance.zone,
        "billingProducts": None,
        "devpayProductCodes": None,
        "marketplaceProductCodes": None,
        "imageId": instance.image_id,
        "instanceId": instance.instance_id,
        "instanceType": instance.instance_type,
        "kernelId": None,
        "pendingTime": pending.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "privateIp": instance.private_ip,
        "ramdiskId": None,
        "region": instance.region,
        "version": "2017-09-30",
    }
    return json.dumps(fields, indent=2)
