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

if TYPE_CHECKING:
    from infra.local.clouds.ec2.instances import Instance
    from infra.local.clouds.keys import SigningKey


def signature_of(key: SigningKey, document: str) -> str:
    """The base64 signature of exactly these characters."""
    return base64.b64encode(key.sign(document.encode())).decode()


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
