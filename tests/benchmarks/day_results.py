"""What a simulated day came to, with health and without, and whether that is what was promised.

Where to read next: ``day`` (how it is simulated).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, quantiles
from typing import TYPE_CHECKING

from tests.benchmarks.results import Detail, Measure

if TYPE_CHECKING:
    from tests.benchmarks.day_cloud import DayCloud, Machine
    from tests.benchmarks.day_tasks import TaskQueue


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a day came to."""

    cloud: DayCloud
    queues: list[TaskQueue]
    unserved: int
    image_pool: int
    first_wave: int
    """Machines started from the broken image before the first of them was known to fail."""

    @property
    def dead(self) -> list[Machine]:
        """Machines that were started and never asked for work."""
        return [m for m in self.cloud.ended if not m.has_asked_for_work]

    def refused(self, kind: str | None = None) -> int:
        """Calls that got less than they asked for."""
        return sum(kind in (None, refusal.kind) for refusal in self.cloud.refusals)

    @property
    def wasted(self) -> int:
        """Machines that never asked for work, and refused calls."""
        return len(self.dead) + self.refused()

    @property
    def wasted_on_image(self) -> int:
        """Machines that the broken image cost."""
        return sum(machine.boots_at is None for machine in self.dead)

    @property
    def unneeded(self) -> int:
        """Machines that came up and found no task."""
        return sum(m.has_asked_for_work and not m.has_worked for m in self.cloud.ended)

    @property
    def machine_hours(self) -> float:
        """Of all machines, from launch to end."""
        return self.cloud.machine_seconds / 3_600

    def waits(self, *, all_pools: bool = True) -> list[float]:
        """Seconds that tasks waited; those of the pool with the broken image may be left out."""
        queues = (
            self.queues
            if all_pools
            else self.queues[: self.image_pool] + self.queues[self.image_pool + 1 :]
        )
        return [waited.seconds for queue in queues for waited in queue.waited]


def measures(healing: Outcome, plain: Outcome, *, seconds: float) -> list[Measure]:
    """The promises: a tenth of the waste, a twentieth in the outage, two waves, no longer waits."""
    waits = fmean(healing.waits()) / fmean(plain.waits())
    elsewhere = fmean(healing.waits(all_pools=False)) / fmean(plain.waits(all_pools=False))
    return [
        Measure("day_wasted", share(healing.wasted, plain.wasted), "of without health", 0.1),
        Measure(
            "day_wasted_in_outage",
            share(healing.refused("no-capacity"), plain.refused("no-capacity")),
            "of without health",
            0.05,
        ),
        Measure(
            "day_broken_image",
            round(healing.wasted_on_image / max(1, healing.first_wave), 2),
            "first waves",
            2,
        ),
        Measure("day_waiting", round(waits, 3), "of without health", 1.02),
        Measure("day_waiting_elsewhere", round(elsewhere, 3), "of without health", 1.02),
        Measure("day_tasks_unserved", healing.unserved, "tasks", 0),
        Measure("day_seconds", round(seconds, 1), "s", 60),
    ]


def share(part: float, whole: float) -> float:
    """``part`` of ``whole``; nothing of nothing is nothing."""
    return round(part / whole, 3) if whole else float(part > 0)


def detail(healing: Outcome, plain: Outcome) -> Detail:
    """Both days side by side, as a Markdown table and as JSON."""
    both = {"with health": _figures(healing), "without": _figures(plain)}
    rows = [("", *both), ("---", *("---:" for _ in both))]
    rows += [(name, *(f"{day[name]:,g}" for day in both.values())) for name in _figures(plain)]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return Detail("day", text, both)


def _figures(day: Outcome) -> dict[str, float]:
    waits, elsewhere = day.waits(), day.waits(all_pools=False)
    return {
        "wasted: machines that never asked for work, refused calls": day.wasted,
        "… refused for want of capacity": day.refused("no-capacity"),
        "… refused by the quota": day.refused("quota-exceeded"),
        "… machines of the broken image": day.wasted_on_image,
        "… of these before the first was known to fail": day.first_wave,
        "machines that came up and found no task": day.unneeded,
        "machines": len(day.cloud.ended),
        "machine hours": round(day.machine_hours),
        "tasks": len(waits),
        "waiting, mean s": round(fmean(waits), 1),
        "waiting, 95 % s": round(quantiles(waits, n=20)[-1]),
        "waiting but for the broken pool, mean s": round(fmean(elsewhere), 1),
        "waiting but for the broken pool, 95 % s": round(quantiles(elsewhere, n=20)[-1]),
    }
