"""What a provision makes of outcomes: breakers judged, probes claimed, refusals told to all.

Where to read next: ``core.breaker`` (the rules), ``core.standing`` (what they do to a launch
config), ``store.offerings`` (what pools share).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.breaker import SHARED_KINDS, Breaker, BreakerState, credentials_key
from worker_manager.core.errors import BadCredentialsError, CloudError
from worker_manager.core.events import LAUNCH_CONFIG_RESUMED, pause_event
from worker_manager.core.model import Location
from worker_manager.core.standing import location_of_offering, offering_key
from worker_manager.core.telling import PROBED_ELSEWHERE, REFUSED_ELSEWHERE
from worker_manager.metrics import meter
from worker_manager.observing import waits_for_quota
from worker_manager.providers.protocol import Stepwise
from worker_manager.store.outbox_items import outbox_key
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker_manager.core.facts import Facts
    from worker_manager.core.model import Json, Pool, Worker
    from worker_manager.core.planning import Decision
    from worker_manager.core.plans import Control, Order, Pause, Plan
    from worker_manager.reconcile.deps import Deps
    from worker_manager.reconcile.sending import Outcome
    from worker_manager.store.places import Survey


def tell_changes(pool: Pool, before: Mapping[str, Breaker], after: Mapping[str, Breaker]) -> None:
    """Log each launch config's own breaker that was written in another state than before."""
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


def confirm(decision: Decision, facts: Facts, deps: Deps) -> Decision:
    """The decision less what another pool has found out since the tick began, or is finding out."""
    refused = _refused_meanwhile(decision, facts, deps)
    if refused:
        decision = decision.without(refused, facts, reason=REFUSED_ELSEWHERE)
    lost = [
        name
        for name, standing in decision.probing.shared.items()
        if standing.shared is not None
        and standing.breaker is not None
        and not deps.stores.offerings.claim(
            deps.provider_id, standing.shared, standing.breaker, facts.now
        )
    ]
    return decision.without(lost, facts, reason=PROBED_ELSEWHERE) if lost else decision


def _refused_meanwhile(decision: Decision, facts: Facts, deps: Deps) -> list[str]:
    """Launch configs to be ordered of, no probes, whose shared breaker has opened by now."""
    pool_id = facts.pool.pool_id
    heads = [
        c.head for c in decision.choices if not decision.probing.covers(c.head.launch_config_id)
    ]
    keys = {offering_key(head, pool_id) for head in heads}
    if not keys:
        return []
    known = deps.stores.offerings.known(deps.provider_id, keys, now=facts.now)
    closed_off = {key for key, breaker in known.items() if not breaker.is_closed}
    return [
        head.launch_config_id
        for head in heads
        if not closed_off.isdisjoint({offering_key(head, pool_id), credentials_key(head.location)})
    ]


def ways_of(order: Order) -> frozenset[str]:
    """All under which a refusal may be kept that says something about an order."""
    return frozenset({order.launch_config_id, order.offering, credentials_key(order.location)})


def learn(plan: Plan, outcomes: Iterable[Outcome], deps: Deps) -> set[str]:
    """Tell all pools what the cloud refused, and what a probe got; returns what was refused.

    A refusal of many orders at once is told once.  What answers a probe with anything but bad
    credentials shows that those hold; that it was accepted shows no more than that, where the
    machine is made later (``learn_made``).
    """
    refused = {}
    for outcome in outcomes:
        error, order = outcome.error, outcome.order
        if error is None:
            _accepted(plan, outcome, deps)
        elif outcome.refused or not order.is_open:
            key = _kept_under(error, order)
            refused[key] = error
            if order.is_probe and not isinstance(error, BadCredentialsError):
                _credentials_hold(plan, order, deps)
    for key, error in refused.items():
        if isinstance(error, BadCredentialsError) or error.kind in SHARED_KINDS:
            _tell_refusal(plan, key, error, deps)
    return set(refused)


def _accepted(plan: Plan, outcome: Outcome, deps: Deps) -> None:
    """An order was taken: a success, or the promise of one."""
    if makes_at_once(deps):
        tell_success(plan, outcome.order, deps)
    elif outcome.order.is_probe:
        _credentials_hold(plan, outcome.order, deps)


