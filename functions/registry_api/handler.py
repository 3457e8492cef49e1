"""The HTTP API of the registry: who was seen where, what people say of it, and quarantine."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.wiring import registry


@meter.written
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one request of the front door."""
    return registry.registry_api().handle(event)
