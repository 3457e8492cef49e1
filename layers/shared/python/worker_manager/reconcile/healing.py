"""What a provision makes of outcomes: breakers judged, probes claimed, refusals told to all.

Where to read next: ``core.breaker`` (the rules), ``core.standing`` (what they do to a launch
config), ``store.offerings`` (what pools share).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.core.breaker import SHARED_KINDS, WHOLE_PROVIDER, Breaker, BreakerState
from worker_manager.core.errors import BadCredentialsError, CloudError
from worker_manager.core.events import LAUNCH_CONFIG_RESUMED, pause_event
from worker_manager.core.model import Location
from worker_manager.core.standing import location_of_offering
from worker_manager.metrics import meter
from worker_manager.reconcile.provider_status import provider_failed, provider_recovered
from worker_manager.store.places import outbox_key
from worker_manager.store.provider_status import Activity
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.model import Control, Order, Plan, Pool, Worker
    from worker_manager.core.planning import Decision
    from worker_manager.reconcile.deps import Deps
    from worker_manager.store.places import Place, Survey


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call made of an order: the order as it stands now, and the rows written."""

    order: Order
    written: Sequence[Worker] = ()
    error: CloudError | None = None


def tell_changes(pool: Pool, before: Mapping[str, Breaker], after: Mapping[str, Breaker]) -> None:
    """Log each launch config's own breaker that changed its state."""
    for name, breaker in after.items():
        was = before.get(name)
        if (was.state if was else BreakerState.CLOSED) is not breaker.state:
            if breaker.state is BreakerState.OPEN:
                meter.breaker_opened(pool.provider_id)
            logger.warning(
                "a breaker changed",
                pool=pool.pool_id,
                launchConfig=name,
                state=breaker.state.value,
                kind=breaker.kind,
                reason=breaker.reason,
            )


def claim_probes(decision: Decision, now: datetime, deps: Deps) -> Decision:
    """The decision less the probes that another pool is just making of the same offering."""
    lost = [
        name
        for name, standing in decision.probing.shared.items()
        if standing.shared is not None
        and standing.breaker is not None
        and not deps.stores.offerings.claim(
            deps.provider_id, standing.shared, standing.breaker, now
        )
    ]
    return decision.without(lost) if lost else decision


def learn(plan: Plan, outcomes: Iterable[Outcome], deps: Deps) -> set[str]:
    """Tell all pools what the cloud refused, and what a probe got; returns what was refused.

    A refusal of many orders at once is told once.  What answers a probe with anything but bad
    credentials shows that those hold.
    """
    refused, told = set(), {}
    for outcome in outcomes:
        error, order = outcome.error, outcome.order
        if error is None:
            _tell_success(plan, order, deps)
        elif not order.is_open:
            key = _shared_key(error, order.offering)
            refused |= {order.offering, key or order.offering}
            told[key, error.kind] = error
            if order.is_probe and key != WHOLE_PROVIDER:
                _tell_works(plan, WHOLE_PROVIDER, deps)
    for (key, _), error in told.items():
        if key is not None:
            _tell_refusal(plan, key, error, deps)
    return refused


def _shared_key(error: CloudError, offering: str) -> str | None:
    """Under what a refusal is kept for all pools, if it says anything about the others."""
    if isinstance(error, BadCredentialsError):
        return WHOLE_PROVIDER
    return offering if error.kind in SHARED_KINDS else None


def _tell_success(plan: Plan, order: Order, deps: Deps) -> None:
    if not order.launched:
        return
    provider_recovered(deps, Activity.LAUNCH)
    if order.is_probe:
        for key in (order.offering, WHOLE_PROVIDER):
            _tell_works(plan, key, deps)


def _tell_works(plan: Plan, key: str, deps: Deps) -> None:
    deps.stores.offerings.worked(plan.provider_id, key, deps.clock())


def _tell_refusal(plan: Plan, key: str, error: CloudError, deps: Deps) -> None:
    deps.stores.offerings.failed(
        plan.provider_id, key, kind=error.kind, reason=str(error), at=deps.clock()
    )
    meter.breaker_opened(plan.provider_id)
    if key == WHOLE_PROVIDER:
        provider_failed(deps, Activity.LAUNCH, error)
    logger.warning(
        "an offering was refused", provider=plan.provider_id, offering=key, kind=error.kind
    )


def freed(survey: Survey, deps: Deps) -> dict[str, Breaker]:
    """The offerings known, those of a quota due at once where there are fewer machines by now.

    How many there were is what the first complete list after the refusal showed.
    """
    now = deps.clock()
    found = {}
    for key, breaker in survey.offerings.items():
        place = survey.places.get(Location(location_of_offering(key)))
        found[key] = breaker
        if breaker.kind != "quota-exceeded" or breaker.is_closed or place is None:
            continue
        if breaker.machines is None:
            _count_machines(key, breaker, place, deps)
        elif place.baseline.machines < breaker.machines:
            found[key] = replace(breaker, next_try=now)
    return found


def _count_machines(key: str, breaker: Breaker, place: Place, deps: Deps) -> None:
    if place.complete is not None and place.complete > breaker.since:
        after = replace(breaker, machines=place.baseline.machines)
        deps.stores.offerings.counted(deps.provider_id, key, breaker, after)


def end_pauses(pool: Pool, control: Control, deps: Deps) -> Control:
    """Take out the pauses whose time is over, each with the event that tells of it."""
    now = deps.clock()
    kept = dict(control.pauses)
    for name, pause in control.pauses.items():
        if pause.until > now:
            continue
        event = pause_event(
            LAUNCH_CONFIG_RESUMED,
            pool.pool_id,
            pool.provider_id,
            name,
            at=pause.until,
            reason="the pause is over",
        )
        seen = kept.copy()
        del kept[name]
        if deps.stores.pauses.write(pool.pool_id, seen, kept, event=event, now=now):
            deps.outbox.send(outbox_key([event], now), [event])
    return replace(control, pauses=kept)
