"""Saying that a provider as a whole fails, and that it works again; what it does stays its own.

Only its own pools wait for it, and nothing but the next success is needed to end it: whatever
fails here is tried again at the next tick.  Where to read next: ``store.provider_status``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import CloudError, ProviderNotReadyError
from worker_manager.metrics import meter
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from worker_manager.reconcile.deps import Deps
    from worker_manager.store.provider_status import Activity


def provider_failed(
    deps: Deps, activity: Activity, error: CloudError | ProviderNotReadyError
) -> None:
    """``activity`` failed for a reason that concerns the provider as a whole.

    Never raises; logged as often as it is written.
    """
    meter.provider_failed()
    provider_id, kind, reason = deps.provider_id, error.kind, _shown(error)
    try:
        written = deps.stores.statuses.failed(
            provider_id, activity, kind=kind, reason=reason, now=deps.clock()
        )
    except Exception:
        logger.exception("a provider's status could not be written", provider=provider_id)
        written = True
    if written:
        logger.error(
            "a provider fails", provider=provider_id, activity=activity, kind=kind, reason=reason
        )


def provider_recovered(deps: Deps, activity: Activity) -> None:
    """``activity`` succeeded; cheap where it had not failed before.  Never raises."""
    provider_id = deps.provider_id
    try:
        if deps.stores.statuses.recovered(provider_id, activity, now=deps.clock()):
            logger.info("a provider works again", provider=provider_id, activity=activity)
    except Exception:
        logger.exception("a provider's status could not be written", provider=provider_id)


def _shown(error: CloudError | ProviderNotReadyError) -> str:
    """The reason for everybody to see: of a cloud's words, which may name keys, only its code."""
    if isinstance(error, ProviderNotReadyError):
        return str(error)
    return f"{error.code[:100]}: the cloud refuses our credentials or does not allow this"
