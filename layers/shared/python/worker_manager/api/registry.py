"""The registry over HTTP, under ``/api/worker-registry/v1``: who was seen where.

Where to read next: ``worker_manager.registry``, which knows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api import ping, references

if TYPE_CHECKING:
    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.routing import Route

NAME = "worker-registry"

ROUTES: tuple[Route[RegistryDeps], ...] = (
    *ping.routes_of(NAME),
    *references.routes_of(NAME),
)
