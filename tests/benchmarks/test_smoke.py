"""Every benchmark runs, at a fiftieth of its size; how long it takes is nobody's business here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.azure import OPERATION_SECONDS, measure_azure
from tests.benchmarks.burst import measure_burst, measure_throttled_burst
from tests.benchmarks.clouds import AWS, AZURE, CLOUDS
from tests.benchmarks.fleets import measure_fleets
from tests.benchmarks.isolation import measure_isolation
from tests.benchmarks.pace import Pace
from tests.benchmarks.provision import measure_provision
from tests.benchmarks.removals import measure_removals
from tests.benchmarks.scale import measure_scale
from tests.benchmarks.scan import measure_scan
from tests.benchmarks.world import a_world, point_sdks_at, processes, worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.benchmarks.results import Measure
    from tests.benchmarks.world import Endpoints

SPEED = OPERATION_SECONDS
"""So that an operation takes a second."""
OF_TIME = {"s", "a VM"}
"""Calls a machine are few only where machines are many."""

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    before = dict(os.environ)
    with processes(tmp_path_factory.mktemp("bench") / "logs", CLOUDS) as started:
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
    check(measures)


@pytest.mark.parametrize("benchmark", [measure_fleets, measure_removals])
def test_so_does_a_small_run_of_three_clouds(
    benchmark: Callable[..., list[Measure]], endpoints: Endpoints
) -> None:
    with worlds(endpoints, CLOUDS) as found:
        check(benchmark(found, scale=0.02))


def test_so_do_a_few_machines_of_azure_in_fast_time(endpoints: Endpoints) -> None:
    with worlds(endpoints, [AZURE], pace=Pace(SPEED), speed=SPEED) as found:
        check(measure_azure(found["azure"], shape="deployment", scale=0.02, speed=SPEED))


def test_so_do_pools_beside_a_cloud_that_hangs(endpoints: Endpoints) -> None:
    measures = measure_isolation(endpoints, scale=0.02, hang=[AZURE])
    check([m for m in measures if "hangs" not in m.name])


def test_so_does_one_of_many_thousand_workers(endpoints: Endpoints) -> None:
    check(measure_scale(endpoints, scale=0.001, clouds=[AWS]))


def check(measures: Sequence[Measure]) -> None:
    assert [m for m in measures if not m.met and m.unit not in OF_TIME] == []
    assert len({m.name for m in measures}) == len(measures)
