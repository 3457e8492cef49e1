"""The HTTP API for machines, and for whoever looks after them."""

from __future__ import annotations

from typing import Any

from worker_manager import wiring_api


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one request of the gateway."""
    return wiring_api.workers_api().handle(event)
