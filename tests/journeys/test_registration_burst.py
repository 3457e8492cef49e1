"""Many machines register at once: who cannot be served yet hears when to come back (B02).

The long version is the benchmark ``burst_registrations``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.registrations import PATIENCE_SECONDS, RATE, burst, prepare

if TYPE_CHECKING:
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

SECONDS = 5
POOLS = 5


@pytest.mark.timeout(180)
def test_all_register_in_the_end_and_none_is_turned_away(world: World) -> None:
    bodies = prepare(world, machines=RATE * SECONDS, pools=POOLS, prefix="journey-burst")
    found = asyncio.run(
        burst(world.stage.root_url, bodies, rate=RATE, patience_seconds=PATIENCE_SECONDS)
    )
    assert found.wrong_answers == 0, found.answers
    assert len(found.registered_after) == len(bodies) == RATE * SECONDS
    for pool_id in {body["workerPoolId"] for body in bodies}:
        assert len(world.workers(pool_id, "running")) == RATE * SECONDS // POOLS
