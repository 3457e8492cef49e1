"""List prices of AWS, in one table; no free tier, no discount, no tax.

Region us-east-1 (N. Virginia), from the services' own pricing pages (aws.amazon.com/<service>/
pricing), as they stood in November 2025.  Where to read next: ``bill``.
"""

from __future__ import annotations

from dataclasses import dataclass

REGION = "us-east-1"
AS_OF = "November 2025"

MILLION = 1_000_000
GIGABYTE = 1e9
HOURS_A_MONTH = 730
DAYS_A_MONTH = HOURS_A_MONTH / 24


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for ``per`` units of something; ``tiers`` are (up to so many units, dollars)."""

    service: str
    what: str
    usd: float
    per: float = 1
    tiers: tuple[tuple[float, float], ...] = ()

    def of(self, amount: float) -> float:
        """What a month's ``amount`` costs."""
        cost, before = 0.0, 0.0
        for limit, usd in self.tiers:
            part = min(amount, limit) - before
            if part <= 0:
                return cost
            cost, before = cost + part / self.per * usd, limit
        return cost + max(0.0, amount - before) / self.per * self.usd


PRICES = {
    "lambda_requests": Price("Lambda", "requests", 0.20, MILLION),
    "lambda_gb_seconds": Price("Lambda", "GB-seconds, arm64", 0.0000133334),
    "dynamodb_reads": Price("DynamoDB", "read units, on demand", 0.125, MILLION),
    "dynamodb_writes": Price("DynamoDB", "write units, on demand", 0.625, MILLION),
    "dynamodb_gb": Price("DynamoDB", "GB stored, with recovery", 0.25 + 0.20),
    "sqs_fifo": Price("SQS", "requests, FIFO", 0.50, MILLION),
    "sqs_standard": Price("SQS", "requests, standard", 0.40, MILLION),
    "events": Price("EventBridge", "events put", 1.00, MILLION),
    "log_gb": Price("CloudWatch", "GB of logs written", 0.50),
    "log_kept_gb": Price("CloudWatch", "GB of logs kept", 0.03),
    "metrics": Price("CloudWatch", "custom metrics", 0.30),
    "alarms": Price("CloudWatch", "alarms", 0.10),
    "dashboards": Price("CloudWatch", "dashboards", 3.00),
    "s3_puts": Price("S3", "PUT requests", 5.00, MILLION),
    "s3_gets": Price("S3", "GET requests", 0.40, MILLION),
    "secrets": Price("Secrets Manager", "secrets", 0.40),
    "out_gb": Price("Data transfer", "GB to other regions", 0.02),
    "rest_requests": Price(
        "API Gateway",
        "REST requests",
        2.38,
        MILLION,
        tiers=((333 * MILLION, 3.50), (1_000 * MILLION, 2.80)),
    ),
    "alb_hours": Price("Load balancer", "hours", 0.0225),
    "alb_lcu_hours": Price("Load balancer", "LCU-hours", 0.008),
    "alb_address_hours": Price("Load balancer", "hours of public addresses", 0.005),
}
"""By what is counted."""
