"""The control side as JSON: for configuration files, and for runs in separate processes.

One document may hold any of the keys of ``_APPLY`` and is applied key by key::

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

from infra.local.clouds.ec2.buckets import Rate
from infra.local.clouds.ec2.faults import Fault
from infra.local.clouds.ec2.limits import CapacityScope, Quota

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.clouds.ec2.cloud import Ec2Cloud
    from infra.local.clouds.ec2.instances import Instance


def apply(cloud: Ec2Cloud, document: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a control document; what its keys answer, by key.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that makes no sense.
    """
    if unknown := set(document) - set(_APPLY):
        raise ValueError(f"unknown control keys: {', '.join(sorted(unknown))}")
    with cloud.lock:
        return {key: _APPLY[key](cloud, value) for key, value in document.items()}


def state(cloud: Ec2Cloud) -> dict[str, Any]:
    """Counts of instances by region and state, of calls by action, of refusals by code."""
    with cloud.lock:
        standing: dict[str, Counter[str]] = {}
        for instance in cloud.instances():
            standing.setdefault(instance.region, Counter())[instance.state.value] += 1
        return {
            "instances": standing,
            "calls": _by_name(cloud.calls),
            "refusals": _by_name(cloud.refusals),
        }


def instances(cloud: Ec2Cloud) -> list[dict[str, Any]]:
    """Every instance, terminated ones that lists still show included."""
    with cloud.lock:
        return [_instance(instance) for instance in cloud.instances()]


def _by_name(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    named: dict[str, dict[str, int]] = {}
    for (name, region), number in counts.items():
        named.setdefault(name, {})[region] = number
    return named


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


def _settings(cloud: Ec2Cloud, value: Any) -> None:
    tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    cloud.change_settings(**tuples)


def _capacity(cloud: Ec2Cloud, value: Any) -> None:
    """A ``count`` of null lifts the limit."""
    for entry in value:
        fields = dict(entry)
        count = fields.pop("count")
        scope = CapacityScope(**fields)
        if count is None:
            cloud.limits.capacity.pop(scope, None)
        else:
            cloud.limits.capacity[scope] = int(count)


def _quotas(cloud: Ec2Cloud, value: Any) -> None:
    """A ``limit`` of null lifts the quota."""
    for entry in value:
        key = (entry["region"], Quota(entry["quota"]))
        if entry["limit"] is None:
            cloud.limits.quotas.pop(key, None)
        else:
            cloud.limits.quotas[key] = int(entry["limit"])


def _faults(cloud: Ec2Cloud, value: Any) -> None:
    """An empty list clears all faults."""
    if not value:
        cloud.faults.clear()
    for entry in value:
        cloud.faults.add(Fault(**entry))


def _buckets(cloud: Ec2Cloud, value: Any) -> None:
    if value["enabled"]:
        rates = {name: Rate(*rate) for name, rate in value.get("rates", {}).items()}
        cloud.buckets.enable(rates)
    else:
        cloud.buckets.disable()


def _latency(cloud: Ec2Cloud, value: Any) -> None:
    cloud.latency_seconds.update({name: float(seconds) for name, seconds in value.items()})


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


def _reset(cloud: Ec2Cloud, value: Any) -> None:
    """``"all"`` drops everything, ``"counts"`` only the counters."""
    {"all": cloud.reset, "counts": cloud.reset_counts}[value]()


_APPLY: Mapping[str, Callable[[Ec2Cloud, Any], Any]] = {
    "reset": _reset,
    "settings": _settings,
    "capacity": _capacity,
    "quotas": _quotas,
    "faults": _faults,
    "buckets": _buckets,
    "latency": _latency,
    "bad_images": _bad_images,
    "seed": _seed,
    "warn": _warn,
    "interrupt": _interrupt,
    "forget": _forget,
}
