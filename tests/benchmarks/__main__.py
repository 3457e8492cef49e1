"""Run the benchmarks: ``python -m tests.benchmarks``.

Prints a table and writes it to ``build/bench.json``; ``--readme`` also puts it into the README,
``--only scan`` runs those whose name begins so.  Ends with 1 if a bound is not met.  Read next:
``world`` (what runs where), then ``scan``, ``provision`` and ``burst`` of one cloud, ``fleets``,
``removals``, ``isolation``, ``azure`` and ``scale`` of three; ``registrations`` needs the whole
system, ``day`` nothing but the core, ``bill`` the functions as they are deployed, ``polling``,
``lists`` and ``observing`` tables in memory.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
from typing import TYPE_CHECKING, TypeVar

from tests.benchmarks.azure import measure_azure
from tests.benchmarks.bill_run import measure_bill
from tests.benchmarks.burst import measure_burst, measure_throttled_burst
from tests.benchmarks.clouds import AWS, AZURE, CLOUDS, ROOT
from tests.benchmarks.cold import measure_cold
from tests.benchmarks.day import measure_day
from tests.benchmarks.fleets import measure_fleets
from tests.benchmarks.isolation import measure_isolation
from tests.benchmarks.lists import measure_lists
from tests.benchmarks.observing import measure_observing
from tests.benchmarks.polling import measure_polling
from tests.benchmarks.provision import measure_provision
from tests.benchmarks.registrations import measure_registrations
from tests.benchmarks.removals import measure_removals
from tests.benchmarks.results import combine, fill, put_into, table, write_json
from tests.benchmarks.scale import measure_scale
from tests.benchmarks.scan import measure_scan
from tests.benchmarks.world import a_world, now, point_sdks_at, processes, worlds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.clouds import Cloud
    from tests.benchmarks.results import Detail, Measure
    from tests.benchmarks.world import Endpoints


_Found = TypeVar("_Found")


def with_processes(
    benchmark: Callable[..., list[Measure]], *clouds: Cloud
) -> Callable[..., list[Measure]]:
    """``benchmark`` with an emulator and clouds of its own."""

    def run(*, scale: float) -> list[Measure]:
        with processes(ROOT / "build" / "bench" / "world", clouds) as endpoints:
            point_sdks_at(endpoints)
            return benchmark(endpoints, scale=scale)

    return run


def in_worlds(benchmark: Callable[..., list[Measure]]) -> Callable[..., list[Measure]]:
    """``benchmark`` with a world for each cloud."""

    def run(endpoints: Endpoints, *, scale: float) -> list[Measure]:
        with worlds(endpoints, CLOUDS) as found:
            return benchmark(found, scale=scale)

    return with_processes(run, *CLOUDS)


def on_azure(shape: str) -> Callable[..., list[Measure]]:
    """Launch configs of this shape, in a world of Azure alone."""

    def run(endpoints: Endpoints, *, scale: float) -> list[Measure]:
        with worlds(endpoints, [AZURE]) as found:
            return measure_azure(found["azure"], shape=shape, scale=scale)

    return with_processes(run, AZURE)


def in_a_world(benchmark: Callable[..., list[Measure]]) -> Callable[..., list[Measure]]:
    """``benchmark`` with processes and a world of its own."""

    def run(endpoints: Endpoints, *, scale: float) -> list[Measure]:
        with a_world(endpoints) as world:
            return benchmark(world, scale=scale)

    return with_processes(run, AWS)


BENCHMARKS: dict[str, tuple[int, Callable[..., list[Measure]]]] = {
    "scan": (3, in_a_world(measure_scan)),
    "provision": (1, in_a_world(measure_provision)),
    "burst": (3, in_a_world(measure_burst)),
    "burst_throttled": (1, in_a_world(measure_throttled_burst)),
    "fleets": (3, in_worlds(measure_fleets)),
    "removals": (3, in_worlds(measure_removals)),
    "azure_deployment": (1, on_azure("deployment")),
    "azure_inline": (1, on_azure("inline")),
    "isolation": (1, with_processes(measure_isolation, *CLOUDS)),
    "scale": (1, with_processes(measure_scale, *CLOUDS)),
    "burst_registrations": (1, measure_registrations),
    "cold": (1, measure_cold),
    "lists": (1, measure_lists),
    "observing": (1, measure_observing),
}
"""By name: how often it is run, and how.  Those that are repeated measure what others disturb."""

DETAILED: dict[str, Callable[..., tuple[list[Measure], Detail]]] = {
    "day": measure_day,
    "bill": measure_bill,
    "polling": measure_polling,
}
"""Those that have more to tell than figures; the README has a block of the same name for each."""


def main(arguments: list[str]) -> int:
    """Run them one after the other, each in a fresh world; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--only", default="", help="those whose name begins so")
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is what is promised")
    parser.add_argument("--readme", action="store_true", help="update the README's table")
    given = parser.parse_args(arguments)
    logging.disable(logging.INFO)
    measures: list[Measure] = []
    for name, (times, benchmark) in BENCHMARKS.items():
        if name.startswith(given.only):
            runs = [_run(name, benchmark, given.scale) for _ in range(times)]
            measures += combine(runs)
    details: list[Detail] = []
    for name, detailed in DETAILED.items():
        if name.startswith(given.only):
            found, detail = _run(name, detailed, given.scale)
            measures += found
            details.append(detail)
    print(table(measures), *(detail.text for detail in details), sep="\n\n")
    write_json(measures, ROOT / "build" / "bench.json", details)
    if given.readme:
        readme = ROOT / "README.md"
        text = put_into(
            readme.read_text(), measures, circumstances=circumstances(), only=bool(given.only)
        )
        for detail in details:
            text = fill(text, detail.name, detail.text)
        readme.write_text(text)
    return 0 if all(measure.met for measure in measures) else 1


def _run(name: str, benchmark: Callable[..., _Found], scale: float) -> _Found:
    print(f"{name} …", file=sys.stderr, flush=True)
    return benchmark(scale=scale)


def circumstances() -> str:
    """When, and on what."""
    return (
        f"{now():%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores shared by "
        "our code, the simulated clouds and the emulator's DynamoDB. Scan, burst, fleets and "
        "removals ran three times: the median time, the worst of everything else."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
