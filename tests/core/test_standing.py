from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import heads, healths
from tests.factories import NOW, POOL_ID, REGION, a_head, a_worker
from worker_manager.core.breaker import credentials_key, probe, recover, trip
from worker_manager.core.health import FAILURE_KINDS, Health, Waiting
from worker_manager.core.model import Location, State
from worker_manager.core.plans import Pause
from worker_manager.core.standing import (
    Conditions,
    Held,
    Standing,
    forgiven,
    location_of_offering,
    offering_key,
    stand,
    waiting_machines,
)
from worker_manager.core.tally import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from worker_manager.core.model import LaunchConfigHead

MINUTE = timedelta(minutes=1)
SPOT, ON_DEMAND = "us-east-1/us-east-1a/m5.large/spot", "us-east-1/us-east-1a/m5.large/on-demand"
CALM = Conditions(now=NOW, stale_after=3 * MINUTE)
OPEN = trip(None, "no-capacity", "none left", NOW - MINUTE)


def standings(
    given_heads: Sequence[LaunchConfigHead],
    conditions: Conditions = CALM,
    *,
    counts: Mapping[str, Counts] | None = None,
    health: Mapping[str, Health] | None = None,
    waiting: Mapping[str, Waiting] | None = None,
    maximum: int = 1000,
    wanted: int = 1,
) -> dict[str, Standing]:
    found = stand(
        POOL_ID,
        given_heads,
        counts=counts or {},
        health=health or {},
        waiting=waiting or {},
        conditions=conditions,
        maximum=maximum,
        wanted=wanted,
    )
    return {standing.head.launch_config_id: standing for standing in found}


def weights(*names: str, **circumstances: Any) -> dict[str, float]:
    found = standings([a_head(name) for name in names], **circumstances)
    return {name: round(standing.weight, 2) for name, standing in found.items()}


def held(head: LaunchConfigHead, **conditions: Any) -> Held | None:
    return standings([head], replace(CALM, **conditions))[head.launch_config_id].held


# The scenarios of the discussion


def test_without_failures_all_are_equal() -> None:
    """Scenario 1."""
    assert weights("lc-a", "lc-b") == {"lc-a": 0.5, "lc-b": 0.5}


def test_ten_on_one_and_five_on_the_other_make_the_next_go_a_third_and_two_thirds() -> None:
    """Scenario 1."""
    counts = {"lc-a": Counts(running=10), "lc-b": Counts(running=5)}

    assert weights("lc-a", "lc-b", counts=counts) == {"lc-a": 0.33, "lc-b": 0.67}


def test_failures_lower_a_weight_by_the_own_share_of_them() -> None:
    """Scenario 2: half of its outcomes failed, so it gets half of what the other gets."""
    health = {
        "lc-a": Health(registered=5, failed={"no-capacity": 5}),
        "lc-b": Health(registered=10),
    }

    assert weights("lc-a", "lc-b", health=health) == {"lc-a": 0.33, "lc-b": 0.67}


@pytest.mark.parametrize(
    ("minutes", "share"), [(0, 0.5), (29, 0.5), (30, 0.5), (45, 0.33), (60, 0.0), (80, 0.0)]
)
def test_machines_that_were_created_and_do_not_register_lower_a_weight_once_they_are_old(
    minutes: int, share: float
) -> None:
    """Scenario 3: unchanged until half an hour, nothing after an hour."""
    born = NOW - minutes * MINUTE
    booting = [
        a_worker(f"i-{n}", state=State.REQUESTED, created=born, launch_config_id="lc-a")
        for n in range(4)
    ]

    found = weights("lc-a", "lc-b", waiting=waiting_machines(booting, NOW))

    assert found["lc-a"] == share


def test_created_and_none_registered_with_errors_is_nothing() -> None:
    """Scenario 3."""
    health = {"lc-a": Health(launched=4, failed={"never-registered": 1})}

    assert weights("lc-a", "lc-b", health=health) == {"lc-a": 0.0, "lc-b": 1.0}


