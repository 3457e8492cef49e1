"""What polling came to: its bounds, a table, and a month of it in dollars.

Read next: ``polling`` (how it is measured).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.benchmarks.prices import HOURS_A_MONTH, PRICES
from tests.benchmarks.results import Detail, Measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.polling import Polled, Tally

POLLS = 360
"""Of one worker in half an hour."""
TASKS = 3
"""Of one worker in half an hour, each of five minutes, in which it does not ask."""
POLLS_AT_WORK = POLLS // 2 - TASKS
"""That bring no task."""
PARTITION_READS = 3_000
"""Read units a second that one partition gives (DynamoDB Developer Guide, "Partitions")."""
SHOWN = ("requests", "GetItem", "Query", "writes", "read units", "write units")


@dataclass(frozen=True, slots=True)
class Cost:
    """Amounts of one thing that happens, or of many."""

    amounts: tuple[float, ...]
    """As ``SHOWN``."""

    @classmethod
    def of(cls, tally: Tally) -> Cost:
        """The average occasion."""
        found = (
            sum(tally.requests.values()),
            tally.requests["GetItem"],
            tally.requests["Query"],
            tally.writes,
            tally.read_units,
            tally.write_units,
        )
        return cls(tuple(amount / tally.occasions for amount in found))

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(tuple(a + b for a, b in zip(self.amounts, other.amounts, strict=True)))

    def times(self, factor: float) -> Cost:
        """The same, so many times."""
        return Cost(tuple(amount * factor for amount in self.amounts))

    @property
    def usd(self) -> float:
        """What DynamoDB charges."""
        *_, read, write = self.amounts
        return PRICES["dynamodb_reads"].of(read) + PRICES["dynamodb_writes"].of(write)


def measures(polled: Polled) -> list[Measure]:
    """What was promised of ``claimWork``, and what it was."""
    workers = len(polled.fleet.workers)
    claims = polled.steps["claimWork with a task"]
    got = max(one.most_got for one in (polled.idle, polled.noted, polled.between, claims))
    names = polled.fleet.names * len(polled.fleet.containers)
    idle = Cost.of(polled.idle)
    return [
        Measure("polling_item_reads", got, "reads a poll", 2),
        Measure("polling_requests", round(idle.amounts[0], 2), "requests a poll", 3),
        Measure("polling_read_units", round(idle.amounts[4], 2), "units a poll", 3),
        Measure("polling_idle_writes", polled.idle.writes, "writes", 0),
        Measure(
            "polling_sighting_writes",
            round(polled.seen_writes / workers, 3),
            "writes in 30 min",
            1,
        ),
        Measure("polling_name_writes", polled.name_writes, "writes in 30 min", names),
        Measure(
            "polling_writes_beside_claims",
            polled.between.writes + claims.conditional,
            "writes",
            0,
        ),
        Measure(
            "polling_hottest_partition",
            round(polled.idle.hottest / polled.watched.total_seconds()),
            "read units/s",
            PARTITION_READS,
        ),
    ]


def costs(polled: Polled) -> dict[str, Cost]:
    """What one of each costs, and half hours of the whole fleet; these need a full one."""
    workers = len(polled.fleet.workers)
    idle, noted = Cost.of(polled.idle), Cost.of(polled.noted)
    steps = {name: Cost.of(tally) for name, tally in polled.steps.items()}
    one_task = sum(steps.values(), Cost((0.0,) * len(SHOWN)))
    return {
        "claimWork, nothing to note": idle,
        "claimWork, sighting due": noted,
        **steps,
        "half an hour of waiting": (idle.times(POLLS - 1) + noted).times(workers),
        "half an hour of work": (idle.times(POLLS_AT_WORK) + one_task.times(TASKS)).times(workers),
    }


def detail(polled: Polled) -> Detail:
    """The table and its words."""
    found = costs(polled)
    rows: list[Sequence[str]] = [("", *SHOWN)]
    rows += [(name, *map(_number, cost.amounts)) for name, cost in found.items()]
    rows.insert(1, ("---", *("---:" for _ in SHOWN)))
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    data = {name: dict(zip(SHOWN, cost.amounts, strict=True)) for name, cost in found.items()}
    return Detail("polling", f"{text}\n\n{words(found, len(polled.fleet.workers))}", data)


def words(found: dict[str, Cost], workers: int) -> str:
    """A month in dollars, for the whole fleet."""
    month = 2 * HOURS_A_MONTH
    waiting = found["half an hour of waiting"].times(month).usd
    work = found["half an hour of work"].times(month).usd
    polls = workers * POLLS * month
    calls = workers * (POLLS_AT_WORK + 4 * TASKS) * month
    said = (
        f"A month of waiting costs ${waiting:,.0f} of DynamoDB, ${_lambda(polls):,.0f} for the",
        f"requests of Lambda and ${_rest(polls):,.0f} for those of the REST API; a month of work",
        f"${work:,.0f}, ${_lambda(calls):,.0f} and ${_rest(calls):,.0f}. Behind a load balancer",
        f"the last is some ${_balancer(polls):,.0f}. Lambda's own time and logs come on top, as in",
        "the bill above.",
    )
    return " ".join(said)


def _lambda(calls: float) -> float:
    return PRICES["lambda_requests"].of(calls)


def _rest(calls: float) -> float:
    return PRICES["rest_requests"].of(calls)


def _balancer(calls: float) -> float:
    """LCU-hours of new connections, ten requests each, 25 a second."""
    connections = calls / 10 / (HOURS_A_MONTH * 3_600)
    return PRICES["alb_lcu_hours"].of(HOURS_A_MONTH * connections / 25)


def _number(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 1_000 else f"{amount:.3g}"
