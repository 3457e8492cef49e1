"""How calls of Azure's API are told apart by faults.  Read next: ``service``."""

from __future__ import annotations

from dataclasses import dataclass

from infra.local.clouds.faults import Fault


@dataclass(slots=True)
class ArmFault(Fault):
    """A rule: which calls go wrong, how, how often.  ``*`` matches everything.

    An action is a type and a verb: ``virtualMachines.put``, ``deployments.delete``,
    ``operations.get`` (see ``actions``).
    """

    code: str = "InternalServerError"
    location: str = "*"
    group: str = "*"
    name: str = "*"
    instance_type: str = "*"
    status: int | None = None
    """Of a refusal; ``None`` is the one that goes with the code."""
    retry_after: int | None = None
    """Seconds that a refusal advises to wait; ``None`` advises nothing."""
