"""What was measured against what was promised: as a table, as JSON, and in the README."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class Detail:
    """More than a figure: a text for the README's block of this name, and the same as JSON."""

    name: str
    text: str
    data: Any


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


def write_json(measures: Sequence[Measure], path: Path, details: Sequence[Detail] = ()) -> None:
    """Write ``path``, making its folder: the figures, then the details under their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [m.to_json() for m in measures]
    found += [{"name": one.name, "detail": one.data} for one in details]
    path.write_text(json.dumps(found, indent=2) + "\n")


def put_into(
    readme: str, measures: Sequence[Measure], *, circumstances: str, only: bool = False
) -> str:
    """``readme`` with the last table in its block ``bench``; the words below it tell of it.

    If these are ``only`` some, the others stay as they are, and so do the words.  Raises
    ``LookupError`` where the block is missing.
    """
    if not only:
        return fill(readme, "bench", f"{table(measures)}\n\n{circumstances}")
    rows, _, below = _block(readme, "bench").group(1).strip().partition("\n\n")
    measured = {measure.name: measure for measure in measures}
    kept = [measured.pop(before.name, before) for before in _measures_in(rows)]
    return fill(readme, "bench", f"{table([*kept, *measured.values()])}\n\n{below}")


def _measures_in(rows: str) -> list[Measure]:
    """What a table of results says."""
    found = []
    for row in rows.splitlines()[2:]:
        name, value, bound, unit, _ = (cell.strip() for cell in row.strip("|").split("|"))
        found.append(Measure(name, float(value), unit, float(bound)))
    return found


def fill(readme: str, name: str, text: str) -> str:
    """``readme`` with ``text`` between its lines ``<!-- name -->`` and ``<!-- /name -->``.

    Raises ``LookupError`` where they are missing.
    """
    found = _block(readme, name)
    return f"{readme[: found.start(1)]}\n{text}\n{readme[found.end(1) :]}"


def _block(readme: str, name: str) -> re.Match[str]:
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    found = re.search(f"{re.escape(begin)}(.*?){re.escape(end)}", readme, re.DOTALL)
    if found is None:
        raise LookupError(f"README has no block {begin} … {end}")
    return found
