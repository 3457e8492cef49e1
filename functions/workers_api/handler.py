"""The HTTP API for machines, and for whoever looks after them."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.wiring import api


@meter.written
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one request of the front door."""
    return api.workers_api().handle(event)
