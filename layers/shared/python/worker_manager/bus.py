"""Publishing events on the EventBridge bus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker_manager.core.model import Json

SOURCE = "worker-manager"
ENTRIES = 10
BYTES = 240_000
"""A call takes ten entries and 256 KB; room is left for what surrounds them."""


class Bus(Protocol):
    """Where events go."""

    def publish(self, events: Sequence[Json]) -> set[str]:
        """Publish; returns the ids of those that were accepted.  Never raises for a refusal."""
        ...


class EventBridgeBus:
    """The bus of this deployment; detail type is the event's name."""

    def __init__(self, client: Any, name: str) -> None:
        """``client`` is a boto3 client for EventBridge."""
        self._client = client
        self._name = name

    def publish(self, events: Sequence[Json]) -> set[str]:
        """Publish in as few calls as the limits allow."""
        accepted: set[str] = set()
        for batch in _batches(events):
            entries = [
                {
                    "EventBusName": self._name,
                    "Source": SOURCE,
                    "DetailType": event["name"],
                    "Detail": _detail(event),
                }
                for event in batch
            ]
            try:
                answer = self._client.put_events(Entries=entries)
            except (ClientError, BotoCoreError) as error:
                logger.warning("events were not published", error=str(error), count=len(batch))
                continue
            for event, result in zip(batch, answer["Entries"], strict=True):
                if "ErrorCode" in result:
                    logger.warning("an event was refused", code=result["ErrorCode"])
                else:
                    accepted.add(event["id"])
        return accepted


def _detail(event: Json) -> str:
    return json.dumps({**event["detail"], "eventId": event["id"]}, separators=(",", ":"))


def _batches(events: Sequence[Json]) -> Iterator[list[Json]]:
    batch: list[Json] = []
    size = 0
    for event in events:
        length = len(_detail(event)) + 200
        if batch and (len(batch) == ENTRIES or size + length > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += length
    if batch:
        yield batch
