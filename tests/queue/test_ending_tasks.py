"""Tasks that are cancelled, or whose worker is gone, and what the registry knows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from worker_manager.core.errors import ConflictError, NotFoundError
from worker_manager.core.ids import derived_slugid
from worker_manager.store.queue_table import QueueTable

POOL = "proj-x/builders"
WORKER = ("us-west-2", "i-1")


def runs(world: Any, task_id: str) -> list[tuple[str, str | None]]:
    found = world.status(task_id)["runs"]
    return [(run["state"], run.get("reasonResolved")) for run in found]


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_cancelled_task_is_over_for_good_and_cancelling_again_is_harmless(
    world: Any, is_claimed: bool
) -> None:
    task_id = world.create("one")
    if is_claimed:
        world.claim()

    first, again = world.queue.cancel_task(task_id), world.queue.cancel_task(task_id)

    assert first == again
    assert runs(world, task_id) == [("exception", "canceled")]
    assert first["status"]["retriesLeft"] == 5
    assert world.counts() == (0, 0)
    assert world.claim() == []
    for call in (world.queue.reclaim_task, world.queue.report_completed):
        with pytest.raises(ConflictError):
            call(task_id, 0)


def test_a_task_that_is_done_is_not_cancelled_any_more(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    done = world.queue.report_completed(task_id, 0)

    assert world.queue.cancel_task(task_id) == done


def test_a_task_past_its_deadline_or_unknown_cannot_be_cancelled(world: Any) -> None:
    task_id = world.create("one")
    world.clock.advance(hours=24)

    with pytest.raises(ConflictError):
        world.queue.cancel_task(task_id)
    with pytest.raises(NotFoundError):
        world.queue.cancel_task(derived_slugid("none"))


def test_what_a_gone_worker_claimed_is_pending_again_at_once(world: Any) -> None:
    mine = [world.create(number) for number in range(2)]
    world.claim("i-1", tasks=2)
    last = world.create("last", retries=0)
    world.claim("i-1")
    other = world.create("other")
    world.claim("i-10")

    assert world.queue.worker_gone(POOL, *WORKER) == 3
    assert world.queue.worker_gone(POOL, *WORKER) == 0

    for task_id in mine:
        assert runs(world, task_id) == [("exception", "worker-shutdown"), ("pending", None)]
    assert runs(world, last) == [("exception", "worker-shutdown")]
    assert runs(world, other) == [("running", None)]
    assert world.counts() == (2, 1)
    assert {claim["runId"] for claim in world.claim("i-2", tasks=5)} == {1}


def test_what_a_worker_of_the_same_name_claimed_later_goes_on(world: Any) -> None:
    old = world.create("old")
    world.claim()
    gone = world.clock.now
    world.clock.advance(seconds=1)
    new = world.create("new")
    world.claim()

    assert world.queue.worker_gone(POOL, *WORKER, gone=gone) == 1
    assert runs(world, old)[0] == ("exception", "worker-shutdown")
    assert runs(world, new) == [("running", None)]


def test_claims_whose_task_is_gone_go_with_their_worker(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    for part in ("definition", "status"):
        world.table.items(f"task#{task_id}", part).delete()

    assert world.queue.worker_gone(POOL, *WORKER) == 0
    assert list(world.table.items.query(f"{POOL}#claimed")) == []


Call = Callable[[Any, str], object]
ENDINGS: dict[str, tuple[Call, int, int, str]] = {
    "done": (lambda world, name: world.queue.report_completed(name, 0), 0, 1, "completed"),
    "failed": (lambda world, name: world.queue.report_failed(name, 0), 0, 1, "failed"),
    "given back": (
        lambda world, name: world.queue.report_exception(name, 0, {"reason": "worker-shutdown"}),
        0,
        1,
        "worker-shutdown",
    ),
    "cancelled": (lambda world, name: world.queue.cancel_task(name), 0, 1, "canceled"),
    "worker gone": (
        lambda world, _: world.queue.worker_gone(POOL, *WORKER),
        0,
        1,
        "worker-shutdown",
    ),
    "counted too late": (lambda world, _: world.counts(), 0, 21, "claim-expired"),
    "found by the next claimer": (lambda world, _: world.claim("i-2"), 0, 21, "claim-expired"),
    "past the deadline": (
        lambda world, _: world.counts(),
        24 * 60 - 10,
        10,
        "deadline-exceeded",
    ),
}
"""What ends a run, minutes from creation to claim and on to the end, and why it then ended."""


@pytest.mark.parametrize("name", sorted(ENDINGS))
def test_the_registry_knows_once_how_a_run_ended_and_why(world: Any, name: str) -> None:
    end, waited, worked, reason = ENDINGS[name]
    task_id = world.create("one")
    world.clock.advance(minutes=waited)
    world.claim()
    world.clock.advance(minutes=worked)

    end(world, task_id)
    known = world.registry.worker(world.key())
    end(world, task_id)

    [claim] = known.claims
    assert (claim.task_id, claim.run_id, claim.reason) == (task_id, 0, reason)
    assert world.registry.worker(world.key()) == known


def test_a_task_that_nobody_worked_on_is_nobodys_failure(world: Any) -> None:
    world.claim()
    known = world.registry.worker(world.key())
    world.queue.cancel_task(world.create("cancelled"))
    world.create("late")
    world.clock.advance(days=1)
    world.claim("i-2")

    assert world.registry.worker(world.key()) == known
    assert not world.registry.worker(world.key("i-2")).claims


def in_between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let ``act`` happen between the next change's reading and its writing."""
    write, waiting = QueueTable.replace, [act]

    def late(self: QueueTable, *args: Any, **kwargs: Any) -> None:
        if waiting:
            waiting.pop()()
        write(self, *args, **kwargs)

    monkeypatch.setattr(QueueTable, "replace", late)


def test_a_claimer_does_not_get_what_is_cancelled_in_between(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = world.create("one")
    in_between(monkeypatch, lambda: world.queue.cancel_task(task_id))

    assert world.claim() == []
    assert runs(world, task_id) == [("exception", "canceled")]
    assert world.counts() == (0, 0)


def test_a_task_that_is_claimed_in_between_is_cancelled_with_its_worker(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = world.create("one")
    in_between(monkeypatch, world.claim)

    world.queue.cancel_task(task_id)

    assert world.registry.worker(world.key()).claims[0].reason == "canceled"
    assert world.counts() == (0, 0)


def test_a_run_that_is_done_in_between_is_not_taken_from_its_gone_worker(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = world.create("one")
    world.claim()
    in_between(monkeypatch, lambda: world.queue.report_completed(task_id, 0))

    assert world.queue.worker_gone(POOL, *WORKER) == 0
    assert runs(world, task_id) == [("completed", "completed")]


def test_a_worker_that_is_gone_in_between_reports_in_vain(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = world.create("one")
    world.claim()
    in_between(monkeypatch, lambda: world.queue.worker_gone(POOL, *WORKER))

    with pytest.raises(ConflictError):
        world.queue.report_completed(task_id, 0)
    assert runs(world, task_id) == [("exception", "worker-shutdown"), ("pending", None)]
