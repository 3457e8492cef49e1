"""Pages of lists, of one zone or of all.

A page of 500 is a join of texts that are mostly there already.  Lists of all zones name every zone,
those without anything on the page with a warning, as "Method: instances.aggregatedList" shows.
Read next: ``shelf``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from infra.local.clouds.compute.calls import Call, token_after
from infra.local.clouds.compute.errors import ComputeError
from infra.local.clouds.compute.filters import predicate_of
from infra.local.clouds.compute.links import BASE

if TYPE_CHECKING:
    from infra.local.clouds.compute.cloud import ComputeCloud
    from infra.local.clouds.compute.masks import Mask


class Listed(Protocol):
    """What stands in lists."""

    @property
    def sequence(self) -> int:
        """The order of making."""
        ...

    @property
    def zone(self) -> str:
        """The zone that it is in."""
        ...

    def settle(self, now: float) -> object:
        """Take the steps that are due."""
        ...

    def look(self, path: Sequence[str]) -> Any:
        """The value of a field by its path."""
        ...

    def text(self, mask: Mask) -> str:
        """Its JSON."""
        ...


Source = Callable[[int], Iterator[Listed]]
"""Takes a sequence; what was made after it, in order."""


def page_of(cloud: ComputeCloud, call: Call, noun: str, source: Source) -> str:
    """The page that a list call asks for; ``noun`` is the kind of what is listed, as ``disk``."""
    page, last = _cut(cloud, call, source)
    _check_reach(cloud, call)
    mask = call.mask
    scope = f"zones/{call.zone}" if call.zone else "aggregated"
    path = f"projects/{cloud.settings.project}/{scope}/{noun}s"
    kind = f"compute#{noun}{'' if call.zone else 'Aggregated'}List"
    fields = {"kind": kind, "id": path, "selfLink": f"{BASE}{path}"}
    if last:
        fields["nextPageToken"] = token_after(last)
    parts = [json.dumps(mask.cut(fields))[1:-1]]
    if mask.wants("items"):
        below = mask.below("items")
        items = _zone_items(page, below) if call.zone else _items(cloud, page, f"{noun}s", below)
        parts.append(f'"items": {items}')
    if cloud.unreachable and not call.zone:
        parts.append(json.dumps(mask.cut({"unreachables": _unreached(cloud)}))[1:-1])
    return f"{{{', '.join(filter(None, parts))}}}"


def _cut(cloud: ComputeCloud, call: Call, source: Source) -> tuple[list[Listed], int]:
    """One page, and the sequence of its last thing if there are more."""
    now = cloud.estate.tidy()
    wanted = predicate_of(call.query.get("filter", ""))
    size = call.page_size

    def matching() -> Iterator[Listed]:
        for thing in source(call.last_seen):
            if call.zone not in ("", thing.zone) or thing.zone in cloud.unreachable:
                continue
            thing.settle(now)
            if wanted(thing):
                yield thing

    page = list(islice(matching(), size + 1))
    if len(page) <= size:
        return page, 0
    del page[size:]
    return page, page[-1].sequence


def _check_reach(cloud: ComputeCloud, call: Call) -> None:
    blocked = call.zone in cloud.unreachable if call.zone else bool(cloud.unreachable)
    if blocked and not (call.accepts_part and not call.zone):
        raise ComputeError("backendError", "Backend error. A zone is unreachable.")


def _unreached(cloud: ComputeCloud) -> list[str]:
    return [f"zones/{zone}" for zone in sorted(cloud.unreachable)]


def _zone_items(page: Sequence[Listed], mask: Mask) -> str:
    return f"[{', '.join(thing.text(mask) for thing in page)}]"


def _items(cloud: ComputeCloud, page: Sequence[Listed], plural: str, mask: Mask) -> str:
    by_zone: dict[str, list[Listed]] = {}
    for thing in page:
        by_zone.setdefault(thing.zone, []).append(thing)
    scopes = []
    for zone in cloud.settings.zones:
        inner = mask.below(f"zones/{zone}")
        if zone not in by_zone:
            told = inner.cut({"warning": _warning(zone, zone in cloud.unreachable)})
            text = json.dumps(told) if told else ""
        else:
            text = f'{{"{plural}": {_zone_items(by_zone[zone], inner.below(plural))}}}'
        if text and mask.wants(f"zones/{zone}"):
            scopes.append(f'"zones/{zone}": {text}')
    return f"{{{', '.join(scopes)}}}"


def _warning(zone: str, is_unreachable: bool) -> dict[str, Any]:
    scope = f"zones/{zone}"
    if is_unreachable:
        code, message = "UNREACHABLE", f"The scope '{scope}' is unreachable."
    else:
        code = "NO_RESULTS_ON_PAGE"
        message = f"There are no results for scope '{scope}' on this page."
    return {"code": code, "message": message, "data": [{"key": "scope", "value": scope}]}
