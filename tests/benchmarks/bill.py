"""The bill: what a month of the discussion's fleet costs at list prices, and why.

``deeds`` says what each thing that happens uses, ``DAY`` how often it happens, ``prices`` what
that costs; everything that is not measured is an assumption, with its reason, in ``assumptions``.
All workers are modelled as AWS machines with the stock generic-worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.benchmarks.prices import (
    AS_OF,
    DAYS_A_MONTH,
    GIGABYTE,
    HOURS_A_MONTH,
    PRICES,
    REGION,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.benchmarks.assumptions import Assumptions
    from tests.benchmarks.scene import Deed, Deeds
    from tests.benchmarks.usage import Usage

DAY_SECONDS = 86_400
LAMBDA_PROCESSOR_MB = 1_769
"""Megabytes at which Lambda gives a whole processor; less memory, less of it."""


DAY: Mapping[str, Callable[[Assumptions, Deeds], float]] = {
    "provision tick": lambda a, _: 2 * 1_440,
    "look at a pool": lambda a, _: 2 * 1_440 * a.pools,
    "scan tick": lambda a, _: 1_440,
    "look at a pool's machines in a region": lambda a, deeds: 1_440 * deeds.scans,
    "publish": lambda a, _: 1_440,
    "expire": lambda a, _: 24,
    "order machines": lambda a, _: _births(a) / a.machines_an_order,
    "registerWorker": lambda a, _: _births(a),
    "see a first claim": lambda a, _: _births(a),
    "shouldWorkerTerminate": lambda a, _: _polls(a),
    "reportWorkerError": lambda a, _: _births(a) * a.errors_a_life,
    "reregisterWorker": lambda a, _: _births(a) * a.renewals_a_life,
    "let go": lambda a, _: _births(a),
    "removeWorker": lambda a, _: _births(a),
    "delete a machine": lambda a, _: _births(a),
    "see a machine gone": lambda a, _: _births(a),
    "workerPool": lambda a, _: a.operator_requests,
}
"""How often a day has each deed: ticks are every 30 s, scans every minute."""


def _births(a: Assumptions) -> float:
    return a.workers * 24 / a.life_hours


def _polls(a: Assumptions) -> float:
    waiting = a.waiting_share / a.poll_seconds
    working = (1 - a.waiting_share) / a.task_seconds
    return a.workers * DAY_SECONDS * (waiting + working)


@dataclass(frozen=True, slots=True)
class Line:
    """One item of the bill, a month; ``by_deed`` are its dollars by what caused them."""

    key: str
    amount: float
    by_deed: Mapping[str, float] = field(default_factory=dict)

    @property
    def usd(self) -> float:
        """Dollars a month."""
        return PRICES[self.key].of(self.amount)

    @property
    def reason(self) -> str:
        """What most of it is for."""
        if not self.by_deed:
            return ""
        deed, most = max(self.by_deed.items(), key=lambda pair: pair[1])
        total = sum(self.by_deed.values())
        return f"{deed} ({most / total:.0%})" if total else ""


@dataclass(frozen=True, slots=True)
class Bill:
    """A month behind one kind of front door."""

    front_door: str
    lines: Sequence[Line]

    @property
    def usd(self) -> float:
        """Dollars a month, all in all."""
        return sum(line.usd for line in self.lines)

    @property
    def largest(self) -> Line:
        """The most expensive item."""
        return max(self.lines, key=lambda line: line.usd)

    def to_json(self) -> dict[str, Any]:
        """For ``build/bench.json``."""
        return {
            "frontDoor": self.front_door,
            "usdPerMonth": round(self.usd, 2),
            "largest": {"item": _title(self.largest), "reason": self.largest.reason},
            "lines": [
                {
                    "service": PRICES[line.key].service,
                    "item": PRICES[line.key].what,
                    "amount": round(line.amount, 3),
                    "usd": round(line.usd, 2),
                    "mostFor": line.reason,
                }
                for line in self.lines
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is paid for by its number, whatever it does."""

    metrics: int
    alarms: int
    dashboards: int
    secrets: int


def gb_seconds(deed: Deed, a: Assumptions) -> float:
    """What Lambda charges for one call: processor time, slower with less memory, and waits."""
    usage = deed.usage
    share = min(1.0, deed.memory_mb / LAMBDA_PROCESSOR_MB)
    waits = (
        usage.asked_dynamodb * a.dynamodb_wait
        + usage.asked_sqs * a.sqs_wait
        + usage.asked_events * a.events_wait
        + usage.asked_s3 * a.s3_wait
        + usage.asked_ec2 * a.ec2_wait
        + usage.asked_queue * a.queue_wait
    )
    return deed.memory_mb / 1_024 * (usage.cpu_seconds * a.cpu_factor / share + waits)


AMOUNTS: Mapping[str, Callable[[Deed, Assumptions], float]] = {
    "lambda_requests": lambda deed, a: deed.usage.calls,
    "lambda_gb_seconds": gb_seconds,
    "dynamodb_reads": lambda deed, a: deed.usage.read_units,
    "dynamodb_writes": lambda deed, a: deed.usage.write_units,
    "sqs_fifo": lambda deed, a: _sqs(deed.usage, a, fifo=True),
    "sqs_standard": lambda deed, a: _sqs(deed.usage, a, fifo=False),
    "events": lambda deed, a: deed.usage.events,
    "log_gb": lambda deed, a: (
        (deed.usage.log_bytes + deed.usage.calls * a.platform_log_bytes) / GIGABYTE
    ),
    "s3_puts": lambda deed, a: deed.usage.s3_puts,
    "s3_gets": lambda deed, a: deed.usage.s3_gets,
    "out_gb": lambda deed, a: deed.usage.went_out / GIGABYTE,
}
"""What one deed adds to each item."""


