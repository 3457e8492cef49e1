"""What goes wrong on purpose in the simulated EC2.  Read next: ``infra.local.clouds.faults``."""

from __future__ import annotations

from dataclasses import dataclass

from infra.local.clouds import faults
from infra.local.clouds.faults import FaultKind

__all__ = ["Fault", "FaultKind"]


@dataclass(slots=True)
class Fault(faults.Fault):
    """A rule for some of EC2's calls; ``*`` matches everything."""

    region: str = "*"
    image_id: str = "*"
    instance_type: str = "*"
