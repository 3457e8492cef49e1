"""The control side as JSON: for configuration files, and for runs in separate processes.

One document may hold any of the keys of ``_KEYS`` and is applied key by key::

    {"settings": {"vm_create_seconds": 30}, "latency": {"*": 0.05}, "buckets": {"enabled": true},
     "capacity": [{"place": "eastus", "instance_type": "Standard_D2s_v5", "count": 0}],
     "quotas": [{"location": "eastus", "spot": true, "cores": 100}],
     "faults": [{"kind": "lost", "action": "virtualMachines.put"}],
     "fates": [{"step": "cascade", "outcome": "left_behind", "kind": "networkInterfaces"}],
     "templates": {"/subscriptions/.../versions/1.0": {"resources": []}},
     "seed": [{"group": "rg", "number": 1000, "tags": {"a": "b"}}]}

Read next: ``server`` (the routes), ``cloud`` (what the keys mean).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from infra.local.clouds import control
from infra.local.clouds.arm.fates import Fate
from infra.local.clouds.arm.resources import Kind, Machine, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.arm.cloud import ArmCloud


def apply(cloud: ArmCloud, document: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a control document; what its keys answer, by key.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that makes no sense.
    """
    with cloud.present():
        return control.apply(cloud, document, _KEYS)


def state(cloud: ArmCloud) -> dict[str, Any]:
    """Counts of resources by type and provisioning state, of calls, of refusals."""
    with cloud.present():
        standing = {
            kind.value: Counter(one.state.value for one in cloud.estate.all_of(kind))
            for kind in Kind
        }
        standing["deployments"] = Counter(one.state.value for one in cloud.deployments.all())
        return {"resources": standing, **control.counts(cloud)}


def resources(cloud: ArmCloud) -> list[dict[str, Any]]:
    """Every resource of every kind that exists."""
    with cloud.present():
        return [_resource(one) for kind in Kind for one in cloud.estate.all_of(kind)]


def _resource(found: Resource) -> dict[str, Any]:
    shown = {
        "kind": found.kind.value,
        "group": found.group,
        "name": found.name,
        "location": found.location,
        "state": found.state.value,
        "tags": found.tags,
        "holder": found.holder.name if found.holder else None,
        "created_at": found.created_at,
    }
    if isinstance(found, Machine):
        shown |= {"power": found.power.value, "instance_type": found.size, "spot": found.spot}
        shown["vm_id"] = found.vm_id
    return shown


def _quotas(cloud: ArmCloud, value: Any) -> None:
    """``cores`` of null lifts the quota."""
    for entry in value:
        key = (str(entry["location"]), bool(entry.get("spot", False)))
        if entry["cores"] is None:
            cloud.quotas.pop(key, None)
        else:
            cloud.quotas[key] = int(entry["cores"])


def _fates(cloud: ArmCloud, value: Any) -> None:
    """An empty list clears all fates."""
    if not value:
        cloud.fates.clear()
    for entry in value:
        cloud.fates.add(Fate(**entry))


def _templates(cloud: ArmCloud, value: Any) -> None:
    """A template of null is one that does not exist."""
    cloud.deployments.templates.update(value)


def _seed(cloud: ArmCloud, value: Any) -> list[str]:
    return [name for entry in value for name in cloud.seed(**entry)]


def _warn(cloud: ArmCloud, value: Any) -> None:
    cloud.warn(value)


def _evict(cloud: ArmCloud, value: Any) -> None:
    cloud.evict(value)


def _delete(cloud: ArmCloud, value: Any) -> None:
    cloud.delete(value)


def _forget(cloud: ArmCloud, value: Any) -> None:
    """Names by type of resource: ``{"virtualMachines": ["vm-1"]}``."""
    for kind, names in value.items():
        cloud.forget(names, Kind(kind))


_KEYS: Mapping[str, control.Key] = {
    **control.SHARED,
    "quotas": _quotas,
    "fates": _fates,
    "templates": _templates,
    "seed": _seed,
    "warn": _warn,
    "evict": _evict,
    "delete": _delete,
    "forget": _forget,
}
