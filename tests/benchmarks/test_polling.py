"""A small fleet keeps what is promised of a large one, and a month of it adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.lists import measure_lists
from tests.benchmarks.observing import measure_observing
from tests.benchmarks.polling import measure_polling, tally
from tests.benchmarks.polling_fleet import keys_of
from tests.benchmarks.polling_results import Cost
from tests.benchmarks.units import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.results import Measure


def test_a_small_fleet_that_polls_keeps_all_promises() -> None:
    measures, detail = measure_polling(scale=0.005)
    assert [measure for measure in measures if not measure.met] == []
    assert len(detail.data) == 8
    waiting = detail.data["half an hour of waiting"]
    assert waiting["GetItem"] == pytest.approx(50 * 360)


@pytest.mark.parametrize("benchmark", [measure_lists, measure_observing])
def test_so_do_lists_and_looks(benchmark: Callable[..., list[Measure]]) -> None:
    measures = benchmark(scale=0.005)
    assert [measure for measure in measures if not measure.met and measure.unit != "s"] == []


def test_workers_are_those_of_the_pools_the_largest_first() -> None:
    pools = keys_of(10_000, 400, 2_000)
    assert [len(pool) for pool in pools[:2]] == [2_000, 21]
    assert len({key for pool in pools for key in pool}) == 10_000


def test_a_tally_tells_reads_from_writes_and_finds_the_hottest_partition() -> None:
    def read(partition: str, size: int) -> Call:
        asked = {"TableName": "t", "ConsistentRead": True, "Key": {"pk": {"S": partition}}}
        return Call("GetItem", asked, {"Item": {"body": {"S": "x" * size}}})

    put = Call("PutItem", {"TableName": "t", "Item": {"body": {"S": "x" * 1_500}}}, {})
    found = tally([[read("a", 10), read("b", 5_000)], [read("a", 10), put]])
    assert (found.occasions, found.reads, found.writes, found.conditional) == (2, 3, 1, 1)
    assert (found.read_units, found.write_units, found.hottest, found.most_got) == (4, 2, 2, 2)


def test_costs_are_those_of_the_price_list() -> None:
    cost = Cost((0, 0, 0, 0, 8_000_000, 800_000))
    assert cost.usd == pytest.approx(1.0 + 0.5)
    assert (cost + cost).times(2).usd == pytest.approx(6.0)
