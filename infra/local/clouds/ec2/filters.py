"""``Filter.N`` of the Describe actions: one predicate out of all filters of a call.

Values of one filter are alternatives, filters must all hold, ``*`` and ``?`` are wildcards, case
counts ("Filtering using the API" in the EC2 User Guide).  Read next: ``actions``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from infra.local.clouds.ec2.errors import Ec2Error

if TYPE_CHECKING:
    from infra.local.clouds.ec2.instances import Instance, Volume
    from infra.local.clouds.ec2.parameters import Parameters


class Tagged(Protocol):
    """What tag filters look at."""

    tags: dict[str, str]


T = TypeVar("T", bound=Tagged)
Readers = Mapping[str, Callable[[T], str]]
Predicate = Callable[[T], bool]

INSTANCE_READERS: Mapping[str, Callable[[Instance], str]] = {
    "instance-id": lambda i: i.instance_id,
    "instance-state-name": lambda i: i.state.value,
    "instance-state-code": lambda i: str(i.state.code),
    "instance-type": lambda i: i.instance_type,
    "instance-lifecycle": lambda i: "spot" if i.spot else "",
    "image-id": lambda i: i.image_id,
    "availability-zone": lambda i: i.zone,
    "client-token": lambda i: i.client_token,
    "reservation-id": lambda i: i.reservation.reservation_id,
}
VOLUME_READERS: Mapping[str, Callable[[Volume], str]] = {
    "volume-id": lambda v: v.volume_id,
    "attachment.device": lambda v: v.device,
}


def predicate_of(parameters: Parameters, readers: Readers[T]) -> Predicate[T]:
    """Whether all filters of the call hold; raises ``Ec2Error`` for one that does not exist."""
    tests = [_test(f.required("Name"), f.texts("Value"), readers) for f in _filters(parameters)]
    if len(tests) == 1:
        return tests[0]
    return lambda thing: all(test(thing) for test in tests)


def has_filters(parameters: Parameters) -> bool:
    """Whether the call has any filter."""
    return bool(_filters(parameters))


def _filters(parameters: Parameters) -> list[Parameters]:
    return parameters.structures("Filter")


def _test(name: str, values: list[str], readers: Readers[T]) -> Predicate[T]:
    if name == "tag-key":
        wanted = frozenset(values)
        return lambda thing: not wanted.isdisjoint(thing.tags)
    accepts = _accepts(values)
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return lambda thing: key in thing.tags and accepts(thing.tags[key])
    if name not in readers:
        raise Ec2Error("InvalidParameterValue", f"The filter '{name}' is invalid")
    read = readers[name]
    return lambda thing: accepts(read(thing))


def _accepts(values: Iterable[str]) -> Callable[[str], bool]:
    values = frozenset(values)
    if not any("*" in value or "?" in value for value in values):
        return values.__contains__
    pattern = re.compile("|".join(map(_expression, values)), re.DOTALL)
    return lambda text: pattern.fullmatch(text) is not None


def _expression(value: str) -> str:
    return re.escape(value).replace(r"\*", ".*").replace(r"\?", ".")
