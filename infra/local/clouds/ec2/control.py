"""The control side as JSON: for configuration files, and for runs in separate processes.

One document may hold any of the keys of ``_KEYS`` and is applied key by key::

    {"settings": {"pending_seconds": 2}, "latency": {"*": 0.05}, "buckets": {"enabled": true},
     "capacity": [{"place": "us-east-1", "instance_type": "m5.large", "count": 0}],
     "quotas": [{"region": "us-east-1", "quota": "spot", "limit": 10}],
     "faults": [{"kind": "lost", "action": "RunInstances"}], "bad_images": ["ami-bad"],
     "seed": [{"region": "us-west-2", "number": 1000, "tags": {"Name": "x"}}]}

Read next: ``server`` (the routes), ``cloud`` (what the keys mean).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from infra.local.clouds import control
from infra.local.clouds.ec2.limits import Quota

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.ec2.cloud import Ec2Cloud
    from infra.local.clouds.ec2.instances import Instance


def apply(cloud: Ec2Cloud, document: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a control document; what its keys answer, by key.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that makes no sense.
    """
    return control.apply(cloud, document, _KEYS)


def state(cloud: Ec2Cloud) -> dict[str, Any]:
    """Counts of instances by region and state, of volumes that none uses, of calls, of refusals."""
    with cloud.lock:
        standing: dict[str, Counter[str]] = {}
        for instance in cloud.instances():
            standing.setdefault(instance.region, Counter())[instance.state.value] += 1
        left = {region: len(cloud.estate.left_over(region)) for region in cloud.settings.regions}
        return {"instances": standing, "left_over": +Counter(left), **control.counts(cloud)}


def instances(cloud: Ec2Cloud) -> list[dict[str, Any]]:
    """Every instance, terminated ones that lists still show included."""
    with cloud.lock:
        return [_instance(instance) for instance in cloud.instances()]


def _instance(instance: Instance) -> dict[str, Any]:
    return {
        "instance_id": instance.instance_id,
        "region": instance.region,
        "zone": instance.zone,
        "state": instance.state.value,
        "image_id": instance.image_id,
        "instance_type": instance.instance_type,
        "spot": instance.spot,
        "tags": instance.tags,
        "client_token": instance.client_token,
        "launched_at": instance.launched_at,
    }


def _quotas(cloud: Ec2Cloud, value: Any) -> None:
    """A ``limit`` of null lifts the quota."""
    for entry in value:
        key = (entry["region"], Quota(entry["quota"]))
        if entry["limit"] is None:
            cloud.limits.quotas.pop(key, None)
        else:
            cloud.limits.quotas[key] = int(entry["limit"])


def _bad_images(cloud: Ec2Cloud, value: Any) -> None:
    cloud.bad_images = set(value)


def _seed(cloud: Ec2Cloud, value: Any) -> list[str]:
    ids: list[str] = []
    for entry in value:
        ids += cloud.seed(**entry)
    return ids


def _warn(cloud: Ec2Cloud, value: Any) -> None:
    cloud.warn(value)


def _interrupt(cloud: Ec2Cloud, value: Any) -> None:
    cloud.interrupt(value)


def _forget(cloud: Ec2Cloud, value: Any) -> None:
    cloud.forget(value)


_KEYS: Mapping[str, control.Key] = {
    **control.SHARED,
    "quotas": _quotas,
    "bad_images": _bad_images,
    "seed": _seed,
    "warn": _warn,
    "interrupt": _interrupt,
    "forget": _forget,
}
