"""The control side as JSON: for configuration files, and for runs in separate processes.

One document may hold any of the keys of ``_KEYS`` and is applied key by key::

    {"settings": {"insert_seconds": 2}, "latency": {"*": 0.05}, "buckets": {"enabled": true},
     "capacity": [{"place": "us-central1-a", "instance_type": "n2-standard-4", "count": 0}],
     "quotas": [{"region": "us-central1", "metric": "CPUS", "limit": 10}],
     "faults": [{"kind": "error", "action": "instances.insert", "code": "INTERNAL_ERROR",
                 "late": true}],
     "bad_images": ["none"], "bad_machine_types": ["n0-tiny"], "unreachable": ["us-east1-b"],
     "seed": [{"zone": "us-central1-a", "number": 1000, "labels": {"name": "x"}}],
     "seed_disks": [{"zone": "us-central1-a", "number": 2, "labels": {}}],
     "preempt": ["123"], "stop": ["124"], "forget": ["125"], "forget_machines": ["126"],
     "rotate_keys": null}

Read next: ``server`` (the routes), ``cloud`` (what the keys mean).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from infra.local.clouds import control
from infra.local.clouds.compute import seeding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.compute.cloud import ComputeCloud
    from infra.local.clouds.compute.instances import Instance


def apply(cloud: ComputeCloud, document: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a control document; what its keys answer, by key.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that makes no sense.
    """
    return control.apply(cloud, document, _KEYS)


def state(cloud: ComputeCloud) -> dict[str, Any]:
    """Counts of instances by zone and status, of disks, of calls and of refusals."""
    with cloud.lock:
        standing: dict[str, Counter[str]] = {}
        for instance in cloud.instances():
            standing.setdefault(instance.zone, Counter())[instance.status.value] += 1
        disks = Counter("attached" if d.user else "left" for d in cloud.estate.disks.after(0))
        return {"instances": standing, "disks": disks, **control.counts(cloud)}


def instances(cloud: ComputeCloud) -> list[dict[str, Any]]:
    """Every instance."""
    with cloud.lock:
        return [_instance(instance) for instance in cloud.instances()]


def _instance(instance: Instance) -> dict[str, Any]:
    return {
        "instance_id": instance.instance_id,
        "name": instance.name,
        "zone": instance.zone,
        "state": instance.status.value,
        "machine_type": instance.instance_type,
        "spot": instance.spot,
        "labels": instance.labels,
        "created_at": instance.created_at,
    }


def _quotas(cloud: ComputeCloud, value: Any) -> None:
    """A ``limit`` of null lifts the quota."""
    for entry in value:
        key = (entry["region"], entry["metric"])
        if entry["limit"] is None:
            cloud.limits.quotas.pop(key, None)
        else:
            cloud.limits.quotas[key] = int(entry["limit"])


def _bad_images(cloud: ComputeCloud, value: Any) -> None:
    cloud.bad_images = set(value)


def _bad_machine_types(cloud: ComputeCloud, value: Any) -> None:
    cloud.bad_machine_types = set(value)


def _unreachable(cloud: ComputeCloud, value: Any) -> None:
    cloud.unreachable = set(value)


def _seed(cloud: ComputeCloud, value: Any) -> list[str]:
    return [made for entry in value for made in seeding.seed(cloud, **entry)]


def _seed_disks(cloud: ComputeCloud, value: Any) -> list[str]:
    return [made for entry in value for made in seeding.seed_disks(cloud, **entry)]


def _preempt(cloud: ComputeCloud, value: Any) -> None:
    cloud.preempt(value)


def _stop(cloud: ComputeCloud, value: Any) -> None:
    cloud.stop(value)


def _forget(cloud: ComputeCloud, value: Any) -> None:
    cloud.forget(value)


def _forget_machines(cloud: ComputeCloud, value: Any) -> None:
    """Their disks stay."""
    cloud.forget(value, leave_disks=True)


def _rotate_keys(cloud: ComputeCloud, _value: Any) -> None:
    cloud.rotate_keys()


_KEYS: Mapping[str, control.Key] = {
    **control.SHARED,
    "quotas": _quotas,
    "bad_images": _bad_images,
    "bad_machine_types": _bad_machine_types,
    "unreachable": _unreachable,
    "seed": _seed,
    "seed_disks": _seed_disks,
    "preempt": _preempt,
    "stop": _stop,
    "forget": _forget,
    "forget_machines": _forget_machines,
    "rotate_keys": _rotate_keys,
}