def test_weight_zero_is_off_even_for_the_only_one_and_whatever_else_fails() -> None:
    """The reference revived a launch config that was switched off when the others failed."""
    off = a_head("lc-a", manager={"initialWeight": 0})
    failing = {"lc-b": Health(failed={"lost": 500})}

    assert held(off) is Held.OFF
    found = standings([off, a_head("lc-b")], health=failing)
    assert (found["lc-a"].held, found["lc-a"].weight) == (Held.OFF, 0)
    assert not found["lc-a"].may_be_probed
    assert found["lc-b"].weight == pytest.approx(1)
    broken = replace(CALM, breakers={"lc-a": OPEN}, offerings={credentials_key(REGION): OPEN})
    assert not standings([off], broken)["lc-a"].may_be_probed


@pytest.mark.parametrize("count", [1, 500])
def test_all_equally_bad_are_all_equal(count: int) -> None:
    """Report S7: of three exhausted launch configs the first in the list took all the load."""
    health = {f"lc-{n}": Health(failed={"no-capacity": count}) for n in "abc"}

    found = weights("lc-a", "lc-b", "lc-c", health=health)

    assert found == {"lc-a": 0.33, "lc-b": 0.33, "lc-c": 0.33}


def test_where_all_are_bad_the_initial_weights_decide() -> None:
    bad = {name: Health(failed={"lost": 3}) for name in ("lc-a", "lc-b")}
    low = a_head("lc-a", manager={"initialWeight": 0.25})

    found = standings([low, a_head("lc-b")], health=bad)

    assert found["lc-a"].weight == pytest.approx(0.2)
    assert found["lc-b"].weight == pytest.approx(0.8)


def test_a_burst_ends_at_the_fair_shares_whatever_was_there() -> None:
    counts = {"lc-a": Counts(running=10)}

    found = weights("lc-a", "lc-b", counts=counts, wanted=90)

    assert found == {"lc-a": 0.44, "lc-b": 0.56}


def test_one_failure_in_a_calm_hour_does_not_give_everything_to_the_other() -> None:
    """Report S7: of the next hundred, a hundred went to the other launch config."""
    counts = {name: Counts(running=100) for name in ("lc-a", "lc-b")}

    found = weights(
        "lc-a", "lc-b", counts=counts, health={"lc-a": Health(failed={"other": 1})}, wanted=200
    )

    assert found["lc-a"] >= 0.49


def test_what_has_more_than_its_share_waits_for_the_others() -> None:
    found = standings(
        [a_head("lc-a"), a_head("lc-b")], counts={"lc-a": Counts(running=30)}, wanted=5
    )

    assert 0 < found["lc-a"].weight < 1e-9
    assert found["lc-b"].weight == pytest.approx(1)


# Room


def test_room_is_what_the_own_limit_leaves_in_whole_machines() -> None:
    head = a_head(capacity_per_instance=4, manager={"maxCapacity": 11})

    found = standings([head], counts={"lc-a": Counts(stopping=1, running=1)})

    assert found["lc-a"].room == 2


@pytest.mark.parametrize("limit", [0, 3, 4])
def test_a_full_launch_config_takes_no_part(limit: int) -> None:
    head = a_head(capacity_per_instance=2, manager={"maxCapacity": limit})
    found = standings([head], counts={"lc-a": Counts(running=3)})

    assert found["lc-a"].held is Held.NO_ROOM


def test_a_launch_config_without_limit_has_that_of_the_pool() -> None:
    found = standings([a_head()], maximum=7, counts={"lc-a": Counts(running=5)})

    assert found["lc-a"].room == 2


# What holds a launch config back


def test_each_thing_that_holds_a_launch_config_back_is_told_apart() -> None:
    head = a_head(offering=SPOT)
    pause = Pause(until=NOW + MINUTE, reason="why", by="me", since=NOW)

    assert held(head) is None
    assert held(head, pauses={"lc-a": pause}) is Held.PAUSED
    assert held(head, pauses={"lc-a": replace(pause, until=NOW)}) is None
    assert held(head, not_before={REGION: NOW + MINUTE}) is Held.WAITING
    assert held(head, not_before={REGION: NOW}) is None
    assert held(head, stale={REGION: NOW - 4 * MINUTE}) is Held.UNLISTED
    assert held(head, stale={REGION: NOW - 3 * MINUTE}) is None
    assert held(head, offerings={credentials_key(REGION): OPEN}) is Held.PROVIDER
    assert held(head, offerings={SPOT: OPEN}) is Held.OFFERING
    assert held(head, breakers={"lc-a": OPEN}) is Held.BREAKER
    assert held(head, breakers={"lc-a": recover(OPEN, NOW)}) is None
    assert held(head, offerings={SPOT: recover(OPEN, NOW)}) is None


