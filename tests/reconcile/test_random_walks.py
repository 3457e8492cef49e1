"""A sample of walks: ticks, scans, faults, crashes and other people's doings, in any sequence.

It is the same sample each time, and small for the sake of time; a larger ``max_examples`` finds
more.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.reconcile.invariants import assert_sound
from tests.reconcile.naming import NamingWorld, assert_named, slots_used
from tests.reconcile.steps import CrashError
from tests.reconcile.world import World, heads
from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    OutOfCapacityError,
    ThrottledError,
)
from worker_manager.providers.fake import Method
from worker_manager.providers.fake_steps import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

MAXIMUM = 4
FAULTS: dict[str, CloudError] = {
    "lost": CloudUnavailableError("the connection was reset"),
    "empty": OutOfCapacityError("none left"),
    "throttled": ThrottledError("slow", retry_after=timedelta(seconds=40)),
    "refused": InvalidLaunchConfigError("no such image"),
    "strangers": BadCredentialsError("who are you?"),
}


class Walk(RuleBasedStateMachine):
    """One pool with two launch configs and a maximum of four."""

    new_world: Callable[..., World]

    def __init__(self) -> None:
        super().__init__()
        self.world = self.new_world()
        self.world.save_pool(heads=heads("lc-a", "lc-b"), maximum=MAXIMUM)
        self.pending = 2
        self.world.demand(pending=2)

    @rule(crash_at=st.integers(1, 30), seconds=st.integers(1, 40))
    def tick(self, crash_at: int, seconds: int) -> None:
        self._run(World.tick, crash_at, seconds)

    @rule(crash_at=st.integers(1, 20), seconds=st.integers(1, 70))
    def scan(self, crash_at: int, seconds: int) -> None:
        self._run(World.scan, crash_at, seconds)

    def _run(self, act: Callable[[World], None], crash_at: int, seconds: int) -> None:
        self.world.clock.advance(seconds=seconds)
        self.world.fuse.reset(crash_at=crash_at)
        try:
            act(self.world)
        except CrashError:
            self.world.mail.clear()
        self.world.fuse.reset()

    @rule(seed=st.integers(0, 999), lost=st.sampled_from(["", "provision", "scan", "advance"]))
    def disorder(self, seed: int, lost: str) -> None:
        self.world.send_ticks()
        self.world.send_scans()
        self.world.lose(lost)
        self.world.deliver_all(Random(seed), copies=2)

    @rule(pending=st.integers(0, 6))
    def demand(self, pending: int) -> None:
        self.pending = pending
        self.world.demand(pending=pending)

    @rule(
        method=st.sampled_from(Method),
        fault=st.sampled_from(sorted(FAULTS)),
        after_acting=st.booleans(),
    )
    def fault(self, method: Method, fault: str, after_acting: bool) -> None:
        error = FAULTS[fault]
        lost = isinstance(error, CloudUnavailableError)
        if method is Method.LAUNCH or isinstance(error, CloudUnavailableError | ThrottledError):
            self.world.provider.fail(method, error, after_acting=after_acting and lost)

    @precondition(lambda self: self.world.cloud.alive())
    @rule(
        number=st.integers(0, 9),
        what=st.sampled_from(["registers", "works", "removed", "vanishes", "stops"]),
    )
    def something_happens(self, number: int, what: str) -> None:
        alive = self.world.cloud.alive()
        key = alive[number % len(alive)].key
        match what:
            case "registers":
                self.world.register(key)
            case "works":
                self.world.works(key)
            case "removed":
                if any(row.key == key for row in self.world.rows()):
                    self.world.remove(key)
            case "vanishes":
                self.world.cloud.vanish(key)
            case _:
                self.world.cloud.stop(key)

    @invariant()
    def all_is_accounted_for(self) -> None:
        assert_sound(self.world)

    def teardown(self) -> None:
        """Left in peace, the pool gets exactly what it needs, and nothing stays open."""
        world = self.world
        world.provider._faults.clear()
        for _ in range(30):
            world.register_all()
            told = world.told_to_terminate()
            for machine in world.cloud.alive():
                if machine.key.worker_id in told:
                    world.cloud.vanish(machine.key)
            world.settle()
            if len(world.cloud.alive()) == min(self.pending, MAXIMUM):
                break
        assert_sound(world)
        assert len(world.cloud.alive()) == min(self.pending, MAXIMUM)
        live = [row for row in world.rows() if row.state != "stopped"]
        assert len(live) == len(world.cloud.alive())


class NamingWalk(Walk):
    """The same where names are ours: answers fall short, creations fail late, parts stay."""

    world: NamingWorld

    @rule(
        accepted=st.integers(0, 2),
        throttled=st.integers(0, 2),
        unknown=st.integers(0, 2),
        acted=st.booleans(),
    )
    def answer_partly(self, accepted: int, throttled: int, unknown: int, acted: bool) -> None:
        self.world.provider.partly.append(Part(accepted, throttled, unknown, acted=acted))

    @rule(fault=st.sampled_from(["empty", "refused"]), stays=st.booleans())
    def creation_fails(self, fault: str, stays: bool) -> None:
        self.world.cloud.fail_next(FAULTS[fault], stays=stays)

    @rule(kinds=st.sets(st.sampled_from(["nic", "disk"])), minutes=st.integers(1, 30))
    def sweep(self, kinds: set[str], minutes: int) -> None:
        self.world.cloud.outliving = frozenset(kinds)
        self.world.clock.advance(minutes=minutes)
        self.world.sweep()

    @invariant()
    def all_is_named(self) -> None:
        assert_named(self.world)

    def teardown(self) -> None:
        """As there, and nothing is held or left over."""
        self.world.provider.partly.clear()
        self.world.cloud.to_come.clear()
        self.world.cloud.outliving = frozenset()
        super().teardown()
        self.world.clock.advance(hours=4)
        self.world.sweep()
        assert slots_used(self.world) == 0
        assert list(self.world.cloud.unused_parts()) == []


def test_a_sample_of_walks_keeps_the_invariants_and_ends_with_what_is_needed(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Walk, "new_world", staticmethod(new_world), raising=False)
    budget = settings(max_examples=6, stateful_step_count=15, deadline=None, derandomize=True)
    run_state_machine_as_test(Walk, settings=budget)


def test_walks_under_our_names_keep_the_invariants_and_lose_nothing(
    new_naming: Callable[..., NamingWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NamingWalk, "new_world", staticmethod(new_naming), raising=False)
    budget = settings(max_examples=7, stateful_step_count=15, deadline=None, derandomize=True)
    run_state_machine_as_test(NamingWalk, settings=budget)
