"""What goes wrong on purpose in the simulated Compute Engine.

Read next: ``infra.local.clouds.faults``; ``service``, where a drawn fault takes effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from infra.local.clouds import faults
from infra.local.clouds.compute.errors import ComputeError, Failure
from infra.local.clouds.faults import FaultKind

__all__ = ["Fault", "FaultKind"]


@dataclass(slots=True)
class Fault(faults.Fault):
    """A rule for some of the API's calls; ``*`` matches everything.

    ``code`` is a ``reason``, or with ``late`` an operation's error code (none if it is empty).
    """

    code: str = "internalError"
    zone: str = "*"
    """A zone, or ``global``."""
    machine_type: str = "*"
    source_image: str = "*"
    """The last part of the boot disk's image."""
    late: bool = False
    """Accept an insert, and let its operation fail."""
    status: int = 0
    """The HTTP status; 0 is the usual one of the code."""
    retry_after: int = 0
    """Seconds to tell in ``Retry-After``; 0 tells nothing."""

    def refusal(self) -> ComputeError:
        """The refusal that it orders."""
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else None
        return ComputeError(self.code, self.message, status=self.status, headers=headers)

    def failure(self) -> Failure:
        """The failure of an operation that it orders."""
        status = self.status or HTTPStatus.BAD_REQUEST
        reason = HTTPStatus(status).phrase.upper()
        return Failure(self.code, self.message, status=int(status), reason=reason)
