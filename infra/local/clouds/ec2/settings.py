"""How the simulated EC2 behaves when nothing goes wrong on purpose.  Read next: ``cloud``."""

from __future__ import annotations

from dataclasses import dataclass

REGIONS = (
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "ca-central-1",
    "eu-central-1",
    "eu-west-1",
    "eu-west-2",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-1",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How the cloud behaves.  Durations are seconds."""

    regions: tuple[str, ...] = REGIONS
    zone_letters: str = "abc"
    account_id: str = "123456789012"
    pending_seconds: float = 1.0
    shutting_down_seconds: float = 1.0
    stopping_seconds: float = 1.0
    gone_after_seconds: float = 3600.0
    """How long the lists still show a terminated instance (about an hour on EC2)."""
    token_seconds: float = 86_400.0
    """How long a client token is remembered."""
    list_lag_seconds: float = 0.0
    """How long after its launch the Describe actions do not know an instance."""
