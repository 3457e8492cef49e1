"""What a machine learns from its cloud: whose worker it is.  Read next: ``machine``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a stock worker-runner reads from its instance's user data, attribute or tags."""

    root_url: str
    worker_pool_id: str
    provider_id: str
    worker_group: str
    launch_config_id: str
    worker_config: dict[str, Any]


def read_assignment(user_data: str) -> Assignment | None:
    """The assignment in JSON that a machine was given; ``None`` where it is not for a worker."""
    try:
        given = json.loads(user_data)
        return Assignment(
            root_url=given["rootUrl"],
            worker_pool_id=given["workerPoolId"],
            provider_id=given["providerId"],
            worker_group=given["workerGroup"],
            launch_config_id=given.get("launchConfigId", ""),
            worker_config=given.get("workerConfig") or {},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_tags(tags: Mapping[str, str]) -> Assignment | None:
    """The assignment that a machine's tags are; ``None`` where they are not a worker's."""
    try:
        return Assignment(
            root_url=tags["root-url"],
            worker_pool_id=tags["worker-pool-id"],
            provider_id=tags["provider-id"],
            worker_group=tags["worker-group"],
            launch_config_id=tags.get("launch-config-id", ""),
            worker_config={},
        )
    except KeyError:
        return None
