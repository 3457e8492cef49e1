"""Signs of life, of each service alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import worker_manager
from worker_manager.api.routing import Call, Route
from worker_manager.api.schemas import PingAnswer, VersionAnswer

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps, RegistryDeps


def ping(_call: Call, deps: ApiDeps | RegistryDeps) -> PingAnswer:
    """Answer without asking anybody."""
    return PingAnswer(alive=True, uptime=(deps.clock() - deps.started).total_seconds())


def nothing(_call: Call, _deps: Any) -> dict[str, Any]:
    """Answer that requests are answered."""
    return {}


def version(_call: Call, _deps: Any) -> VersionAnswer:
    """Say what runs here; a stage's build is known by its layers, not by the code."""
    return VersionAnswer(
        version=worker_manager.__version__, source="worker-manager", commit="", build=""
    )


def routes_of(service: str) -> tuple[Route[Any], ...]:
    """The signs of life of one service."""
    return (
        Route(
            name="ping",
            service=service,
            method="GET",
            path="/ping",
            handler=ping,
            response=PingAnswer,
        ),
        Route(
            name="lbheartbeat",
            service=service,
            method="GET",
            path="/__lbheartbeat__",
            handler=nothing,
        ),
        Route(
            name="version",
            service=service,
            method="GET",
            path="/__version__",
            handler=version,
            response=VersionAnswer,
        ),
        Route(
            name="heartbeat",
            service=service,
            method="GET",
            path="/__heartbeat__",
            handler=nothing,
        ),
    )


ROUTES: tuple[Route[ApiDeps], ...] = routes_of("worker-manager")
