"""What observations do to a worker, in any order and however often."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.model import WorkerKey
from worker_manager.registry import changes
from worker_manager.registry.entities import Claim, Outcomes
from worker_manager.registry.observations import UNKNOWN, Kind, Observation

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEY = WorkerKey("proj-x/builders", "rack-1", "m-1")
EXACTLY = timedelta()
HALF_AN_HOUR = timedelta(minutes=30)


def seen(kind: Kind, minutes: float, task: str = "a", **more: Any) -> Observation:
    run: dict[str, Any] = {} if kind is Kind.IDLE else {"task_id": task, "run_id": 0}
    return Observation(KEY, kind, NOON + minutes * MINUTE, **run, **more)


def observed(*observations: Observation, interval: timedelta = EXACTLY) -> Any:
    return changes.observed(changes.meet(KEY, NOON), observations, interval=interval)


def test_idle_calls_are_noted_once_an_interval() -> None:
    worker = observed(*(seen(Kind.IDLE, m) for m in (0, 10, 29.9)), interval=HALF_AN_HOUR)
    assert worker.last_seen == NOON

    later = changes.observed(worker, [seen(Kind.IDLE, 30)], interval=HALF_AN_HOUR)
    assert (later.first_seen, later.last_seen) == (NOON, NOON + HALF_AN_HOUR)


def test_what_changes_nothing_gives_back_the_same_worker() -> None:
    worker = observed(seen(Kind.IDLE, 0), interval=HALF_AN_HOUR)

    assert changes.observed(worker, [seen(Kind.IDLE, 5)], interval=HALF_AN_HOUR) is worker


def test_a_claim_is_noted_at_once() -> None:
    worker = observed(seen(Kind.IDLE, 0), seen(Kind.CLAIM, 1), interval=HALF_AN_HOUR)

    assert worker.last_seen == NOON + MINUTE
    assert worker.claims == (Claim("a", 0, NOON + MINUTE),)
    assert worker.last_claim == NOON + MINUTE


def test_a_renewed_claim_that_was_never_seen_made_is_one_all_the_same() -> None:
    worker = observed(seen(Kind.RECLAIM, 20))

    assert worker.first_claim is None
    assert worker.claims == (Claim("a", 0, NOON + 20 * MINUTE),)


@pytest.mark.parametrize(
    ("state", "reason", "outcomes"),
    [
        ("completed", "completed", Outcomes(completed=1)),
        ("failed", "failed", Outcomes(failed=1)),
        ("exception", "claim-expired", Outcomes(exceptions=1)),
        ("exception", "worker-shutdown", Outcomes(exceptions=1)),
        ("exception", "internal-error", Outcomes(exceptions=1)),
        ("exception", "resource-unavailable", Outcomes(exceptions=1)),
        ("exception", "canceled", Outcomes(others=1)),
        ("exception", "deadline-exceeded", Outcomes(others=1)),
    ],
)
def test_only_some_exceptions_count_against_the_worker(
    state: str, reason: str, outcomes: Outcomes
) -> None:
    end = seen(Kind.RESOLVE, 9, state=state, reason=reason)
    worker = observed(seen(Kind.CLAIM, 0), end, end)

    assert worker.outcomes == {"2026-11-30": outcomes}


def test_the_first_end_of_a_run_is_its_end() -> None:
    worker = observed(
        seen(Kind.CLAIM, 0),
        seen(Kind.RESOLVE, 5, state="completed"),
        seen(Kind.RESOLVE, 6, state="exception", reason="claim-expired"),
    )

    assert worker.claims[0].state == "completed"
    assert worker.outcomes["2026-11-30"] == Outcomes(completed=1)


@pytest.mark.parametrize("claimed_minutes", [-20, 0, 4])
def test_an_end_that_tells_when_its_run_began_is_right_about_it(claimed_minutes: int) -> None:
    end = seen(Kind.RESOLVE, 9, state="failed", began=NOON + 2 * MINUTE)
    worker = observed(seen(Kind.CLAIM, claimed_minutes))

    for _ in range(2):
        worker = changes.observed(worker, [end], interval=HALF_AN_HOUR)
    (claim,) = worker.claims
    assert (claim.claimed, claim.resolved) == (NOON + 2 * MINUTE, NOON + 9 * MINUTE)
    assert worker.outcomes == {"2026-11-30": Outcomes(failed=1)}


def test_a_run_whose_end_nobody_can_tell_is_over_until_somebody_can() -> None:
    unknown = seen(Kind.RESOLVE, 60, state=UNKNOWN)
    worker = observed(seen(Kind.CLAIM, 0), unknown)
    assert [(claim.state, claim.resolved) for claim in worker.claims] == [(UNKNOWN, None)]
    assert (worker.outcomes, worker.last_seen) == ({}, NOON)
    assert changes.observed(worker, [unknown], interval=HALF_AN_HOUR) is worker
    assert observed(seen(Kind.CLAIM, 0, "b"), unknown) == observed(seen(Kind.CLAIM, 0, "b"))

    told = changes.observed(worker, [seen(Kind.RESOLVE, 5, state="completed")], interval=EXACTLY)
    assert told.claims[0].state == "completed"
    assert changes.observed(told, [unknown], interval=HALF_AN_HOUR) is told


def test_a_run_that_ends_without_its_worker_is_no_sighting_of_it() -> None:
    lost = seen(Kind.RESOLVE, 20, state="exception", reason="claim-expired")
    worker = observed(seen(Kind.CLAIM, 0), lost)

    assert worker.last_seen == NOON


def test_outcomes_are_kept_for_a_week() -> None:
    worker = observed(
        *(seen(Kind.RESOLVE, day * 24 * 60, str(day), state="failed") for day in range(10))
    )

    assert list(worker.outcomes) == [f"2026-12-{day:02}" for day in range(3, 10)]


def test_a_machine_that_is_heard_of_after_its_end_is_not_gone() -> None:
    gone = replace(observed(seen(Kind.IDLE, 0)), gone=NOON + 10 * MINUTE)

    assert changes.seen(gone, NOON + 5 * MINUTE, calls=True).gone is not None
    assert changes.seen(gone, NOON + 11 * MINUTE, calls=True).gone is None


RUNS = st.integers(0, 9).map(str)
ONE = st.one_of(
    st.builds(seen, st.just(Kind.IDLE), st.integers(0, 600)),
    st.builds(seen, st.sampled_from([Kind.CLAIM, Kind.RECLAIM]), st.integers(0, 300), RUNS),
    RUNS.map(
        # A run ends once, whoever tells it and however often.
        lambda task: seen(Kind.RESOLVE, 301 + int(task), task, state="failed", reason="failed")
    ),
)


@given(st.lists(ONE, max_size=25), st.randoms(use_true_random=False))
def test_order_and_repeats_do_not_matter(batch: list[Observation], chance: Any) -> None:
    told_well = observed(*batch)
    shuffled = [*batch, *batch[: len(batch) // 2]]
    chance.shuffle(shuffled)
    worker = changes.meet(KEY, NOON)
    for one in shuffled:
        worker = changes.observed(worker, [one], interval=EXACTLY)

    def facts(worker: Any) -> Any:
        ends = {claim.run: (claim.state, claim.resolved) for claim in worker.claims}
        return worker.first_seen, worker.last_seen, worker.first_claim, ends, worker.outcomes

    assert facts(worker) == facts(told_well)


def test_an_end_that_is_told_again_long_after_is_not_counted_again() -> None:
    ends = [seen(Kind.RESOLVE, 2 * n + 1, f"{n:02}", state="completed") for n in range(30)]
    worker = observed(*(seen(Kind.CLAIM, 2 * n, f"{n:02}") for n in range(30)), *ends)
    assert worker.outcomes["2026-11-30"] == Outcomes(completed=30)

    assert changes.observed(worker, ends[:9], interval=HALF_AN_HOUR) is worker


def test_a_run_that_outlasts_twenty_others_counts_when_it_ends() -> None:
    others = [seen(Kind.CLAIM, n, f"{n:02}") for n in range(1, 31)]
    end = seen(Kind.RESOLVE, 40, "long", state="failed")
    worker = observed(seen(Kind.CLAIM, 0, "long"), *others)

    for _ in range(2):
        worker = changes.observed(worker, [end], interval=EXACTLY)
    assert worker.outcomes == {"2026-11-30": Outcomes(failed=1)}


def test_a_machine_that_comes_back_is_known_at_once_not_after_an_interval() -> None:
    worker = replace(observed(seen(Kind.IDLE, 0)), gone=NOON + 5 * MINUTE)

    back = changes.observed(worker, [seen(Kind.IDLE, 10)], interval=HALF_AN_HOUR)
    assert back.gone is None
