"""Plans of pools of which something failed: what is probed, and how fast the rest goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import STOPPING_LIMIT, facts
from tests.factories import NOW, POOL_ID, REGION, a_head, a_pool, a_worker
from worker_manager.core.activity import QueueCounts
from worker_manager.core.breaker import (
    Breaker,
    BreakerState,
    credentials_key,
    judge_all,
    probe,
    recover,
    trip,
)
from worker_manager.core.explaining import explain
from worker_manager.core.facts import Facts
from worker_manager.core.health import Health
from worker_manager.core.model import State
from worker_manager.core.planning import Decision, as_plan, decide
from worker_manager.core.plans import Pause
from worker_manager.core.telling import PROBED_ELSEWHERE, TOLD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.model import LaunchConfigHead

MINUTE = timedelta(minutes=1)
SPOT = "us-east-1/us-east-1a/m5.large/spot"
WAITING = "tasks are waiting for more capacity than is running or requested"
NOBODY = "no launch config may take the wanted capacity now"


def an_open(kind: str = "invalid-launch-config", *, ago: float = 0.5) -> Breaker:
    return trip(None, kind, "why", NOW - ago * MINUTE)


def seen(
    heads: Sequence[LaunchConfigHead] | None = None,
    *,
    pending: int = 0,
    maximum: int = 1000,
    workers: Sequence[Any] = (),
    **overrides: Any,
) -> Facts:
    config = {"minCapacity": 0, "maxCapacity": maximum}
    values: dict[str, Any] = {
        "pool": a_pool(heads=heads, config=config),
        "workers": workers,
        "open_orders": (),
        "demand": QueueCounts(pending=pending, claimed=0),
        "health": {},
        "now": NOW,
        "stopping_limit": STOPPING_LIMIT,
        "stale_after": 3 * MINUTE,
    }
    return Facts(**(values | overrides))


def chosen(decision: Decision) -> dict[str, int]:
    counts: dict[str, int] = {}
    for choice in decision.choices:
        name = choice.head.launch_config_id
        counts[name] = counts.get(name, 0) + choice.count
    return counts


def ordered(observed: Facts) -> dict[str, int]:
    return chosen(decide(observed, Random(1)))


# Beside launch configs that work


def test_a_breaker_that_is_open_gives_its_share_to_the_others() -> None:
    observed = seen([a_head("lc-a"), a_head("lc-b")], pending=40, breakers={"lc-a": an_open()})

    decision = decide(observed, Random(1))

    assert chosen(decision) == {"lc-b": 40}
    assert decision.reasons == (WAITING, "lc-a: its breaker is open (invalid-launch-config)")


def test_one_whose_time_has_come_gets_one_machine_and_the_others_the_rest() -> None:
    due = an_open(ago=30)
    observed = seen([a_head("lc-a"), a_head("lc-b")], pending=40, breakers={"lc-a": due})

    decision = decide(observed, Random(1))

    assert chosen(decision) == {"lc-a": 1, "lc-b": 39}
    assert decision.probing.breakers == {"lc-a": probe(due, NOW)}
    plan = as_plan(decision, observed, tick="t-1", provider_id="aws", inputs={})
    assert {o.launch_config_id: o.is_probe for o in plan.orders} == {"lc-a": True, "lc-b": False}
    assert (decision.probing.probed, decision.probing.wait) == (None, timedelta(0))


def test_one_that_is_just_being_probed_is_not_probed_again() -> None:
    half_open = probe(an_open(ago=40), NOW - MINUTE)
    observed = seen([a_head("lc-a"), a_head("lc-b")], pending=9, breakers={"lc-a": half_open})

    assert ordered(observed) == {"lc-b": 9}


def test_of_those_that_ask_for_the_same_one_is_probed() -> None:
    """The others would only learn what it learns."""
    same = [a_head(f"lc-{n}", offering=SPOT) for n in "abc"]
    due = an_open("no-capacity", ago=5)
    observed = seen([*same, a_head("lc-d")], pending=9, offerings={SPOT: due})

    assert ordered(observed) == {"lc-a": 1, "lc-d": 8}


def test_a_place_is_probed_with_a_launch_config_that_has_nothing_else_against_it() -> None:
    """One that is refused for itself would never tell whether the place has machines."""
    same = [a_head(f"lc-{n}", offering=SPOT) for n in "abc"]
    observed = seen(
        [*same, a_head("lc-d")],
        pending=9,
        offerings={SPOT: an_open("no-capacity", ago=5)},
        breakers={"lc-a": an_open(), "lc-b": recover(an_open(), NOW)},
    )

    assert ordered(observed) == {"lc-b": 1, "lc-d": 8}


def test_credentials_that_failed_are_tried_with_one_launch_config() -> None:
    observed = seen(
        [a_head("lc-a"), a_head("lc-b")],
        pending=9,
        offerings={credentials_key(REGION): an_open("not-authorized", ago=2)},
    )

    decision = decide(observed, Random(1))

    assert chosen(decision) == {"lc-a": 1}
    assert decision.reasons == (
        WAITING,
        "the provider's credentials do not hold there (not-authorized)",
    )


# Where all are closed off


def test_where_all_are_closed_off_one_is_probed_every_one_to_five_minutes() -> None:
    """Report B41 (karpenter#3198): created and deleted for ever; and never nothing."""
    names = ("lc-a", "lc-b")
    breakers = {name: an_open(ago=0) for name in names}
    observed = seen([a_head(name) for name in names], pending=600, breakers=breakers)
    calls = []
    for tick in range(2 * 60 * 2):
        now = NOW + tick * MINUTE / 2
        decision = decide(replace(observed, now=now), Random(tick))
        if decision.choices:
            assert list(chosen(decision).values()) == [1]
            calls.append(tick / 2)
        (name,) = chosen(decision) or [""]
        failing = Health(
            failed={"invalid-launch-config": 1},
            failed_at=now,
            failed_kind="invalid-launch-config",
        )
        kept = judge_all(observed.pool.heads, decision.probing.breakers, {name: failing}, (), now)
        observed = replace(
            observed,
            breakers=kept,
            probed=decision.probing.probed,
            probe_wait=decision.probing.wait,
        )

    assert calls[:6] == [1, 2, 4, 8, 13, 18]
    assert {round(b - a, 1) for a, b in pairwise(calls[4:])} == {5}


def test_a_pool_that_has_just_probed_says_that_nobody_may_take_the_work() -> None:
    observed = seen(
        pending=5, breakers={"lc-a": an_open()}, probed=NOW - MINUTE, probe_wait=2 * MINUTE
    )

    decision = decide(observed, Random(1))

    assert not decision.choices
    assert decision.reasons == ("lc-a: its breaker is open (invalid-launch-config)", NOBODY)
    assert decision.probing.probed == NOW - MINUTE


def test_a_pool_that_can_launch_again_forgets_how_long_it_waited() -> None:
    observed = seen(pending=5, probed=NOW - MINUTE, probe_wait=5 * MINUTE)

    decision = decide(observed, Random(1))

    assert chosen(decision) == {"lc-a": 5}
    assert (decision.probing.probed, decision.probing.wait) == (None, timedelta(0))


@pytest.mark.parametrize(
    ("shared", "expected"),
    [
        (an_open("no-capacity", ago=0.5), {}),
        (an_open("no-capacity", ago=1.5), {"lc-a": 1}),
        (probe(an_open("no-capacity", ago=5), NOW - 3 * MINUTE), {}),
        (probe(an_open("no-capacity", ago=9), NOW - 5 * MINUTE), {"lc-a": 1}),
    ],
)
def test_what_somebody_else_just_finds_out_is_not_forced(
    shared: Breaker, expected: dict[str, int]
) -> None:
    observed = seen([a_head(offering=SPOT)], pending=5, offerings={SPOT: shared})

    assert ordered(observed) == expected


@pytest.mark.parametrize(
    ("own", "shared", "probed", "wait", "expected"),
    [
        (an_open(ago=0.5), None, None, 0, 0.5),
        (an_open(ago=0.5), None, NOW - MINUTE, 2, 1),
        (an_open(ago=99), None, NOW, 5, 5),
        (an_open(ago=99), None, NOW - MINUTE, 1, 0),
        (probe(an_open(ago=9), NOW), None, None, 0, 1),
        (None, an_open("no-capacity", ago=0.5), None, 0, 0.5),
        (None, probe(an_open("no-capacity", ago=9), NOW - 3 * MINUTE), None, 0, 2),
    ],
)
@pytest.mark.parametrize("works", [False, True])
def test_the_next_probe_that_is_told_is_the_one_that_is_made(
    *,
    own: Breaker | None,
    shared: Breaker | None,
    probed: datetime | None,
    wait: float,
    expected: float,
    works: bool,
) -> None:
    """A pool of which something works tries the rest when their time comes, and no sooner."""
    observed = seen(
        [a_head(offering=SPOT), *([a_head("lc-b")] if works else [])],
        pending=9,
        breakers={"lc-a": own} if own else {},
        offerings={SPOT: shared} if shared else {},
        probed=probed,
        probe_wait=wait * MINUTE,
    )

    at = explain(observed, decide(observed, Random(1))).next_probe

    if works:
        [breaker] = filter(None, (own, shared))
        assert at == max(NOW, breaker.next_try or NOW)
    else:
        assert at == NOW + expected * MINUTE
    assert decide(replace(observed, now=at), Random(1)).probing.covers("lc-a")
    before = replace(observed, now=at - timedelta(seconds=1))
    assert at == NOW or not decide(before, Random(1)).probing.standings


def test_a_machine_larger_than_what_is_wanted_may_be_a_probe() -> None:
    """Three tasks and machines of five: it rounds up, as without a breaker."""
    heads = [a_head(capacity_per_instance=5)]

    assert ordered(seen(heads, pending=3, breakers={"lc-a": an_open(ago=2)})) == {"lc-a": 1}
    assert ordered(seen(heads, pending=3, breakers={"lc-a": an_open(ago=2)}, maximum=4)) == {
        "lc-a": 1
    }
    one = [a_worker(created=NOW)]
    assert (
        ordered(seen(heads, pending=9, breakers={"lc-a": an_open(ago=2)}, maximum=5, workers=one))
        == {}
    )


def test_one_that_is_paused_or_off_or_full_gets_nothing_though_all_others_are_closed_off() -> None:
    pause = Pause(until=NOW + MINUTE, reason="why", by="me", since=NOW)
    heads = [
        a_head("lc-paused"),
        a_head("lc-off", manager={"initialWeight": 0}),
        a_head("lc-full", manager={"maxCapacity": 0}),
    ]
    broken = {name: an_open(ago=99) for name in ("lc-paused", "lc-off", "lc-full", "lc-a")}
    observed = seen(heads, pending=5, pauses={"lc-paused": pause})

    assert ordered(observed) == {}
    assert ordered(replace(observed, breakers=broken)) == {}
    with_another = seen([*heads, a_head()], pending=5, pauses={"lc-paused": pause})
    assert ordered(replace(with_another, breakers=broken)) == {"lc-a": 1}


def test_reasons_stay_the_same_while_nothing_new_is_found_out() -> None:
    """A decision that stays the same is not stored again."""
    observed = seen(pending=5, breakers={"lc-a": an_open()}, probed=NOW, probe_wait=5 * MINUTE)
    later = replace(
        observed,
        now=NOW + MINUTE,
        demand=QueueCounts(pending=7, claimed=0),
        breakers={"lc-a": replace(an_open(), step=3, reason="in other words")},
    )

    assert decide(observed, Random(1)).reasons_hash == decide(later, Random(2)).reasons_hash


# How fast


@pytest.mark.parametrize(("registered", "failed", "orders"), [(1, 1, 50), (1, 9, 10), (0, 9, 1)])
def test_where_everything_fails_at_times_less_is_ordered_and_never_nothing(
    registered: int, failed: int, orders: int
) -> None:
    health = Health(registered=registered, failed={"never-registered": failed})
    heads = [a_head("lc-a"), a_head("lc-b")]
    observed = seen(heads, pending=100, health={"lc-a": health, "lc-b": health})

    decision = decide(observed, Random(1))

    assert sum(chosen(decision).values()) == orders
    assert "every launch config fails at times: less is ordered than is wanted" in decision.reasons
    assert sum(ordered(replace(observed, demand=QueueCounts(pending=1, claimed=0))).values()) == 1


def test_one_launch_config_that_works_takes_the_whole_rate() -> None:
    failing = {"lc-a": Health(failed={"never-registered": 9})}
    observed = seen([a_head("lc-a"), a_head("lc-b")], pending=100, health=failing)

    assert ordered(observed) == {"lc-b": 100}


# What is told


def test_a_stored_decision_tells_those_chosen_first_and_counts_the_rest() -> None:
    many = [a_head(f"lc-{n:03d}") for n in range(300)]
    observed = seen(many, pending=5, breakers={"lc-200": an_open()})

    decision = decide(observed, Random(1))

    told = dict(decision.facts["launchConfigs"])
    assert told.pop("…") == {"more": 300 - TOLD}
    assert len(told) == TOLD
    assert chosen(decision).keys() | {"lc-200"} <= told.keys()
    assert decision.facts["breakersOpen"] == 1


def test_a_probe_that_somebody_else_makes_is_taken_out_and_nothing_else() -> None:
    due = an_open("no-capacity", ago=5)
    observed = seen(
        [a_head("lc-a", offering=SPOT), a_head("lc-b")], pending=9, offerings={SPOT: due}
    )
    decision = decide(observed, Random(1))

    rest = decision.without(["lc-a"], observed, reason=PROBED_ELSEWHERE)

    assert chosen(decision) == {"lc-a": 1, "lc-b": 8}
    assert chosen(rest) == {"lc-b": 8}
    assert not rest.probing.covers("lc-a")
    assert rest.probing.shared == {}
    assert "another pool is finding out" in rest.reasons[-1]


def test_a_pool_that_lost_its_probe_to_another_keeps_its_turn() -> None:
    observed = seen(
        [a_head("lc-a", offering=SPOT)],
        pending=9,
        offerings={SPOT: an_open("no-capacity", ago=5)},
        probed=NOW - timedelta(minutes=9),
        probe_wait=timedelta(minutes=4),
    )

    rest = decide(observed, Random(1)).without(["lc-a"], observed, reason=PROBED_ELSEWHERE)

    assert rest.choices == []
    assert (rest.probing.probed, rest.probing.wait) == (observed.probed, observed.probe_wait)
    assert WAITING not in rest.reasons


# Properties


@given(observed=facts(), seed=st.integers(0, 500))
def test_nothing_is_ordered_where_nothing_is_wanted(observed: Facts, seed: int) -> None:
    decision = decide(observed, Random(seed))

    assert decision.estimate is not None
    if decision.estimate.wanted == 0:
        assert not decision.choices
        assert decision.probing.breakers == observed.breakers


@given(observed=facts(), seed=st.integers(0, 500))
def test_some_launch_config_is_chosen_whenever_one_may_take_part(
    observed: Facts, seed: int
) -> None:
    decision = decide(observed, Random(seed))

    assert decision.estimate is not None
    headroom = observed.pool.max_capacity - decision.estimate.costing
    able = [
        standing
        for standing in decision.standings
        if standing.held is None and standing.head.capacity_per_instance <= headroom
    ]
    if able and decision.estimate.to_spawn > 0:
        assert decision.choices


@given(observed=facts(), seed=st.integers(0, 500), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_launch_configs_does_not_matter_to_choices_and_probes(
    observed: Facts, seed: int, shuffle: Random
) -> None:
    heads = list(observed.pool.heads)
    shuffle.shuffle(heads)
    shuffled = replace(observed, pool=replace(observed.pool, heads=tuple(heads)))

    one, other = decide(observed, Random(seed)), decide(shuffled, Random(seed))

    assert one.choices == other.choices
    assert one.reasons == other.reasons
    assert [s.head for s in one.probing.standings] == [s.head for s in other.probing.standings]


@given(observed=facts(), seed=st.integers(0, 500))
def test_a_probe_is_one_machine_of_what_a_breaker_holds_and_is_remembered(
    observed: Facts, seed: int
) -> None:
    decision = decide(observed, Random(seed))

    by_name = {standing.head.launch_config_id: standing for standing in decision.standings}
    for standing in decision.probing.standings:
        name = standing.head.launch_config_id
        assert chosen(decision)[name] == 1
        assert by_name[name].may_be_probed
        if standing.shared is None:
            assert decision.probing.breakers[name].state is BreakerState.HALF_OPEN
    shared = [s.shared for s in decision.probing.standings if s.shared]
    assert len(shared) == len(set(shared))
    if decision.choices and not any(s.held is None for s in decision.standings):
        assert len(decision.choices) == 1
        assert decision.probing.probed == NOW


def test_breakers_of_a_pool_are_for_its_own_launch_configs_alone() -> None:
    """Report B51 (skypilot PR#6248): one that failed blocked what it had no part in."""
    elsewhere = {"us-east-1/us-east-1b/m5.large/spot": an_open("no-capacity")}
    observed = seen(
        [a_head(offering=SPOT)],
        pending=3,
        offerings=elsewhere,
        workers=[a_worker(state=State.STOPPED, pool_id=POOL_ID)],
    )

    assert ordered(observed) == {"lc-a": 3}


# What the rules make of mixed failures


def test_a_broken_image_in_a_place_short_of_machines_is_still_broken() -> None:
    health = Health(
        launched=20,
        failed={"never-registered": 20, "no-capacity": 1},
        failed_at=NOW,
        failed_kind="no-capacity",
        failed_reason="none left",
    )

    after = judge_all([a_head("lc-a")], {}, {"lc-a": health}, [], NOW)

    assert after["lc-a"].kind == "never-registered"
    assert after["lc-a"].reason == "20 machines never came up, 0 did"


def test_a_place_that_has_nothing_waits_longer_in_whichever_way_it_says_so() -> None:
    breaker, waits = None, []
    at = NOW
    for kind in ("no-capacity", "quota-exceeded", "no-capacity", "quota-exceeded"):
        breaker = trip(breaker, kind, "none", at)
        assert breaker.next_try is not None
        waits.append(breaker.next_try - at)
        at = breaker.next_try
        breaker = probe(breaker, at)

    assert waits == [timedelta(minutes=minutes) for minutes in (2, 20, 8, 30)]


def test_one_that_is_open_stays_as_it_is_whatever_was_under_way() -> None:
    open_one = trip(None, "no-capacity", "none", NOW)

    assert trip(open_one, "quota-exceeded", "no more", NOW + timedelta(minutes=1)) == open_one