@pytest.mark.parametrize(
    "conditions",
    [
        {"pauses": {"lc-a": Pause(until=NOW + MINUTE, reason="", by="", since=NOW)}},
        {"not_before": {REGION: NOW + MINUTE}},
        {"stale": {REGION: NOW - 4 * MINUTE}},
    ],
)
def test_what_waits_for_something_else_is_never_probed(conditions: dict[str, Any]) -> None:
    broken = replace(CALM, breakers={"lc-a": OPEN}, **conditions)

    assert not standings([a_head()], broken)["lc-a"].may_be_probed


def test_only_a_breaker_may_be_probed_and_only_where_there_is_room() -> None:
    broken = replace(CALM, breakers={"lc-a": probe(OPEN, NOW)})

    assert standings([a_head()], broken)["lc-a"].may_be_probed
    assert not standings([a_head()], broken, maximum=0)["lc-a"].may_be_probed
    assert not standings([a_head()])["lc-a"].may_be_probed


def test_spot_that_failed_says_nothing_about_on_demand() -> None:
    """Report B51 (skypilot PR#6248): the same type and zone on demand was blocked too."""
    both = [a_head("lc-a", offering=SPOT), a_head("lc-b", offering=ON_DEMAND)]

    found = standings(both, replace(CALM, offerings={SPOT: OPEN}))

    assert (found["lc-a"].held, found["lc-a"].shared) == (Held.OFFERING, SPOT)
    assert (found["lc-b"].held, round(found["lc-b"].weight, 2)) == (None, 1)


def test_what_nobody_can_name_is_an_offering_of_its_own_launch_config() -> None:
    nameless = a_head()

    assert offering_key(nameless, POOL_ID) == f"{REGION}/{POOL_ID}/lc-a"
    assert offering_key(nameless, "other/pool") != offering_key(nameless, POOL_ID)
    assert offering_key(a_head(offering=SPOT), "other/pool") == SPOT
    assert location_of_offering(offering_key(nameless, POOL_ID)) == REGION
    assert location_of_offering(SPOT) == REGION
    assert location_of_offering(credentials_key(REGION)) == REGION


def test_outcomes_count_again_from_when_the_last_of_the_breakers_closed() -> None:
    both = [a_head("lc-a", offering=SPOT), a_head("lc-b")]
    closed = {minutes: recover(OPEN, NOW - minutes * MINUTE) for minutes in (9, 6, 3)}

    found = forgiven(POOL_ID, both, {"lc-a": closed[9], "lc-b": OPEN}, {SPOT: closed[6]})

    assert found == {"lc-a": NOW - 6 * MINUTE}
    everywhere = forgiven(POOL_ID, both, {}, {credentials_key(REGION): closed[3], SPOT: OPEN})
    assert everywhere == {"lc-a": NOW - 3 * MINUTE, "lc-b": NOW - 3 * MINUTE}


def test_machines_that_registered_or_go_are_not_waited_for() -> None:
    workers = [
        a_worker("i-1", state=State.REQUESTED, created=NOW - 45 * MINUTE),
        a_worker("i-2", state=State.REQUESTED, created=NOW),
        a_worker("i-3"),
        a_worker("i-4", state=State.STOPPING),
        a_worker("i-5", state=State.REQUESTED, launch_config_id=None),
    ]

    assert waiting_machines(workers, NOW) == {"lc-a": Waiting(2, 0.5)}


