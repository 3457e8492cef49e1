"""A whole world in memory: a deployment, time that passes, and what people and machines do.

``run`` lets time pass with its ticks and scans.  Where to read next: ``deployment`` (the functions
and their queues), ``invariants`` (what must hold at every moment), ``steps`` (how it crashes).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.factories import POOL_ID, a_head, a_pool
from tests.reconcile.deployment import Deployment
from worker_manager.core.definition import digest
from worker_manager.core.events import WORKER_REMOVED, WORKER_RUNNING, with_event
from worker_manager.core.messages import Terminate, pool_changed
from worker_manager.core.model import LaunchConfigHead, Pool, PoolError, State, Worker, WorkerKey
from worker_manager.queues import Message
from worker_manager.store.pools import PoolChange


class World(Deployment):
    """A deployment in use."""

    # Definitions and demand

    def save_pool(
        self,
        pool_id: str = POOL_ID,
        *,
        heads: Sequence[LaunchConfigHead] | None = None,
        maximum: int = 10,
        minimum: int = 0,
        provider_id: str = "aws",
        previous: Sequence[str] = (),
        **config: Any,
    ) -> Pool:
        """Create the pool, or replace its definition; no message is sent."""
        with self.aside():
            before = self.stores.pools.get(pool_id)
            given = [a_head()] if heads is None else heads
            bodies = {head.launch_config_id: {"image": head.launch_config_id} for head in given}
            after = a_pool(
                pool_id,
                [replace(h, digest=digest(bodies[h.launch_config_id])) for h in given],
                provider_id=provider_id,
                previous_provider_ids=tuple(previous),
                config={"minCapacity": minimum, "maxCapacity": maximum, **config},
                version=before.version + 1 if before else 1,
            )
            self.stores.pools.save(PoolChange(after, before, bodies, events=()))
            return after

    def demand(self, pending: int = 0, claimed: int = 0, *, pool_id: str = POOL_ID) -> None:
        self.queue.set_counts(pool_id, pending=pending, claimed=claimed)

    def change_pool(self, pool_id: str = POOL_ID, **changes: Any) -> None:
        """A change through the API, with its own provision message."""
        pool = self.save_pool(pool_id, **changes)
        message = pool_changed(pool_id, pool.version, changed=pool.modified).to_json()
        sender = self.all_deps[pool.provider_id].senders["provision"]
        sender.send([Message(message)])

    # Time

    def tick_for(self, **amount: float) -> None:
        """Let time pass with provision ticks alone: no lists, so nothing is ever unlisted."""
        for _ in range(int(timedelta(**amount) / self.timing.tick)):
            self.clock.advance(seconds=30)
            self.tick()

    def run(self, **amount: float) -> None:
        """Let time pass: a provision tick each 30 seconds, a scan each minute."""
        ticks = int(timedelta(**amount) / self.timing.tick)
        for number in range(1, ticks + 1):
            self.clock.advance(seconds=30)
            self.tick()
            if number % 2 == 0:
                self.scan()

    def run_slowly(self, *, minutes: int) -> None:
        """As ``run`` where ticks and scans are as rare as once a minute."""
        for _ in range(minutes):
            self.clock.advance(minutes=1)
            self.tick()
            self.scan()

    def settle(self, rounds: int = 20) -> None:
        """Let time pass, a tick and a scan a minute, until nothing is open or unsent any more."""
        for _ in range(rounds):
            self.clock.advance(seconds=31)
            self.tick()
            self.clock.advance(seconds=31)
            self.scan()
            self.publish()
            if self.is_quiet():
                return
        raise AssertionError(f"not quiet; open: {self.open_plans()}, mail: {self.mail}")

    def run_until(self, reached: Callable[[], bool], *, minutes: int = 20) -> None:
        """Let time pass, a minute at a time, until something holds; at least one."""
        for _ in range(minutes):
            self.run(minutes=1)
            self.publish()
            if reached():
                return
        raise AssertionError(f"not reached; open: {self.open_plans()}, mail: {self.mail}")

    # What machines and the API do

    def register(self, key: WorkerKey) -> bool:
        """A machine registers: a conditional write, as the API's."""
        with self.aside():
            row = self.stores.workers.get(key)
            if row is None or row.state is not State.REQUESTED:
                return False
            changes = with_event(
                row,
                WORKER_RUNNING,
                at=self.clock.now,
                reason="registered",
                state=State.RUNNING,
                registered=self.clock.now,
                deadline=self.clock.now + row.reregistration,
            )
            after = self.stores.workers.change(row, **changes)
            if after is None:
                return False
            if after.launch_config_id is not None:
                self.stores.health.add(
                    key.pool_id, after.launch_config_id, self.clock.now, registered=1
                )
            self.outbox.send_workers([after])
            return True

    def register_all(self) -> None:
        for machine in self.cloud.alive():
            self.register(machine.key)

    def works(self, key: WorkerKey) -> None:
        """The queue hears of a worker now."""
        known = self.queue.activity(key.pool_id).get((key.group, key.worker_id))
        first = known.first_claim if known and known.first_claim else self.clock.now
        self.queue.set_activity(
            key.pool_id, key.group, key.worker_id, first_claim=first, last_active=self.clock.now
        )

    def remove(self, key: WorkerKey) -> None:
        """Somebody removes a worker through the API: the row is marked, the delete sent."""
        with self.aside():
            row = self.stores.workers.get(key)
            if row is None or row.state in (State.STOPPING, State.STOPPED):
                return
            changes = with_event(
                row,
                WORKER_REMOVED,
                at=self.clock.now,
                reason="asked to",
                state=State.STOPPING,
                stopping_since=self.clock.now,
                stop_reason="asked to",
            )
            self.stores.workers.change(row, **changes)
            sender = self.all_deps[row.provider_id].senders["advance"]
            sender.send([Message(Terminate(key).to_json())])

    # Looking

    def rows(self, pool_id: str = POOL_ID) -> list[Worker]:
        """All rows of a pool, in any state."""
        with self.aside():
            return self.stores.workers.page(pool_id, limit=10_000)

    def row(self, key: WorkerKey) -> Worker:
        with self.aside():
            found = self.stores.workers.get(key)
        assert found is not None
        return found

    def states(self, pool_id: str = POOL_ID) -> dict[str, int]:
        counted: dict[str, int] = {}
        for row in self.rows(pool_id):
            counted[row.state.value] = counted.get(row.state.value, 0) + 1
        return counted

    def open_plans(self, pool_id: str = POOL_ID) -> list[Any]:
        with self.aside():
            _, control = self.stores.pools.get_with_control(pool_id)
            return self.stores.plans.open_plans(control)

    def plans(self, pool_id: str = POOL_ID) -> list[str]:
        """Ticks of all plans that are stored."""
        model = self.tables.pools
        with self.aside():
            items = model.query(pool_id, model.sk.startswith("plan#"), consistent_read=True)
            return [item.sk.removeprefix("plan#") for item in items]

    def told_to_terminate(self, pool_id: str = POOL_ID) -> dict[str, str]:
        """Reasons of the workers that would be told to terminate now, by their id."""
        return {
            row.key.worker_id: row.surplus.reason
            for row in self.rows(pool_id)
            if row.surplus is not None and row.surplus.terminate
        }

    def pool_errors(self, pool_id: str = POOL_ID) -> list[PoolError]:
        with self.aside():
            return list(self.errors.newest_first(pool_id))

    def pool_ids(self) -> list[str]:
        with self.aside():
            return list(self.stores.pools.ids())

    def is_quiet(self) -> bool:
        """Nothing open, nothing unsent, nothing under way."""
        with self.aside():
            return (
                not self.mail
                and not list(self.stores.places.unpublished())
                and not any(self.open_plans(pool_id) for pool_id in self.pool_ids())
                and not any(r.unsent for pool_id in self.pool_ids() for r in self.rows(pool_id))
            )


def heads(*names: str, **overrides: Any) -> list[LaunchConfigHead]:
    """Launch configs of one kind."""
    return [a_head(name, **overrides) for name in names]
