"""The registry, as documents speak of it."""

from __future__ import annotations

from worker_manager.api.documents.service import Service, published
from worker_manager.api.registry import NAME, ROUTES

SERVICE = Service(
    name=NAME,
    title="Worker Registry",
    description="Knows which workers were seen where, what people say of them, and who gets no "
    "tasks.",
    routes=published(ROUTES, NAME),
)
