"""Arbitrary pools for properties: small numbers, so that limits are met often."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.factories import NOW, REGION, a_head, a_pool, a_worker, an_order
from worker_manager.core.activity import QueueCounts
from worker_manager.core.breaker import (
    Breaker,
    BreakerState,
    credentials_key,
    probe,
    recover,
    trip,
)
from worker_manager.core.facts import Facts
from worker_manager.core.health import FAILURE_KINDS, Health
from worker_manager.core.model import LaunchConfigHead, State, Worker
from worker_manager.core.plans import Order, Pause

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = tuple(f"lc-{letter}" for letter in "abcdef")
OFFERINGS = ("", "us-east-1/a/m5.large/spot", "us-east-1/a/m5.large/on-demand")
STOPPING_LIMIT = timedelta(minutes=20)

demands = st.builds(QueueCounts, pending=st.integers(0, 200), claimed=st.integers(0, 60))
ratios = st.integers(0, 20).map(lambda twentieths: twentieths / 20)
ages = st.integers(0, 100).map(lambda minutes: timedelta(minutes=minutes))


@st.composite
def workers(draw: st.DrawFn, states: Sequence[State] = tuple(State)) -> list[Worker]:
    """Up to twelve workers, some quarantined, some long stopping."""
    return [
        draw(a_random_worker(f"i-{number}", states=states))
        for number in range(draw(st.integers(0, 12)))
    ]


@st.composite
def a_random_worker(draw: st.DrawFn, worker_id: str, states: Sequence[State]) -> Worker:
    state = draw(st.sampled_from(states))
    since: dict[str, Any] = {}
    if state is State.STOPPING:
        since["stopping_since"] = NOW - draw(ages)
    if draw(st.booleans()):
        since["quarantine_until"] = NOW + draw(st.sampled_from([-1, 1])) * timedelta(hours=1)
    born = NOW - draw(ages)
    return a_worker(
        worker_id,
        state=state,
        capacity=draw(st.integers(1, 8)),
        launch_config_id=draw(st.sampled_from(NAMES)),
        group=draw(st.sampled_from(["us-east-1", "us-west-2"])),
        created=born,
        modified=born,
        **since,
    )


@st.composite
def orders(draw: st.DrawFn) -> list[tuple[Order, int]]:
    """Up to three open orders, with how many of their machines have rows."""
    return [
        (
            an_order(
                f"o-{number}",
                launch_config_id=draw(st.sampled_from(NAMES)),
                count=draw(st.integers(1, 6)),
                capacity_per_instance=draw(st.integers(1, 4)),
            ),
            draw(st.integers(0, 8)),
        )
        for number in range(draw(st.integers(0, 3)))
    ]


@st.composite
def heads(draw: st.DrawFn, *, at_least: int = 0) -> list[LaunchConfigHead]:
    """Launch configs in any order, some off, some with limits of their own."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=at_least))
    return [
        a_head(
            name,
            capacity_per_instance=draw(st.integers(1, 8)),
            offering=draw(st.sampled_from(OFFERINGS)),
            manager=draw(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "initialWeight": st.sampled_from([0, 0.1, 0.5, 1]),
                        "maxCapacity": st.integers(0, 20),
                    },
                )
            ),
        )
        for name in names
    ]


healths = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        Health,
        launched=st.integers(0, 50),
        registered=st.integers(0, 50),
        failed=st.dictionaries(st.sampled_from(FAILURE_KINDS), st.integers(1, 500), max_size=3),
    ),
)


@st.composite
def a_breaker(draw: st.DrawFn) -> Breaker:
    """Open, half-open or closed, due or not."""
    kind = draw(st.sampled_from(FAILURE_KINDS))
    tripped = trip(None, kind, "why", NOW - draw(ages))
    state = draw(st.sampled_from(BreakerState))
    if state is BreakerState.HALF_OPEN:
        return probe(tripped, NOW - draw(ages))
    return tripped if state is BreakerState.OPEN else recover(tripped, NOW - draw(ages))


pauses = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        Pause,
        until=st.sampled_from([NOW - timedelta(hours=1), NOW + timedelta(hours=1)]),
        reason=st.just("why"),
        by=st.just("me"),
        since=st.just(NOW),
    ),
    max_size=2,
)
own_breakers = st.dictionaries(st.sampled_from(NAMES), a_breaker())
shared_breakers = st.dictionaries(
    st.sampled_from([credentials_key(REGION), *OFFERINGS]), a_breaker(), max_size=2
)


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """All that a tick may see of a pool."""
    maximum = draw(st.integers(0, 30))
    config = {
        "minCapacity": draw(st.integers(0, maximum)),
        "maxCapacity": maximum,
        "scalingRatio": draw(ratios),
    }
    return Facts(
        pool=a_pool(heads=draw(heads()), config=config),
        workers=draw(workers()),
        open_orders=draw(orders()),
        demand=draw(demands),
        health=draw(healths),
        now=NOW,
        stopping_limit=STOPPING_LIMIT,
        stale_after=timedelta(minutes=3),
        breakers=draw(own_breakers),
        offerings=draw(shared_breakers),
        pauses=draw(pauses),
        probed=draw(st.none() | ages.map(lambda age: NOW - age)),
        probe_wait=timedelta(minutes=draw(st.sampled_from([0, 1, 2, 4, 5]))),
    )
