"""What the bill assumes, each with its reason; all else is measured.  Read next: ``bill``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def assumed(value: float, why: str) -> Any:
    """A number that nobody measured, with its reason."""
    return field(default=value, metadata={"why": why})


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Everything about a day that the functions themselves do not tell."""

    pools: float = assumed(384, "the discussion's fleet")
    workers: float = assumed(5_054, "the discussion's fleet, standing all day")
    waiting_share: float = assumed(0.5, "of its life a worker waits for tasks half the time")
    poll_seconds: float = assumed(
        20, "a waiting generic-worker asks before each claimWork, which waits up to 20 s"
    )
    task_seconds: float = assumed(1_200, "a working one asks once a task of 20 minutes")
    life_hours: float = assumed(4, "from registration to removal")
    renewals_a_life: float = assumed(0.05, "credentials last for days, few workers do")
    errors_a_life: float = assumed(0.02, "workers report an error now and then")
    machines_an_order: float = assumed(3, "as measured: ticks every 30 s catch few tasks at once")
    operator_requests: float = assumed(20_000, "a day: tools, dashboards, people")
    cpu_factor: float = assumed(1.3, "Lambda's processor, slower than the one that measured")
    dynamodb_wait: float = assumed(0.005, "seconds a call")
    sqs_wait: float = assumed(0.010, "seconds a call")
    events_wait: float = assumed(0.020, "seconds a call")
    s3_wait: float = assumed(0.030, "seconds a call")
    ec2_wait: float = assumed(0.300, "seconds a call")
    queue_wait: float = assumed(0.060, "seconds a call of the task queue")
    receives_a_message: float = assumed(2, "each message is received and deleted by itself")
    idle_pollers: float = assumed(5, "of Lambda at each queue, a request each 20 s")
    queues: float = assumed(5, "of one provider that Lambda reads")
    platform_log_bytes: float = assumed(330, "START, END and REPORT of each call")
    logs_kept_months: float = assumed(1, "retention of the log groups")
    stored_gb: float = assumed(2, "rows of 8 days, plans of 14, errors of 7")
    requests_a_connection: float = assumed(10, "a stock client keeps a connection for a while")
    connection_bytes: float = assumed(5_000, "a TLS handshake")
    balancer_addresses: float = assumed(2, "one in each of two zones")


def assumptions_table(a: Assumptions) -> str:
    """A Markdown table of what is assumed, and why."""
    rows = [("assumed", "value", "why"), ("---", "---:", "---")]
    rows += [
        (f.name.replace("_", " "), f"{getattr(a, f.name):g}", f.metadata["why"])
        for f in fields(Assumptions)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
