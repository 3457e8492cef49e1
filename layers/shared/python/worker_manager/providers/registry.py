"""Which code serves which ``providerType``, by dotted name, so that a function loads one cloud.

Where to read next: ``protocol`` (what a cloud must do), ``aws.provider`` (one that does).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.providers.protocol import CloudProvider, Setup

CLOUDS: Mapping[str, str] = {
    "aws": "worker_manager.providers.aws.setup:start",
    "azure": "worker_manager.providers.azure.setup:start",
    "google": "worker_manager.providers.google.setup:start",
}
"""Provider types with a cloud behind them: ``module:function``, which starts a provider.

The only other one is ``static``: workers in somebody's own racks, which no cloud launches, lists or
terminates."""


def load_cloud(provider_type: str) -> Callable[[Setup], CloudProvider]:
    """What starts a cloud's provider; its module and SDK are imported here, not before.

    Raises ``LookupError`` for a type that has no cloud.
    """
    if provider_type not in CLOUDS:
        raise LookupError(f"provider type {provider_type!r} has no cloud; known: {sorted(CLOUDS)}")
    module, _, name = CLOUDS[provider_type].partition(":")
    return cast("Callable[[Setup], CloudProvider]", getattr(import_module(module), name))
