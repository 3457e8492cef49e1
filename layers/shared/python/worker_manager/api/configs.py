"""What a pool's ``config`` may say, by provider type, and what it is taken to mean.

Everything that could only fail later, at launch or on reading back, is refused here, where
somebody is there to read why: forbidden parameters, user data that EC2 would not take and metadata
that Google would not (B35), items that DynamoDB would not store, answers that would not fit through
the gateway.  Where to read next: ``config_schemas`` (the fields), ``offerings``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.api.config_schemas import AwsConfig, CloudConfig, NullConfig, StaticConfig
from worker_manager.api.config_schemas_azure import AzureConfig
from worker_manager.api.config_schemas_google import LARGEST_VALUE, GoogleConfig
from worker_manager.api.offerings import location_of, offering_of
from worker_manager.api.refusals import Refusal
from worker_manager.api.validation import fault, invalid, parse, place
from worker_manager.core.definition import DuplicateLaunchConfigError, Parts, take_apart
from worker_manager.providers.aws.user_data import user_data, user_data_size_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from worker_manager.api.validation import Wire
    from worker_manager.core.model import Json
    from worker_manager.settings import ProviderSettings

LARGEST_BODY = 350_000
"""Bytes of one launch config; a DynamoDB item ends at 400 KB."""
LARGEST_POOL = 340_000
"""Bytes of heads and the rest of the config, which share an item with the description."""
MOST_LAUNCH_CONFIGS = 500
"""So that the events of replacing them all fit into one item until they are published."""
LARGEST_CONFIG = 4_500_000
"""Bytes of a whole config as a JSON text inside JSON, as Lambda hands it to the gateway."""
TOLD_BESIDES = 1_024
"""Bytes that ids and the root URL take at most beside a ``workerConfig``."""

_CLOUDS: Mapping[str, type[CloudConfig]] = {
    "aws": AwsConfig,
    "google": GoogleConfig,
    "azure": AzureConfig,
}
_OTHERS: Mapping[str, type[Wire]] = {"static": StaticConfig, "null": NullConfig}


def validate_config(
    config: Json, provider_type: str, *, shortest_inactivity: timedelta
) -> dict[str, Any]:
    """The config as it is to be stored, or a 400 that names what is wrong with it.

    ``shortest_inactivity`` is the least ``queueInactivityTimeout`` of this stage.
    Only what the reference fills in is filled in: the defaults of a lifecycle that is given.
    """
    if provider_type in _OTHERS:
        parse(_OTHERS[provider_type], config, at=("config",))
        return dict(config)
    parsed = parse(_CLOUDS[provider_type], config, at=("config",))
    if "lifecycle" not in config:
        return dict(config)
    shortest = int(shortest_inactivity.total_seconds())
    if parsed.lifecycle.queue_inactivity_timeout < shortest:
        where = "config.lifecycle.queueInactivityTimeout"
        raise invalid([fault(where, f"input should be greater than or equal to {shortest}")])
    lifecycle = {
        "reregistrationTimeout": parsed.lifecycle.reregistration_timeout,
        "queueInactivityTimeout": parsed.lifecycle.queue_inactivity_timeout,
        **config["lifecycle"],
    }
    return {**config, "lifecycle": lifecycle}


def to_parts(
    pool_id: str,
    config: Json,
    *,
    provider: ProviderSettings,
    root_url: str,
    now: datetime,
) -> Parts:
    """A validated config taken apart, refused if anything of it would not fit where it belongs."""
    try:
        parts = take_apart(
            pool_id,
            config,
            now=now,
            location_of=location_of(provider),
            offering_of=offering_of(provider),
        )
    except DuplicateLaunchConfigError as error:
        raise Refusal("RequestConflict", f"config.launchConfigs: {error}") from error
    faults = list(_oversized(parts))
    match provider.provider_type:
        case "aws":
            faults += _oversized_user_data(parts, pool_id, provider.provider_id, root_url)
        case "google":
            faults += _oversized_metadata(parts)
    if faults:
        raise invalid(faults)
    return parts


def _oversized(parts: Parts) -> Iterator[str]:
    if (count := len(parts.heads)) > MOST_LAUNCH_CONFIGS:
        yield fault("config.launchConfigs", f"has {count} items, over {MOST_LAUNCH_CONFIGS}")
    total = 0
    for index, (name, body) in enumerate(parts.bodies.items()):
        text = _text(body)
        total += len(_text(text).encode())
        if (size := len(text.encode())) > LARGEST_BODY:
            where = place(("config", "launchConfigs", index))
            yield fault(where, f"{name} is {size} bytes; at most {LARGEST_BODY} can be stored")
    if total > LARGEST_CONFIG:
        yield fault("config", f"is {total} bytes when sent; at most {LARGEST_CONFIG} can be")
    heads = sum(
        len(json.dumps([h.launch_config_id, h.location, h.manager, h.offering]))
        for h in parts.heads
    )
    size = heads + 60 * len(parts.heads) + len(json.dumps(parts.root))
    if size > LARGEST_POOL:
        yield fault(
            "config",
            f"is {size} bytes without the bodies of its launch configs; "
            f"at most {LARGEST_POOL} can be stored",
        )


def _oversized_user_data(
    parts: Parts, pool_id: str, provider_id: str, root_url: str
) -> Iterator[str]:
    for index, head in enumerate(parts.heads):
        raw = user_data(
            parts.bodies[head.launch_config_id],
            head.location,
            root_url=root_url,
            pool_id=pool_id,
            provider_id=provider_id,
            launch_config_id=head.launch_config_id,
        )
        if error := user_data_size_error(raw):
            yield fault(place(("config", "launchConfigs", index)), error)


def _oversized_metadata(parts: Parts) -> Iterator[str]:
    """Machines on Google read their ``workerConfig`` from a value of their metadata."""
    for index, head in enumerate(parts.heads):
        size = len(_text(parts.bodies[head.launch_config_id]["workerConfig"]).encode())
        if size > (most := LARGEST_VALUE - TOLD_BESIDES):
            where = place(("config", "launchConfigs", index, "workerConfig"))
            yield fault(where, f"is {size} bytes; metadata has room for {most}")


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