def makes_at_once(deps: Deps) -> bool:
    """Whether a machine exists as soon as its cloud took the order (else see ``learn_made``)."""
    return not isinstance(deps.provider, Stepwise)


def _kept_under(error: CloudError, order: Order) -> str:
    """Under what a refusal is kept: what others would meet too, else the launch config's own."""
    if isinstance(error, BadCredentialsError):
        return credentials_key(order.location)
    return order.offering if error.kind in SHARED_KINDS else order.launch_config_id


def tell_success(plan: Plan, order: Order, deps: Deps) -> None:
    """A probe brought its machine: credentials hold, and what it probed works again."""
    if order.launched and order.is_probe:
        deps.stores.offerings.worked(plan.provider_id, order.offering, deps.clock())
        _credentials_hold(plan, order, deps)


def _credentials_hold(plan: Plan, order: Order, deps: Deps) -> None:
    key = credentials_key(order.location)
    deps.stores.offerings.worked(plan.provider_id, key, deps.clock())


def _tell_refusal(plan: Plan, key: str, error: CloudError, deps: Deps) -> None:
    opened = deps.stores.offerings.failed(
        plan.provider_id, key, kind=error.kind, reason=str(error), at=deps.clock()
    )
    if opened:
        meter.breaker_opened(plan.provider_id)
        level = logger.error if isinstance(error, BadCredentialsError) else logger.warning
        level("an offering was refused", provider=plan.provider_id, offering=key, kind=error.kind)


def learn_late(failures: Iterable[tuple[Worker, CloudError]], deps: Deps) -> None:
    """Tell all pools what the cloud refused after it had accepted the calls (B33).

    The workers' rows are whole; of those of one order that failed alike, one tells it all.
    """
    alike = {(worker.order_id, error.kind): (worker, error) for worker, error in failures}
    for worker, error in alike.values():
        if error.kind in SHARED_KINDS:
            for plan, order in _order_of(worker, deps):
                _tell_refusal(plan, _kept_under(error, order), error, deps)


def learn_made(workers: Iterable[Worker], deps: Deps) -> None:
    """Machines exist that their cloud had only accepted: where they are from, more can be had."""
    for worker in {worker.launch_config_id: worker for worker in workers}.values():
        if worker.launch_config_id is not None:
            deps.stores.health.made(worker.key.pool_id, worker.launch_config_id, deps.clock())
        for plan, order in _order_of(worker, deps):
            tell_success(plan, order, deps)


def _order_of(worker: Worker, deps: Deps) -> list[tuple[Plan, Order]]:
    """The order that brought a worker, with its plan, as long as that is kept."""
    if worker.decision is None:
        return []
    plan = deps.stores.plans.get(worker.key.pool_id, worker.decision)
    if plan is None:
        return []
    return [(plan, order) for order in plan.orders if order.order_id == worker.order_id]


def count_machines(survey: Survey, deps: Deps) -> None:
    """Note, of each quota that was hit, what the first complete list after it shows."""
    for key, breaker in survey.offerings.items():
        place = survey.places.get(Location(location_of_offering(key)))
        if not waits_for_quota(breaker) or breaker.machines is not None or place is None:
            continue
        if place.complete is not None and place.complete > breaker.since:
            after = replace(breaker, machines=place.baseline.machines)
            deps.stores.offerings.counted(deps.provider_id, key, breaker, after)


def end_pauses(pool: Pool, control: Control, deps: Deps) -> Control:
    """Take out the pauses whose time is over, each with the event that tells of it.

    A launch config that was archived is not resumed: its pause goes, and nobody is told.
    """
    now = deps.clock()
    active = {head.launch_config_id for head in pool.heads}
    kept = dict(control.pauses)
    for name, pause in control.pauses.items():
        if pause.until > now and name in active:
            continue
        event = _end_of(pause, pool, name) if name in active else None
        less = {key: value for key, value in kept.items() if key != name}
        if deps.stores.pauses.write(pool.pool_id, kept, less, event=event, now=now):
            if event is not None:
                deps.outbox.send(outbox_key([event], now), [event])
            kept = less
    return replace(control, pauses=kept)


def _end_of(pause: Pause, pool: Pool, launch_config_id: str) -> Json:
    return pause_event(
        LAUNCH_CONFIG_RESUMED,
        pool.pool_id,
        pool.provider_id,
        launch_config_id,
        at=pause.until,
        reason="the pause is over",
    )
