"""Reading all that planning needs to know of one pool.

The provision loop acts on it, the API explains it: both see the pool by this one way.
Where to read next: ``core.planning``, which decides by these facts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.breaker import BreakerState, judge_all
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.facts import Facts
from worker_manager.core.model import Location
from worker_manager.core.standing import forgiven, location_of_offering, offering_key
from worker_manager.store.places import Survey
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.breaker import Breaker
    from worker_manager.core.model import Pool
    from worker_manager.core.plans import Control
    from worker_manager.core.timing import Timing
    from worker_manager.store.places import Place
    from worker_manager.store.stores import Stores
    from worker_manager.taskcluster.queue import QueueClient


LATER = timedelta(minutes=1)
"""After which a quota with room for others is looked at again."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of a provider that may concern one pool.

    ``not_before`` and ``stale`` (since when) are by location, ``offerings`` the shared breakers
    that are not closed, or were not within the hour.
    """

    not_before: Mapping[Location, datetime] = field(default_factory=dict)
    stale: Mapping[Location, datetime] = field(default_factory=dict)
    offerings: Mapping[str, Breaker] = field(default_factory=dict)


def look_around(pool: Pool, stores: Stores, *, timing: Timing, now: datetime) -> Around:
    """Ask for what a tick brings along: the pool's locations, and what it asks for there."""
    places = stores.places.places(pool.provider_id, {head.location for head in pool.heads})
    keys = {offering_key(head, pool.pool_id) for head in pool.heads}
    survey = Survey(
        members=[],
        places={place.location: place for place in places},
        offerings=stores.offerings.known(pool.provider_id, keys, now=now),
    )
    return Around(
        not_before=pauses(places),
        stale=unlisted(places, now, timing),
        offerings=freed(survey, now),
    )


def observe(
    pool: Pool,
    control: Control,
    around: Around,
    *,
    stores: Stores,
    queue: QueueClient | None,
    timing: Timing,
    now: datetime,
) -> Facts:
    """Read open plans, then live workers, then health and, where ``queue`` is given, demand.

    In this order a row that is written meanwhile is counted, and its order still too: too few
    machines are ordered for a tick, never too many.
    """
    plans = stores.plans.open_plans(control)
    workers = list(stores.workers.live(pool.pool_id))
    rows = Counter(worker.order_id for worker in workers)
    since = forgiven(pool.pool_id, pool.heads, control.breakers, around.offerings)
    health = stores.health.window(pool.pool_id, now, since=since)
    return Facts(
        pool=pool,
        workers=workers,
        open_orders=[
            (order, rows[order.order_id] + order.barred)
            for plan in plans
            for order in plan.orders
            if order.is_open
        ],
        demand=_demand(pool.pool_id, queue) if queue is not None else None,
        health=health,
        now=now,
        stopping_limit=timing.stopping_limit,
        stale_after=timing.location_stale,
        not_before=around.not_before,
        stale=around.stale,
        breakers=judge_all(pool.heads, control.breakers, health, workers, now),
        offerings=around.offerings,
        pauses=control.pauses,
        probed=control.probed,
        probe_wait=control.probe_wait,
    )


def as_if(facts: Facts, control: Control, pool: Pool, *, stores: Stores, timing: Timing) -> Facts:
    """The same facts of another definition of the pool: only around what it adds is looked."""
    known = {head.launch_config_id for head in facts.pool.heads}
    added = tuple(head for head in pool.heads if head.launch_config_id not in known)
    around = look_around(replace(pool, heads=added), stores, timing=timing, now=facts.now)
    breakers = judge_all(pool.heads, control.breakers, facts.health, facts.workers, facts.now)
    return replace(
        facts,
        pool=pool,
        breakers=breakers,
        not_before={**facts.not_before, **around.not_before},
        stale={**facts.stale, **around.stale},
        offerings={**facts.offerings, **around.offerings},
    )


def pauses(places: Iterable[Place]) -> dict[Location, datetime]:
    """Until when each location asked not to be asked, if it did."""
    return {place.location: place.not_before for place in places if place.not_before is not None}


def unlisted(places: Iterable[Place], now: datetime, timing: Timing) -> dict[Location, datetime]:
    """Since when each location that is not listed as it should be is not."""
    since = ((place.location, place.unlisted_since(now, timing.resend)) for place in places)
    return {location: moment for location, moment in since if moment is not None}


def freed(survey: Survey, now: datetime) -> dict[str, Breaker]:
    """The offerings known; of those that wait for a quota, told which have room.

    How many machines there were is what ``reconcile.healing.count_machines`` found.  As many have
    room as a list made since shows fewer, those first that have not been tried the longest.  The
    others wait: one machine more is no proof below the level at which the quota was hit.
    """
    found = dict(survey.offerings)
    waiting = [one for one in survey.offerings.items() if waits_for_quota(one[1])]
    taken: Counter[str] = Counter()
    for key, breaker in sorted(waiting, key=lambda one: one[1].since):
        location = location_of_offering(key)
        room = _room(breaker, survey.places.get(Location(location)))
        if room > taken[location]:
            taken[location] += 1
            found[key] = replace(breaker, is_freed=True)
        elif room > 0:
            found[key] = replace(breaker, next_try=max(breaker.next_try or now, now + LATER))
    return found


def _room(breaker: Breaker, place: Place | None) -> int:
    """How many machines fewer there are than when the quota was hit, as far as a list tells."""
    if breaker.machines is None or place is None or place.complete is None:
        return 0
    return breaker.machines - place.baseline.machines if place.complete > breaker.since else 0


def waits_for_quota(breaker: Breaker) -> bool:
    """Whether an offering is closed off because as much as may be is used."""
    return breaker.kind == "quota-exceeded" and breaker.state is BreakerState.OPEN


def _demand(pool_id: str, queue: QueueClient) -> QueueCounts | None:
    try:
        return queue.counts(pool_id)
    except QueueUnavailableError as error:
        logger.warning("the queue did not answer", pool=pool_id, error=str(error))
        return None
