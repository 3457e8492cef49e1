"""Everything a day has, done on a tiny fleet: what the bill multiplies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import deeds
from tests.benchmarks.bill import DAY
from tests.benchmarks.scene import a_scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.benchmarks.scene import Scene

pytestmark = pytest.mark.journey


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    before = dict(os.environ)
    with a_scene(tmp_path / "scene") as made:
        yield made
    os.environ.clear()
    os.environ.update(before)


def test_every_deed_of_a_day_is_done_and_a_poll_is_one_item_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deeds, "BUSY_POOLS", 2)
    monkeypatch.setattr(deeds, "POLLS", 5)
    found = deeds.measure_deeds(scene, pools=3, workers=30)
    assert found.by_name.keys() == DAY.keys()
    assert found.scans == 12
    assert found.metrics
    poll = found.by_name["shouldWorkerTerminate"].usage
    assert (poll.asked_dynamodb, poll.read_units, poll.write_units, poll.events) == (1, 1, 0, 0)
    look = found.by_name["look at a pool"].usage
    assert (look.write_units, look.asked_ec2, look.asked_queue) == (0, 0, 1)
    assert found.by_name["scan tick"].usage.asked_ec2 == 4
    assert found.by_name["registerWorker"].usage.events == 1
