"""Worlds whose cloud accepts first and makes machines afterwards, and what must hold in them.

Where to read next: ``world``, which they are; ``providers.fake_names`` and ``fake_steps``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.factories import POOL_ID
from tests.reconcile.deployment import DEPLOYMENT
from tests.reconcile.invariants import assert_sound
from tests.reconcile.world import World
from worker_manager.core.model import MachineStatus, State
from worker_manager.providers.fake_names import NamingFake
from worker_manager.providers.fake_slow import SlowCloud
from worker_manager.providers.fake_steps import SteppingFake

if TYPE_CHECKING:
    from worker_manager.core.model import Worker

CREATION = timedelta(seconds=20)
"""How long a machine takes to be made."""


class SteppingWorld(World):
    """Google's manner: ids of the cloud, known when it accepts."""

    cloud: SlowCloud
    provider: SteppingFake

    def _cloud(self) -> SlowCloud:
        return SlowCloud(clock=self.clock, creation_time=CREATION)

    def _fake(self, name: str) -> SteppingFake:
        return SteppingFake(provider_id=name, deployment=DEPLOYMENT, cloud=self._slow(name))

    def _slow(self, name: str) -> SlowCloud:
        cloud = self.clouds[name]
        assert isinstance(cloud, SlowCloud)
        return cloud


class NamingWorld(SteppingWorld):
    """Azure's manner: names of ours, records in one store, parts that may outlive machines."""

    provider: NamingFake

    def _cloud(self) -> SlowCloud:
        return SlowCloud(clock=self.clock, creation_time=CREATION, is_hidden=True)

    def _fake(self, name: str) -> NamingFake:
        return NamingFake(provider_id=name, deployment=DEPLOYMENT, cloud=self._slow(name))


def slots_used(world: World) -> int:
    """Room held in the store that all pools of a naming world share."""
    with world.aside():
        return world.stores.slots.used("aws", "records")


def only_row(world: World) -> Worker:
    (row,) = world.rows()
    return row


def assert_named(world: NamingWorld) -> None:
    """All that always holds; no machine without its row, none made twice, no store too full."""
    assert_sound(world)
    named = {row.key for pool_id in world.pool_ids() for row in world.rows(pool_id)}
    assert named.issuperset(world.cloud.machines)
    assert world.cloud.remade == []
    assert len(world.cloud.records.get("records", {})) <= world.provider.most


def leave_in_peace(world: NamingWorld) -> None:
    """All machines go, and then there is time for everything that was forgotten to end."""
    world.demand()
    for machine in world.cloud.alive():
        assert world.row(machine.key).state is not State.STOPPED
        world.cloud.vanish(machine.key)
    for _ in range(2):
        world.clock.advance(minutes=2)
        world.scan()
    world.clock.advance(hours=4)
    world.sweep()


def assert_nothing_left(world: NamingWorld) -> None:
    """Rows agree with machines, and nothing is held or left over for ever."""
    rows = {row.key: row for row in world.rows(POOL_ID)}
    for key, machine in world.cloud.machines.items():
        gone = world.cloud.status(machine) is MachineStatus.GONE
        assert gone == (rows[key].state is State.STOPPED), (key, rows[key].state)
    for key, row in rows.items():
        assert row.state is State.STOPPED or key in world.cloud.machines, (key, row.state)
    assert slots_used(world) == 0
    assert world.cloud.records.get("records", {}) == {}
    assert list(world.cloud.unused_parts()) == []
