"""A secrets service without secrets.

A stock worker-runner asks for its pool's secrets before it starts, and takes no answer but a 404
for "there are none".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api.refusals import not_found
from worker_manager.api.routing import Call, Route

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps


def get(call: Call, _deps: ApiDeps) -> None:
    """Say that there is none of this name; anybody may know that."""
    raise not_found(f"Secret {call.params['name']!r} not found")


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="get",
        method="GET",
        path="/secret/<name>",
        handler=get,
        service="secrets",
    ),
)
