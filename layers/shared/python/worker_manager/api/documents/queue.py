"""The embedded queue, as documents speak of it."""

from __future__ import annotations

from worker_manager.api.documents.service import Service, published
from worker_manager.api.queue import ROUTES
from worker_manager.queue import requests

NAME = "queue"

SERVICE = Service(
    name=NAME,
    title="Queue",
    description="Knows what is to be done, gives it to workers, and remembers how it ended.",
    routes=published(ROUTES, NAME),
    schema_names={
        requests.CreateTask: "create-task-request",
        requests.ClaimWork: "claim-work-request",
        requests.ClaimTask: "task-claim-request",
        requests.ReportException: "task-exception-request",
    },
)
