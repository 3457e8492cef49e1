"""One simulated instance: what EC2 knows of it, and how its state moves on with time.

States follow "Amazon EC2 instance state changes" in the EC2 User Guide.  Nothing runs in the
background: an instance settles into the state that is due whenever it is looked at.  Read next:
``cloud`` (who owns instances), ``render`` (how they look on the wire).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum


class InstanceState(StrEnum):
    """EC2's instance states."""

    PENDING = "pending"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"
    STOPPING = "stopping"
    STOPPED = "stopped"

    @property
    def code(self) -> int:
        """The number that goes with the name on the wire."""
        return _CODES[self]

    @property
    def is_over(self) -> bool:
        """Whether the machine is gone or going for good."""
        return self in (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)


_CODES = {
    InstanceState.PENDING: 0,
    InstanceState.RUNNING: 16,
    InstanceState.SHUTTING_DOWN: 32,
    InstanceState.TERMINATED: 48,
    InstanceState.STOPPING: 64,
    InstanceState.STOPPED: 80,
}


@dataclass(frozen=True, slots=True)
class StateReason:
    """Why an instance last changed state, as EC2 words it."""

    code: str
    message: str


USER_TERMINATED = StateReason(
    "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"
)
GUEST_SHUT_DOWN = StateReason(
    "Client.InstanceInitiatedShutdown",
    "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
)
SPOT_INTERRUPTED = StateReason(
    "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot interruption"
)


@dataclass(slots=True, eq=False)
class Volume:
    """A disk.  One that ``outlives`` its instance is left over, available, when that ends."""

    volume_id: str
    device: str
    size_gib: int
    tags: dict[str, str]
    zone: str
    created_at: float
    outlives: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one RunInstances call made."""

    reservation_id: str
    owner_id: str


@dataclass(slots=True, eq=False)
class Instance:
    """One machine.  Times are seconds on the cloud's clock."""

    instance_id: str
    sequence: int
    """Order of launch over all regions; pages of a list continue by it."""
    region: str
    zone: str
    reservation: Reservation
    launch_index: int
    image_id: str
    instance_type: str
    spot: bool
    private_ip: str
    launched_at: float
    visible_at: float
    """Before this moment the Describe actions do not know the instance."""
    client_token: str = ""
    user_data: str = ""
    """Base64, as it came."""
    stops_on_shutdown: bool = True
    """Whether a shutdown from inside stops the instance (EC2's default) or terminates it."""
    is_seeded: bool = False
    """Made by the control side in bulk; no simulated machine runs on it."""
    reboots: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    state: InstanceState = InstanceState.PENDING
    reason: StateReason | None = None
    gone_at: float = float("inf")
    rendered: str = ""
    """XML of the instance as it is; empty when it must be rendered anew."""
    _next_state: InstanceState | None = None
    _next_at: float = 0.0

    @property
    def architecture(self) -> str:
        """``arm64`` for Graviton types, else ``x86_64``."""
        return architecture_of(self.instance_type)

    def settle(self, now: float) -> InstanceState:
        """Take the step that is due, if any, and tell the state."""
        if self._next_state is not None and now >= self._next_at:
            self.state, self._next_state = self._next_state, None
            self.rendered = ""
        return self.state

    def move(
        self, now: float, *, through: InstanceState, to: InstanceState, seconds: float
    ) -> None:
        """Enter ``through`` now and ``to`` in so many seconds."""
        self.state, self._next_state, self._next_at = through, to, now + seconds
        self.rendered = ""
        self.settle(now)

    def is_visible(self, now: float) -> bool:
        """Whether the Describe actions know this instance at ``now``."""
        return self.visible_at <= now < self.gone_at


def architecture_of(instance_type: str) -> str:
    """The processor architecture that an instance type's name tells."""
    return "arm64" if re.match(r"[a-z]+\d+g[a-z]*\.", instance_type) else "x86_64"


def vcpus_of(instance_type: str) -> int:
    """Virtual processors of an instance type, by the size in its name (AWS's usual ladder)."""
    size = instance_type.partition(".")[2]
    if size.startswith("metal"):
        return 96
    if multiple := re.fullmatch(r"(\d+)xlarge", size):
        return 4 * int(multiple[1])
    return {"xlarge": 4, "medium": 1, "small": 1, "nano": 1, "micro": 1}.get(size, 2)
