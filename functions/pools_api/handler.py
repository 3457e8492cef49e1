"""The HTTP API for operators: definitions of worker pools."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.wiring import api


@meter.written
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one request of the front door."""
    return api.pools_api().handle(event)
