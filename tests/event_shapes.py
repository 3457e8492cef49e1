"""Events against the models by which they are documented, for the fakes that stand in for a bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api.event_schemas import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker_manager.core.model import Json


def check_shapes(events: Iterable[Json]) -> None:
    """Fail for an event that is not as its JSON schema says."""
    for event in events:
        detail = {**event["detail"], "eventId": event["id"]}
        assert None not in detail.values(), event
        EVENTS[event["name"]].model_validate(detail)
