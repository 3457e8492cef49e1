"""``worker-manager mix``: how machines that stay are best shared out among pools.

For people as tables, for sheets as CSV, for programs as JSON.  Nothing is ever moved.
Where to read next: ``deployment``.
"""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from worker_manager_cli.deployment import client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LINE = (
    "taskQueueId",
    "machines",
    "unusable",
    "proposed",
    "change",
    "demand",
    "taskSeconds",
    "waitSeconds",
    "proposedWaitSeconds",
    "weeklyWaitSeconds",
    "proposedWeeklyWaitSeconds",
    "reason",
)
_MOVE = ("workerGroup", "workerId", "machineClass", "taskQueueId", "toTaskQueueId", "reason")


@click.command()
@click.option("--weeks", type=click.IntRange(1, 4), default=4, show_default=True)
@click.option("--csv", "form", flag_value="csv", help="A line for each pool.")
@click.option("--moves", "form", flag_value="moves", help="A line for each machine, as CSV.")
@click.option("--json", "form", flag_value="json", help="All of it.")
@click.pass_obj
def mix(options: dict[str, Any], weeks: int, form: str | None) -> None:
    """Recommend how many machines each pool had better have.

    By the load of the last weeks; of pools whose policy has a part "mix".
    """
    found = client("worker-registry", options).recommendedMix(query={"weeks": str(weeks)})
    match form:
        case "json":
            click.echo(json.dumps(found, indent=2))
        case "csv":
            _sheet(_LINE, found["pools"])
        case "moves":
            _sheet(_MOVE, found["moves"])
        case _:
            _tell(found, Console())


def _sheet(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _tell(found: Mapping[str, Any], console: Console) -> None:
    pools = Table("pool", title=f"Load of the last {found['weeks']} weeks")
    for name in ("now", "proposed", "change", "unusable", "wait", "then"):
        pools.add_column(name, justify="right")
    pools.add_column("why")
    for line in found["pools"]:
        pools.add_row(
            line["taskQueueId"],
            str(line["machines"]),
            str(line["proposed"]),
            f"{line['change']:+d}" if line["change"] else "",
            str(line["unusable"] or ""),
            _wait(line, "waitSeconds"),
            _wait(line, "proposedWaitSeconds"),
            line["reason"],
        )
    console.print(pools)
    if found["moves"]:
        moves = Table("machine", "from", "to", "why", title="Machines to move, by hand")
        for move in found["moves"]:
            name = f"{move['workerGroup']}/{move['workerId']}"
            moves.add_row(name, move["taskQueueId"], move["toTaskQueueId"], move["reason"])
        console.print(moves)
    console.print(found["reason"], markup=False)


def _wait(line: Mapping[str, Any], name: str) -> str:
    """What 95 of 100 tasks do not wait longer than."""
    if "weeklyWaitSeconds" not in line:
        return "?"
    if name not in line:
        return "for ever"
    seconds = float(line[name])
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
