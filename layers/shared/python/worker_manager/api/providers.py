"""Which providers pools may name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api.refusals import input_error, not_found
from worker_manager.api.routing import LIMIT, Call, Route
from worker_manager.api.schemas import ProviderEntry, ProviderList
from worker_manager.core.model import NULL_PROVIDER
from worker_manager.settings import ProviderSettings

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps

DEFAULT_LIMIT = 100

_NULL = ProviderSettings(NULL_PROVIDER, "null")


def provider_of_pool(deps: ApiDeps, provider_id: str) -> ProviderSettings:
    """The provider that a definition names; refused if there is no such one."""
    if provider_id == NULL_PROVIDER:
        return _NULL
    if provider_id not in deps.providers:
        known = ", ".join([*deps.providers, NULL_PROVIDER])
        raise input_error(f"Invalid Provider: providerId {provider_id!r} is none of {known}")
    return deps.providers[provider_id]


def existing_provider(deps: ApiDeps, provider_id: str) -> ProviderSettings:
    """The provider of something that exists; a 404 if this deployment does not have it (now)."""
    if provider_id == NULL_PROVIDER:
        return _NULL
    if provider_id not in deps.providers:
        raise not_found(f"Provider {provider_id!r} does not exist")
    return deps.providers[provider_id]


def list_providers(call: Call, deps: ApiDeps) -> ProviderList:
    """The providers in the order of the settings; the token is a plain number."""
    start = int(call.query.get("continuationToken", 0))
    end = start + max(1, int(call.query.get("limit", DEFAULT_LIMIT)))
    listed = list(deps.providers.values())
    more: dict[str, Any] = {"continuation_token": str(end)} if end < len(listed) else {}
    return ProviderList(
        providers=[
            ProviderEntry(provider_id=one.provider_id, provider_type=one.provider_type)
            for one in listed[start:end]
        ],
        **more,
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="listProviders",
        method="GET",
        path="/providers",
        handler=list_providers,
        scopes="worker-manager:list-providers",
        query={"continuationToken": LIMIT, "limit": LIMIT},
        response=ProviderList,
    ),
)
