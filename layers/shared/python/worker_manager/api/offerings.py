"""Where a launch config's machines are listed, and what it asks of its cloud, in one word.

Machines of one *offering* run out together, so that what is learned of it by one launch config
counts for all.  What is long or odd is no part of a key: such a launch config is an offering of its
own.  Where to read next: ``configs``, ``core.standing`` (what is known of an offering).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import Json, Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager.settings import ProviderSettings

SPOT, ON_DEMAND, REGULAR = "spot", "on-demand", "regular"


def location_of(provider: ProviderSettings) -> Callable[[Json], Location]:
    """What reads from a launch config's body what one list call covers that shows its machines.

    Of EC2 a region, of Google the project, of Azure the subscription.
    """
    match provider.provider_type:
        case "google":
            project = Location(provider.options["project"])
            return lambda _: project
        case "azure":
            subscription = Location(provider.options["subscription"])
            return lambda _: subscription
        case _:
            return lambda body: Location(str(body.get("region", "")))


def offering_of(provider: ProviderSettings) -> Callable[[Json], str]:
    """What reads from a launch config's body what it asks of this kind of cloud, in one word.

    Location, place within it, machine type, spot or not: spot that fails says nothing about
    on-demand (B51).  Empty if the body does not say.
    """
    words_of = _WORDS.get(provider.provider_type, _no_words)
    place = location_of(provider)

    def offering(body: Json) -> str:
        words = (place(body), *words_of(body))
        return "/".join(words) if len(words) == 4 and all(map(_is_plain, words)) else ""

    return offering


def _no_words(_: Json) -> tuple[str, ...]:
    return ()


def _ec2_words(body: Json) -> tuple[str, ...]:
    """Zone (or the subnet that decides it), machine type, market."""
    launch = body.get("launchConfig")
    zone = _word(launch, "Placement", "AvailabilityZone") or _word(launch, "SubnetId") or "any"
    market = _word(launch, "InstanceMarketOptions", "MarketType") or ON_DEMAND
    return zone, _word(launch, "InstanceType"), market


def _google_words(body: Json) -> tuple[str, ...]:
    """Zone, machine type, market: the older ``preemptible`` draws on the same machines."""
    kind = _word(body, "machineType").rpartition("/")[2]
    scheduling = body.get("scheduling")
    is_old = isinstance(scheduling, dict) and scheduling.get("preemptible") is True
    is_spot = is_old or _word(scheduling, "provisioningModel") == "SPOT"
    return _word(body, "zone"), kind, SPOT if is_spot else ON_DEMAND


def _azure_words(body: Json) -> tuple[str, ...]:
    """Location, size, market; of a template what its parameters of the usual names say."""
    given = body.get("armDeployment")
    if isinstance(given, dict):
        where, size, priority = (
            _word(given, "parameters", name, "value") for name in ("location", "vmSize", "priority")
        )
    else:
        where, priority = _word(body, "location"), _word(body, "priority")
        size = _word(body, "hardwareProfile", "vmSize")
    return where, size, SPOT if priority.lower() in ("spot", "low") else REGULAR


_WORDS = {"aws": _ec2_words, "google": _google_words, "azure": _azure_words}


def _word(value: Any, *path: str) -> str:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _is_plain(word: str) -> bool:
    """Whether a cloud may know it."""
    return re.fullmatch(r"[A-Za-z0-9._-]{1,64}", word, re.ASCII) is not None
