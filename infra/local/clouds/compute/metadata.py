"""What simulated machines ask of their cloud: who runs, and each machine's metadata server.

``powered`` and ``machine`` stand for the power switch and what a hypervisor knows.  ``Metadata``
answers the paths below ``/computeMetadata/v1/`` of "About VM metadata".  Read next: ``server``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.errors import ComputeError
from infra.local.clouds.compute.identity import claims_of
from infra.local.clouds.compute.instances import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.compute.cloud import ComputeCloud
    from infra.local.clouds.compute.instances import Instance

_POWERED = (Status.PROVISIONING, Status.STAGING, Status.RUNNING)


def powered(cloud: ComputeCloud) -> list[dict[str, Any]]:
    """The inserted (not seeded) instances that run or will, with their status.

    ``reboots`` counts how often each booted anew.
    """
    return [
        {
            "instance_id": instance.instance_id,
            "state": instance.status.value,
            "reboots": instance.reboots,
        }
        for instance in cloud.instances()
        if not instance.is_seeded and instance.status in _POWERED
    ]


def machine(cloud: ComputeCloud, instance_id: str) -> dict[str, Any]:
    """One instance as its hypervisor knows it; ``attributes`` is its user metadata.

    Raises ``ComputeError`` notFound when the instance is gone.
    """
    instance = cloud.instance(instance_id)
    return {
        "instance_id": instance.instance_id,
        "name": instance.name,
        "zone": instance.zone,
        "machine_type": instance.instance_type,
        "spot": instance.spot,
        "preempted": instance.is_preempted,
        "attributes": attributes_of(instance),
    }


def attributes_of(instance: Instance) -> dict[str, str]:
    """The user metadata of an instance, by key."""
    items = (instance.body.get("metadata") or {}).get("items") or ()
    return {item["key"]: str(item.get("value", "")) for item in items}


class Metadata:
    """The metadata server of one instance."""

    def __init__(self, cloud: ComputeCloud, instance_id: str) -> None:
        self._cloud = cloud
        self._instance = cloud.instance(instance_id)

    def answer(self, path: str, query: Mapping[str, str]) -> str:
        """The text at a path below ``/computeMetadata/v1/``.

        Raises ``ComputeError`` notFound, or invalid for a token without audience.
        """
        if path == "instance/service-accounts/default/identity":
            return self._identity(query)
        if path.rstrip("/") == "instance/attributes" and query.get("recursive") == "true":
            return json.dumps(attributes_of(self._instance))
        found = self._texts().get(path)
        if found is None:
            raise ComputeError("notFound", f"no metadata at {path}")
        return found

    def _texts(self) -> dict[str, str]:
        instance, settings = self._instance, self._cloud.settings
        scope = f"projects/{settings.project_number}"
        texts = {
            "project/project-id": settings.project,
            "project/numeric-project-id": str(settings.project_number),
            "instance/id": instance.instance_id,
            "instance/name": instance.name,
            "instance/zone": f"{scope}/zones/{instance.zone}",
            "instance/machine-type": f"{scope}/machineTypes/{instance.instance_type}",
            "instance/hostname": f"{instance.name}.c.{settings.project}.internal",
            "instance/preempted": str(instance.is_preempted).upper(),
            "instance/network-interfaces/0/ip": instance.private_ip,
        }
        for key, value in attributes_of(instance).items():
            texts[f"instance/attributes/{key}"] = value
        if email := self._email():
            texts["instance/service-accounts/default/email"] = email
        return texts

    def _identity(self, query: Mapping[str, str]) -> str:
        email = self._email()
        if not email:
            raise ComputeError("notFound", "the instance has no service account")
        if not query.get("audience"):
            raise ComputeError("invalid", "non-empty audience parameter required")
        claims = claims_of(
            self._instance,
            self._cloud.settings,
            email=email,
            audience=query["audience"],
            full=query.get("format") == "full",
            now=self._cloud.clock(),
        )
        return self._cloud.certified_keys()[0].token(claims)

    def _email(self) -> str:
        accounts = self._instance.body.get("serviceAccounts") or ()
        return str(accounts[0].get("email", "")) if accounts else ""
