"""One service and what there is to say of it.

Where to read next: ``worker_manager`` and ``queue`` (the two there are), ``references``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from worker_manager.api.routing import Route

VERSION = "v1"
"""Of every API here, as in its paths."""


@dataclass(frozen=True, eq=False)
class Service:
    """A service as documents speak of it; each is itself only, so that they can be kept by it.

    ``schema_names`` are those of models whose class is called something else.  ``messages`` are
    what its exchanges carry, ``events`` what is told on our bus, both by the event's name.
    """

    name: str
    title: str
    description: str
    routes: Sequence[Route[Any]]
    schema_names: Mapping[type[BaseModel], str] = field(default_factory=dict)
    messages: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    events: Mapping[str, type[BaseModel]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """What every path of it begins with."""
        return f"/api/{self.name}/{VERSION}"

    @property
    def schema_base(self) -> str:
        """Where its JSON schemas are."""
        return f"/schemas/{self.name}/{VERSION}"


def published(routes: Sequence[Route[Any]], service: str) -> list[Route[Any]]:
    """The routes of one service that documents tell of, in order."""
    return [route for route in routes if route.service == service and route.is_published]
