"""What the simulated EC2 tells of its instances on an event bus, as EC2 does on EventBridge.

Changes of state, each when it is due, and warnings before spot instances are taken back; best
effort, as EC2's own.  ``estate`` says what is due, ``Announcer`` puts it on the bus.
"""

from __future__ import annotations

import heapq
import json
import sys
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.clouds.ec2.instances import Instance

_BATCH = 10
"""What a call of PutEvents takes."""


@dataclass(frozen=True, slots=True, order=True)
class Announcement:
    """One event, ``due`` on the cloud's clock."""

    due: float
    number: int
    entry: dict[str, Any] = field(compare=False)


def state_change(instance: Instance, state: str) -> dict[str, Any]:
    """The event of an instance that comes into a state."""
    return _entry(
        instance,
        "EC2 Instance State-change Notification",
        {"instance-id": instance.instance_id, "state": state},
    )


def interruption_warning(instance: Instance) -> dict[str, Any]:
    """The event of a spot instance that will be taken back in two minutes."""
    return _entry(
        instance,
        "EC2 Spot Instance Interruption Warning",
        {"instance-id": instance.instance_id, "instance-action": "terminate"},
    )


def _entry(instance: Instance, kind: str, detail: dict[str, str]) -> dict[str, Any]:
    owner = f"{instance.region}:{instance.reservation.owner_id}"
    return {
        "Source": "aws.ec2",
        "DetailType": kind,
        "Detail": json.dumps(detail),
        "Resources": [f"arn:aws:ec2:{owner}:instance/{instance.instance_id}"],
    }


class Announcer:
    """A thread that puts announcements on a bus when they are due; a context.

    ``client`` is a boto3 client for EventBridge.
    """

    def __init__(self, client: Any, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._changed = Condition()
        self._waiting: list[Announcement] = []
        self._count = 0
        self._is_over = False
        self._thread = Thread(target=self._run, name="announcer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join(5)

    def announce(self, due: float, entry: dict[str, Any]) -> None:
        """Put an event on the bus at ``due``; never waits."""
        with self._changed:
            self._count += 1
            heapq.heappush(self._waiting, Announcement(due, self._count, entry))
            self._changed.notify()

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._client.put_events(Entries=[found.entry for found in batch])
            except Exception as error:
                print(f"{len(batch)} events were not put: {error!r}", file=sys.stderr, flush=True)

    def _next(self) -> list[Announcement]:
        """Wait for what is due, and take it; nothing once it is over."""
        with self._changed:
            while not self._is_over:
                wait = self._waiting[0].due - self._clock() if self._waiting else None
                if wait is not None and wait <= 0:
                    now = self._clock()
                    batch: list[Announcement] = []
                    while self._waiting and self._waiting[0].due <= now and len(batch) < _BATCH:
                        batch.append(heapq.heappop(self._waiting))
                    return batch
                self._changed.wait(wait)
            return []
