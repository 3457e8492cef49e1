"""The HTTP API of the embedded queue: tasks, and who works on them."""

from __future__ import annotations

from typing import Any

from worker_manager.wiring import queue


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one request of the front door."""
    return queue.queue_api().handle(event)
