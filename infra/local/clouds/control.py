"""The control side that all simulated clouds have in common, as JSON.

``SHARED`` are the keys that every control document may hold; a cloud's own ``control`` adds to
them.  Read next: a cloud's ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from infra.local.clouds.buckets import Rate
from infra.local.clouds.capacity import CapacityScope
from infra.local.clouds.cloud import SimulatedCloud

if TYPE_CHECKING:
    from collections import Counter

Key = Callable[[Any, Any], Any]
"""Takes the cloud and the value of a key; what it answers goes into the answer."""
AnyCloud = SimulatedCloud[Any, Any]


def apply(cloud: AnyCloud, document: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Apply a control document; what its keys answer, by key.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` for one that makes no sense.
    """
    if unknown := set(document) - set(keys):
        raise ValueError(f"unknown control keys: {', '.join(sorted(unknown))}")
    with cloud.lock:
        return {key: keys[key](cloud, value) for key, value in document.items()}


def counts(cloud: AnyCloud) -> dict[str, Any]:
    """Counts of calls by action, and of refusals by code, each by place."""
    with cloud.lock:
        return {"calls": _by_name(cloud.calls), "refusals": _by_name(cloud.refusals)}


def _by_name(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    named: dict[str, dict[str, int]] = {}
    for (name, place), number in counts.items():
        named.setdefault(name, {})[place] = number
    return named


def _reset(cloud: AnyCloud, value: Any) -> None:
    """``"all"`` drops everything, ``"counts"`` only the counters."""
    {"all": cloud.reset, "counts": cloud.reset_counts}[value]()


def _settings(cloud: AnyCloud, value: Any) -> None:
    tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    cloud.change_settings(**tuples)


def _capacity(cloud: AnyCloud, value: Any) -> None:
    """A ``count`` of null lifts the limit."""
    for entry in value:
        fields = dict(entry)
        count = fields.pop("count")
        scope = CapacityScope(**fields)
        if count is None:
            cloud.capacity.pop(scope, None)
        else:
            cloud.capacity[scope] = int(count)


def _faults(cloud: AnyCloud, value: Any) -> None:
    """An empty list clears all faults."""
    if not value:
        cloud.faults.clear()
    for entry in value:
        cloud.faults.read(entry)


def _buckets(cloud: AnyCloud, value: Any) -> None:
    if value["enabled"]:
        rates = {name: Rate(*rate) for name, rate in value.get("rates", {}).items()}
        cloud.buckets.enable(rates)
    else:
        cloud.buckets.disable()


def _latency(cloud: AnyCloud, value: Any) -> None:
    cloud.latency_seconds.update({name: float(seconds) for name, seconds in value.items()})


SHARED: Mapping[str, Key] = {
    "reset": _reset,
    "settings": _settings,
    "capacity": _capacity,
    "faults": _faults,
    "buckets": _buckets,
    "latency": _latency,
}