def _sqs(usage: Usage, a: Assumptions, *, fifo: bool) -> float:
    """Requests of one kind of queue: those that send belong to the kind of most messages."""
    messages = usage.fifo_messages if fifo else usage.standard_messages
    altogether = usage.fifo_messages + usage.standard_messages
    sent = usage.sqs_sent * messages / altogether if altogether else 0.0
    return sent + messages * a.receives_a_message


def bills(deeds: Deeds, a: Assumptions, standing: Standing) -> tuple[Bill, Bill]:
    """A month behind API Gateway's REST API, and behind a load balancer."""
    month = {name: times(a, deeds) * DAYS_A_MONTH for name, times in DAY.items()}
    lines = [
        _line(key, {name: month[name] * of(deeds.by_name[name], a) for name in DAY})
        for key, of in AMOUNTS.items()
    ]
    idle = a.queues * a.idle_pollers * DAY_SECONDS / a.poll_seconds * DAYS_A_MONTH
    lines += [
        Line("dynamodb_gb", a.stored_gb),
        Line("log_kept_gb", _amount(lines, "log_gb") * a.logs_kept_months),
        Line("sqs_standard", idle, {"Lambda's own polling": 1.0}),
        Line("metrics", standing.metrics),
        Line("alarms", standing.alarms),
        Line("dashboards", standing.dashboards),
        Line("secrets", standing.secrets),
    ]
    requests = {name: month[name] for name in DAY if deeds.by_name[name].usage.came_in}
    rest = [_line("rest_requests", requests)]
    balancer = [
        Line("alb_hours", HOURS_A_MONTH),
        Line("alb_address_hours", HOURS_A_MONTH * a.balancer_addresses),
        _lcu_hours(deeds, a, requests),
    ]
    return (
        Bill("rest", _costly([*lines, *rest])),
        Bill("alb", _costly([*lines, *balancer])),
    )


def _lcu_hours(deeds: Deeds, a: Assumptions, requests: Mapping[str, float]) -> Line:
    """LCU-hours: the largest of new connections (25/s), open ones (3,000) and bytes (0.4 GB/h).

    Rules are fewer than the ten that are free.
    """
    total = sum(requests.values())
    connections = total / a.requests_a_connection
    size = connections * a.connection_bytes
    for name, times in requests.items():
        usage = deeds.by_name[name].usage
        size += times * (usage.came_in + usage.went_out)
    seconds = HOURS_A_MONTH * 3_600
    units = {
        "new connections": connections / seconds / 25,
        "open connections": a.workers / 3_000,
        "bytes": size / GIGABYTE / HOURS_A_MONTH / 0.4,
    }
    largest = max(units, key=lambda name: units[name])
    return Line("alb_lcu_hours", HOURS_A_MONTH * units[largest], {largest: 1.0})


def _line(key: str, by_deed: Mapping[str, float]) -> Line:
    return Line(key, sum(by_deed.values()), by_deed)


def _amount(lines: Iterable[Line], key: str) -> float:
    return sum(line.amount for line in lines if line.key == key)


def _costly(lines: Iterable[Line]) -> list[Line]:
    """Without what costs less than a cent, the most expensive first."""
    return sorted((line for line in lines if line.usd >= 0.01), key=lambda line: -line.usd)


def _title(line: Line) -> str:
    price = PRICES[line.key]
    return f"{price.service}: {price.what}"


def bill_table(both: Sequence[Bill]) -> str:
    """A Markdown table of items with a column for each front door."""
    items: dict[str, tuple[Line, dict[str, float]]] = {}
    for bill in both:
        for line in bill.lines:
            _, dollars = items.setdefault(f"{_title(line)} {line.reason}", (line, {}))
            dollars[bill.front_door] = line.usd
    doors = [bill.front_door for bill in both]
    rows = [("item", "a month", *(f"{door}, $" for door in doors), "most of it for")]
    for line, dollars in sorted(items.values(), key=lambda item: -max(item[1].values())):
        costs = (f"{dollars[door]:,.2f}" if door in dollars else "" for door in doors)
        rows.append((_title(line), f"{line.amount:,.0f}", *costs, line.reason))
    rows.append(("**all**", "", *(f"**{bill.usd:,.2f}**" for bill in both), ""))
    rows.insert(1, ("---", "---:", *("---:" for _ in doors), "---"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def words(both: Sequence[Bill], polling_usd: float) -> str:
    """The bill in sentences, below its table."""
    said = [
        f"Behind `{bill.front_door}`: ${bill.usd:,.0f} a month, the largest item is "
        f"{_title(bill.largest)} (${bill.largest.usd:,.0f}), for {bill.largest.reason}."
        for bill in both
    ]
    said.append(
        f"If every worker waited all the time, polling through `rest` alone would be "
        f"${polling_usd:,.0f}. List prices of {REGION}, {AS_OF}, without free tier."
    )
    return " ".join(said)
