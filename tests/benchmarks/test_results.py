"""The table of results, its JSON, and its place in the README."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.results import Measure, combine, put_into, table, write_json

if TYPE_CHECKING:
    from pathlib import Path

MEASURES = [Measure("scan_seconds", 4.25, "s", 5), Measure("burst_seconds", 12, "s", 10)]


def test_a_figure_meets_its_bound_up_to_the_bound_itself() -> None:
    assert Measure("scan_seconds", 5, "s", 5).met
    assert not Measure("scan_seconds", 5.01, "s", 5).met


def test_of_several_runs_the_median_time_and_the_worst_count_stay() -> None:
    runs = [
        [Measure("scan_seconds", seconds, "s", 5), Measure("scan_calls", calls, "calls", 12)]
        for seconds, calls in ((6, 8), (4, 9), (4.5, 8))
    ]
    assert [measure.value for measure in combine(runs)] == [4.5, 9]


def test_the_table_lines_up_and_shouts_what_is_not_met() -> None:
    lines = table(MEASURES).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[2] == "| scan_seconds  | 4.25     | 5       | s    | yes |"
    assert lines[3].endswith("| NO  |")


def test_the_json_has_what_others_read(tmp_path: Path) -> None:
    path = tmp_path / "build" / "bench.json"
    write_json(MEASURES, path)
    assert json.loads(path.read_text())[0] == {
        "name": "scan_seconds",
        "value": 4.25,
        "unit": "s",
        "bound": 5,
        "met": True,
    }


def test_the_readme_keeps_the_last_table_only() -> None:
    readme = "# Title\n<!-- bench -->\nold\n<!-- /bench -->\nmore\n"
    once = put_into(readme, MEASURES, circumstances="On a quiet machine.")
    twice = put_into(once, MEASURES, circumstances="On a quiet machine.")
    assert "old" not in once
    assert once.startswith("# Title\n<!-- bench -->\n| benchmark")
    assert once.endswith("On a quiet machine.\n<!-- /bench -->\nmore\n")
    assert twice == once


def test_figures_of_one_benchmark_leave_the_others_and_the_words_alone() -> None:
    readme = "<!-- bench -->\n<!-- /bench -->\n"
    before = put_into(readme, MEASURES, circumstances="On a quiet machine.")
    some = [Measure("burst_seconds", 9, "s", 10), Measure("polling_reads", 2, "reads", 2)]
    after = put_into(before, some, circumstances="On another.", only=True)
    assert after == put_into(readme, [MEASURES[0], *some], circumstances="On a quiet machine.")


def test_a_readme_without_the_block_is_refused() -> None:
    with pytest.raises(LookupError, match="bench"):
        put_into("# Title\n", MEASURES, circumstances="")
