"""Labels: how our names are written where only lower-case letters, digits, ``_`` and ``-`` go.

A value that may stand stands as it is; any other is ``0_`` and its bytes in base32, which turns the
longest of our names (38 characters) into the longest label value (63).  Label rules: "Organize
resources using labels" of the Compute Engine documentation.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from worker_manager.core.ids import is_pool_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import LaunchOrder

DEPLOYMENT_LABEL = "worker-manager-deployment"
"""On every instance and persistent disk of ours; its value is the stage's deployment."""
PROVISIONER_LABEL = "worker-manager-provisioner"
WORKER_TYPE_LABEL = "worker-manager-worker-type"
"""A pool id is up to 77 characters: each half of it has its own label."""
LAUNCH_CONFIG_LABEL = "worker-manager-launch-config"
ORDER_LABEL = "worker-manager-order"
ORDERED_LABEL = "worker-manager-ordered"
"""When it was planned, in seconds since 1970."""

MAX_VALUE_CHARS = 63
ENCODED = "0_"

_PLAIN = re.compile(r"[a-z0-9_-]{0,63}")


def encode(text: str) -> str:
    """A label value that ``decode`` turns back into ``text`` (up to 38 bytes; longer if plain)."""
    if _PLAIN.fullmatch(text) and not text.startswith(ENCODED):
        return text
    return ENCODED + base64.b32encode(text.encode()).decode().rstrip("=").lower()


@lru_cache(maxsize=4096)
def decode(value: str) -> str:
    """What ``encode`` was given; a value that somebody else spoilt is returned as it stands."""
    if not value.startswith(ENCODED):
        return value
    digits = value.removeprefix(ENCODED).upper()
    try:
        return base64.b32decode(digits + "=" * (-len(digits) % 8)).decode()
    except ValueError:
        return value


def order_labels(order: LaunchOrder) -> dict[str, str]:
    """Labels on everything this order makes: the reference's five, then the six of ours."""
    provisioner, _, worker_type = order.pool_id.partition("/")
    ordered = datetime.fromisoformat(order.inputs["ordered"])
    return {
        "created-by": _worn_down(f"taskcluster-wm-{order.provider_id}"),
        "managed-by": "taskcluster",
        "worker-pool-id": _worn_down(order.pool_id),
        "owner": _worn_down(order.inputs["owner"]),
        "launch-config-id": _worn_down(order.launch_config_id),
        DEPLOYMENT_LABEL: encode(order.inputs["deployment"]),
        PROVISIONER_LABEL: encode(provisioner),
        WORKER_TYPE_LABEL: encode(worker_type),
        LAUNCH_CONFIG_LABEL: encode(order.launch_config_id),
        ORDER_LABEL: encode(order.order_id),
        ORDERED_LABEL: str(int(ordered.timestamp())),
    }


def pool_of(labels: Mapping[str, str]) -> str | None:
    """The pool id in these labels; ``None`` where somebody took it away or spoilt it."""
    found = "/".join(
        decode(labels.get(name, "")) for name in (PROVISIONER_LABEL, WORKER_TYPE_LABEL)
    )
    return found if is_pool_id(found) else None


def launch_config_of(labels: Mapping[str, str]) -> str | None:
    """The launch config id in these labels, if any."""
    value = labels.get(LAUNCH_CONFIG_LABEL)
    return None if value is None else decode(value)


def order_of(labels: Mapping[str, str]) -> str | None:
    """The order id in these labels, if any."""
    value = labels.get(ORDER_LABEL)
    return None if value is None else decode(value)


def only_of(deployment: str) -> str:
    """The list filter for a deployment's own."""
    return f"labels.{DEPLOYMENT_LABEL}={encode(deployment)}"


def _worn_down(text: str) -> str:
    """A name for people to read in the console, which nobody reads back."""
    return re.sub(r"[^a-z0-9-]", "-", text.lower())[:MAX_VALUE_CHARS]
