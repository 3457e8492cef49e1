"""Every benchmark runs, at a fiftieth of its size; how long it takes is nobody's business here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.burst import measure_burst, measure_throttled_burst
from tests.benchmarks.provision import measure_provision
from tests.benchmarks.scan import measure_scan
from tests.benchmarks.world import a_world, point_sdks_at, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.benchmarks.results import Measure
    from tests.benchmarks.world import Endpoints

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    before = dict(os.environ)
    with processes(tmp_path_factory.mktemp("bench") / "logs") as started:
        point_sdks_at(started)
        yield started
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    "benchmark", [measure_scan, measure_provision, measure_burst, measure_throttled_burst]
)
def test_a_small_run_keeps_all_promises_that_are_not_of_time(
    benchmark: Callable[..., list[Measure]], endpoints: Endpoints
) -> None:
    with a_world(endpoints) as world:
        measures = benchmark(world, scale=0.02)
    assert [m for m in measures if not m.met and m.unit != "s"] == []
    assert len({m.name for m in measures}) == len(measures)
