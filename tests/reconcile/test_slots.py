"""Room in a store of the cloud that pools share and that fills up."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.reconcile.naming import assert_named, slots_used
from tests.reconcile.scenes import launches
from worker_manager.providers.fake_steps import Part

if TYPE_CHECKING:
    from tests.reconcile.naming import NamingWorld

POOLS = ("proj-x/one", "proj-x/two", "proj-x/three")


def test_launches_of_three_pools_never_fill_the_store_and_none_is_lost(
    naming: NamingWorld,
) -> None:
    """B16: 800 records of deployments blocked all pools, and retries made it worse.

    It is 2,000 launches over 750 records there, and a fifth of both here.
    """
    naming.provider.most = naming.cloud.most = most = 150
    each = 134
    for pool_id in POOLS:
        naming.save_pool(pool_id, maximum=each)
        naming.demand(pending=each, pool_id=pool_id)
    naming.tick()
    began = naming.clock.now
    assert 100 <= slots_used(naming) <= most

    while naming.mail:
        naming.clock.advance(seconds=5)
        naming.deliver_all()

    assert len(naming.cloud.machines) == 3 * each
    assert naming.cloud.fullest["records"] <= most
    assert naming.cloud.records["records"] == {}
    assert slots_used(naming) == 0
    assert len(launches(naming)) == 3 * 2, "nothing was asked for twice"
    took = naming.clock.now - began
    assert took <= timedelta(minutes=2)
    assert len(naming.reports) <= 3 * 2 * (took / timedelta(seconds=10) + 1)
    assert naming.pool_errors() == []


def test_an_order_that_waits_for_room_is_no_throttling_of_its_location(
    naming: NamingWorld,
) -> None:
    """One store is full; what needs no room in it goes on."""
    naming.provider.most = 2
    naming.save_pool(POOLS[0])
    naming.save_pool(POOLS[1])
    naming.demand(pending=3, pool_id=POOLS[0])
    naming.tick()
    assert launches(naming) == []

    naming.demand(pending=2, pool_id=POOLS[1])
    naming.tick()

    assert {machine.key.pool_id for machine in naming.cloud.alive()} == {POOLS[1]}
    assert naming.rows(POOLS[0]) == []


def test_an_order_that_never_found_room_holds_no_place_in_its_pool_for_ever(
    naming: NamingWorld,
) -> None:
    naming.provider.most = 2
    naming.save_pool()
    naming.demand(pending=3)
    naming.run_slowly(minutes=12)

    naming.provider.most = 750
    naming.run_until(lambda: len(naming.cloud.alive()) == 3)

    assert naming.pool_errors() == []
    assert_named(naming)


def test_a_machine_without_answer_keeps_its_slot_until_it_has_one(naming: NamingWorld) -> None:
    naming.provider.partly.append(Part(accepted=1, unknown=1, acted=True))
    naming.save_pool()
    naming.demand(pending=2)
    naming.tick()
    naming.clock.advance(seconds=25)
    naming.deliver_all()
    assert slots_used(naming) == 1

    naming.tick()
    naming.clock.advance(seconds=25)
    naming.deliver_all()

    assert slots_used(naming) == 0
    assert len(naming.cloud.machines) == 2
