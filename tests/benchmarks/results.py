"""What was measured against what was promised: as a table, as JSON, and in the README."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
"""What stands between these lines of the README is replaced."""

SECONDS = "s"


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure; it meets its ``bound`` when it is not above it."""

    name: str
    value: float
    unit: str
    bound: float

    @property
    def met(self) -> bool:
        """Whether the promise was kept."""
        return self.value <= self.bound

    def to_json(self) -> dict[str, Any]:
        """One entry of ``build/bench.json``."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "bound": self.bound,
            "met": self.met,
        }


def combine(runs: Sequence[Sequence[Measure]]) -> list[Measure]:
    """One measure of several runs: the median time, and the worst count.

    Runs have the same names in the same order, and are odd in number.
    """
    return [_of_one(measures) for measures in zip(*runs, strict=True)]


def _of_one(measures: Sequence[Measure]) -> Measure:
    ordered = sorted(measures, key=lambda measure: measure.value)
    return ordered[len(ordered) // 2] if ordered[0].unit == SECONDS else ordered[-1]


def table(measures: Sequence[Measure]) -> str:
    """A Markdown table whose columns also line up in a terminal."""
    rows = [("benchmark", "measured", "at most", "unit", "met")]
    rows += [
        (m.name, f"{m.value:g}", f"{m.bound:g}", m.unit, "yes" if m.met else "NO") for m in measures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    lines = (
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(f"| {line} |" for line in lines)


def write_json(measures: Sequence[Measure], path: Path) -> None:
    """Write ``path``, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([m.to_json() for m in measures], indent=2) + "\n")


def put_into(readme: str, measures: Sequence[Measure], *, circumstances: str) -> str:
    """``readme`` with the last table between its markers.

    Raises ``LookupError`` where they are missing.
    """
    block = f"{BEGIN}\n{table(measures)}\n\n{circumstances}\n{END}"
    found = re.search(f"{re.escape(BEGIN)}.*?{re.escape(END)}", readme, re.DOTALL)
    if found is None:
        raise LookupError(f"README has no block {BEGIN} … {END}")
    return readme[: found.start()] + block + readme[found.end() :]
