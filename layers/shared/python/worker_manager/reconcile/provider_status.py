"""Saying that a provider as a whole fails, and that it works again; what it does stays its own.

Only its own pools wait for it, and nothing but the next success is needed to end it: whatever
fails here is tried again at the next tick.  Where to read next: ``store.provider_status``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.metrics import meter
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.errors import CloudError
    from worker_manager.reconcile.deps import Deps
    from worker_manager.store.provider_status import Activity, ProviderStatusStore

SETUP_FAILED = "setup-failed"
"""Kind of what keeps a provider from starting; beside it there are the kinds of cloud errors."""


def provider_failed(deps: Deps, activity: Activity, error: CloudError) -> None:
    """The cloud refused ``activity`` for a reason that concerns the provider as a whole.

    Never raises.  Only the cloud's code is shown: its words may name accounts and keys.
    """
    note_failure(
        deps.stores.statuses,
        deps.provider_id,
        activity,
        kind=error.kind,
        reason=f"{error.code[:100]}: the cloud refuses our credentials or does not allow this",
        now=deps.clock(),
    )


def provider_recovered(deps: Deps, activity: Activity) -> None:
    """The cloud allowed ``activity``; cheap where it had not failed before.  Never raises."""
    note_success(deps.stores.statuses, deps.provider_id, activity, now=deps.clock())


def note_failure(
    statuses: ProviderStatusStore,
    provider_id: str,
    activity: Activity,
    *,
    kind: str,
    reason: str,
    now: datetime,
) -> None:
    """Write that a provider fails, and log it as often; ``reason`` is for everybody to see."""
    meter.provider_failed()
    try:
        written = statuses.failed(provider_id, activity, kind=kind, reason=reason, now=now)
    except Exception:
        logger.exception("a provider's status could not be written", provider=provider_id)
        written = True
    if written:
        logger.error(
            "a provider fails", provider=provider_id, activity=activity, kind=kind, reason=reason
        )


def note_success(
    statuses: ProviderStatusStore, provider_id: str, activity: Activity, *, now: datetime
) -> None:
    """Write that a provider works, if it was said to fail."""
    try:
        if statuses.recovered(provider_id, activity, now=now):
            logger.info("a provider works again", provider=provider_id, activity=activity)
    except Exception:
        logger.exception("a provider's status could not be written", provider=provider_id)
