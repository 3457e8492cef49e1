"""Where and how a launch config makes its machines.  Where to read next: ``launching``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import InvalidLaunchConfigError
from worker_manager.providers.azure.tags import group_of

if TYPE_CHECKING:
    from worker_manager.core.model import LaunchOrder


@dataclass(frozen=True, slots=True)
class Place:
    """``region`` is as the launch config writes it, ``resource_group`` in lower case.

    ``is_own`` says that the launch config names a resource group of its own, which we may make.
    """

    region: str
    resource_group: str
    is_deployment: bool
    is_own: bool

    @property
    def group(self) -> str:
        """The worker group of its machines."""
        return group_of(self.region)


def place_of(order: LaunchOrder, *, resource_group: str) -> Place:
    """Where an order goes; ``resource_group`` is the provider's, used unless it names another.

    Raises ``InvalidLaunchConfigError`` for a launch config without a location.
    """
    body = order.body
    template = body.get("armDeployment")
    if template is None:
        return Place(_text(body, "location"), resource_group.lower(), False, False)
    own = body.get("armDeploymentResourceGroup")
    return Place(
        region=_text(template, "parameters", "location", "value"),
        resource_group=str(own or resource_group).lower(),
        is_deployment=True,
        is_own=bool(own),
    )


def _text(within: Any, *path: str) -> str:
    """The text at a path of an object's names."""
    found = within
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, str) or not found:
        raise InvalidLaunchConfigError(
            f"the launch config has no {'.'.join(path)}", code="MissingLocation"
        )
    return found
