"""Zone operations: what a mutation answers, and how it ends later.

Nothing runs in the background: an operation is done once its end has passed.  Read next:
``estate``, which begins and keeps them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.links import BASE, dig, timestamp
from infra.local.clouds.compute.masks import EVERYTHING, Mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.clouds.compute.errors import Failure


@dataclass(slots=True, eq=False)
class Operation:
    """One operation.  Times are seconds on the cloud's clock."""

    name: str
    sequence: int
    operation_id: str
    project: str
    zone: str
    kind: str
    """``insert``, ``delete``, ``compute.instances.preempted`` and so on."""
    target: str
    """The partial link of what it is about, as ``instances/name``."""
    target_id: str
    began_at: float
    ends_at: float
    user: str = "workers@simulated.invalid"
    failure: Failure | None = None
    is_done: bool = False

    def settle(self, now: float) -> bool:
        """Whether it has ended by now, well or badly."""
        self.is_done = now >= self.ends_at
        return self.is_done

    def look(self, path: Sequence[str]) -> Any:
        """The value of a field by its path, for filters; ``None`` where there is none."""
        return dig(self.resource(), path)

    def text(self, mask: Mask = EVERYTHING) -> str:
        """The JSON of the fields that the mask lets through."""
        return json.dumps(mask.cut(self.resource()))

    def resource(self) -> dict[str, Any]:
        """The settled operation as the API shows it."""
        scope = f"{BASE}projects/{self.project}/zones/{self.zone}"
        shown: dict[str, Any] = {
            "kind": "compute#operation",
            "id": self.operation_id,
            "name": self.name,
            "zone": scope,
            "operationType": self.kind,
            "targetLink": f"{scope}/{self.target}",
            "targetId": self.target_id,
            "status": "RUNNING",
            "user": self.user,
            "progress": 0,
            "insertTime": timestamp(self.began_at),
            "startTime": timestamp(self.began_at),
            "selfLink": f"{scope}/operations/{self.name}",
        }
        if self.is_done:
            shown |= {"status": "DONE", "progress": 100, "endTime": timestamp(self.ends_at)}
            if self.failure is not None:
                shown |= self.failure.fields()
        return shown