def test_what_is_told_of_a_standing_says_all_that_lowered_it() -> None:
    pause = Pause(until=NOW + MINUTE, reason="why", by="me", since=NOW)
    failing = {"lc-a": Health(registered=1, failed={"lost": 1})}
    head = a_head(offering=SPOT)

    well = standings([head])["lc-a"].to_json()
    worse = standings([head], health=failing)["lc-a"].to_json()
    closed = standings([head], replace(CALM, offerings={SPOT: OPEN}))["lc-a"].to_json()
    paused = standings([head], replace(CALM, pauses={"lc-a": pause}))["lc-a"].to_json()

    assert well == {"weight": 1, "initialWeight": 1, "existing": 0, "room": 1000}
    assert worse["healthFactor"] == 0.5
    assert (closed["offering"], closed["breaker"]) == (SPOT, OPEN.to_json())
    assert (paused["weight"], paused["held"]) == (0, "paused")
    assert paused["pausedUntil"] == "2026-01-02T03:05:05.000Z"


# Properties

counted = st.dictionaries(
    st.sampled_from([f"lc-{n}" for n in "abcdef"]),
    st.builds(Counts, running=st.integers(0, 40), requested=st.integers(0, 9)),
)


@given(
    given_heads=heads(at_least=1),
    health=healths,
    counts=counted,
    wanted=st.integers(0, 90),
    kind=st.sampled_from(FAILURE_KINDS),
)
def test_one_more_failure_of_its_own_never_raises_a_weight(
    given_heads: list[LaunchConfigHead],
    health: dict[str, Health],
    counts: dict[str, Counts],
    wanted: int,
    kind: str,
) -> None:
    name = given_heads[0].launch_config_id
    before = health.get(name, Health())
    failed = {**before.failed, kind: before.failed.get(kind, 0) + 1}
    worse = {**health, name: replace(before, failed=failed)}

    def weight(of: dict[str, Health]) -> float:
        return standings(given_heads, health=of, counts=counts, wanted=wanted)[name].weight

    assert weight(worse) <= weight(health) + 1e-9


@given(given_heads=heads(at_least=1), health=healths, counts=counted, wanted=st.integers(0, 90))
def test_one_more_success_of_its_own_never_lowers_a_weight(
    given_heads: list[LaunchConfigHead],
    health: dict[str, Health],
    counts: dict[str, Counts],
    wanted: int,
) -> None:
    name = given_heads[0].launch_config_id
    before = health.get(name, Health())
    better = {**health, name: replace(before, registered=before.registered + 1)}

    def weight(of: dict[str, Health]) -> float:
        return standings(given_heads, health=of, counts=counts, wanted=wanted)[name].weight

    assert weight(better) >= weight(health) - 1e-9


@given(
    given_heads=heads(at_least=2),
    health=healths,
    counts=counted,
    wanted=st.integers(0, 90),
    shuffle=st.randoms(use_true_random=False),
)
def test_the_order_of_launch_configs_does_not_matter_to_their_weights(
    given_heads: list[LaunchConfigHead],
    health: dict[str, Health],
    counts: dict[str, Counts],
    wanted: int,
    shuffle: Random,
) -> None:
    shuffled = list(given_heads)
    shuffle.shuffle(shuffled)

    def found(in_order: list[LaunchConfigHead]) -> dict[str, float]:
        standing = standings(in_order, health=health, counts=counts, wanted=wanted)
        return {name: round(one.weight, 9) for name, one in standing.items()}

    assert found(given_heads) == found(shuffled)


@given(given_heads=heads(at_least=1), health=healths, counts=counted, wanted=st.integers(0, 90))
def test_whoever_takes_part_has_a_weight_and_nobody_else(
    given_heads: list[LaunchConfigHead],
    health: dict[str, Health],
    counts: dict[str, Counts],
    wanted: int,
) -> None:
    for standing in standings(given_heads, health=health, counts=counts, wanted=wanted).values():
        assert (standing.weight > 0) == (standing.held is None)


def test_weights_too_small_for_arithmetic_are_weights_all_the_same() -> None:
    tiny = {"initialWeight": 5e-324}
    failing = {"lc-a": Health(registered=1, failed={"no-capacity": 50})}
    found = standings([a_head("lc-a", manager=tiny), a_head("lc-b", manager=tiny)], health=failing)

    assert all(standing.weight > 0 for standing in found.values())


def test_locations_hold_back_only_what_is_there() -> None:
    west = Location("us-west-2")
    both = [a_head("lc-a"), a_head("lc-b", location=west)]

    found = standings(both, replace(CALM, not_before={west: NOW + MINUTE}))

    assert (found["lc-a"].held, found["lc-b"].held) == (None, Held.WAITING)
