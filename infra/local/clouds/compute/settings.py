"""How the simulated Compute Engine behaves when nothing goes wrong on purpose.

Read next: ``cloud``.
"""

from __future__ import annotations

from dataclasses import dataclass

ZONES = tuple(
    f"{region}-{letter}"
    for region, letters in (
        ("us-central1", "abcf"),
        ("us-east1", "bcd"),
        ("us-east4", "abc"),
        ("us-west1", "abc"),
        ("us-west2", "abc"),
        ("northamerica-northeast1", "abc"),
        ("europe-west1", "bcd"),
        ("europe-west4", "abc"),
        ("asia-east1", "abc"),
    )
    for letter in letters
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How the cloud behaves.  Durations are seconds."""

    project: str = "simulated-project"
    project_number: int = 123456789012
    service_account_id: str = "107001234567890123456"
    """The unique id of the workers' service account: ``sub`` of identity tokens."""
    zones: tuple[str, ...] = ZONES
    provisioning_seconds: float = 0.5
    insert_seconds: float = 1.0
    """From the acceptance of an insert to RUNNING, and to the end of its operation."""
    failing_seconds: float = 0.5
    """From the acceptance of an insert that fails to the end of its operation."""
    delete_seconds: float = 1.0
    stopping_seconds: float = 1.0
    list_lag_seconds: float = 0.0
    """How long after its insertion the lists do not show an instance."""
    refuses_late: bool = True
    """Whether stock-outs and quotas fail the accepted operation, or refuse the call at once."""
    request_seconds: float = 3600.0
    """How long a ``requestId`` is remembered."""
    operations_seconds: float = 14 * 86_400.0
    """How long operations can be read."""
    token_seconds: float = 3600.0
    """How long an identity token is valid."""
    certificates_max_age_seconds: int = 3600
    """``Cache-Control`` of the public certificates."""
