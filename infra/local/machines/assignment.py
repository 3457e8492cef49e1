"""What a machine learns from its user data: whose worker it is.  Read next: ``machine``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Assignment:
    """The JSON that a stock worker-runner reads from its instance's user data."""

    root_url: str
    worker_pool_id: str
    provider_id: str
    worker_group: str
    launch_config_id: str
    worker_config: dict[str, Any]


def read_assignment(user_data: str) -> Assignment | None:
    """The assignment in a machine's user data; ``None`` where it is not for a worker."""
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
