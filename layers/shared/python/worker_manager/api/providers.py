"""Which providers pools may name, and how they fare.

A provider that cannot start stops nothing here: pools are defined and machines register without
its cloud.  Its pools wait for it (``reconcile.provider_status``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api.provider_schemas import ProviderStatus
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
    """The providers in the order of the settings; the token is a plain number.

    Those without a cloud, which nothing can fail at, have no status.
    """
    start = int(call.query.get("continuationToken", 0))
    end = start + max(1, int(call.query.get("limit", DEFAULT_LIMIT)))
    listed = list(deps.providers.values())
    more: dict[str, Any] = {"continuation_token": str(end)} if end < len(listed) else {}
    return ProviderList(
        providers=[
            ProviderEntry(
                provider_id=one.provider_id,
                provider_type=one.provider_type,
                **_status(one.provider_id, deps),
            )
            for one in listed[start:end]
        ],
        **more,
    )


def _status(provider_id: str, deps: ApiDeps) -> dict[str, Any]:
    status = status_if_any(provider_id, deps)
    return {} if status is None else {"status": status}


def status_if_any(provider_id: str, deps: ApiDeps) -> ProviderStatus | None:
    """How a provider with a loop of its own fares; the others have nothing to fail at."""
    return status_of(provider_id, deps) if provider_id in deps.senders else None


def status_of(provider_id: str, deps: ApiDeps) -> ProviderStatus:
    """Whether the provider works; of several things that it fails at, all are said."""
    failing = deps.stores.statuses.failing(provider_id, deps.clock())
    if not failing:
        return ProviderStatus(state="ok")
    reasons = [f"{one.activity}: {one.reason}" for one in failing]
    return ProviderStatus(state="failing", since=failing[0].since, reason="; ".join(reasons))


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
