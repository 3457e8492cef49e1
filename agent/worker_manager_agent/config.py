"""What the agent itself is told: whom to ask, who it is, how often.

Credentials come from ``TASKCLUSTER_CLIENT_ID``, ``TASKCLUSTER_ACCESS_TOKEN`` and
``TASKCLUSTER_CERTIFICATE``, or from a file of mode 0600 with the same three in TOML
(``client_id``, ``access_token``, ``certificate``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from worker_manager_agent.failures import ConfigError
from worker_manager_agent.inventory import load_inventory
from worker_manager_agent.reading import Name, Origin, Period, Seconds, complaints, read_toml
from worker_manager_agent.secrets import check_private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from worker_manager_agent.inventory import Inventory

M = TypeVar("M", bound=BaseModel)

LEASE_SECONDS = 60.0
"""For how long the worker manager gives a run to an agent that says nothing."""

Queues = Annotated[
    str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,38}/(\*|[a-z][a-z0-9-]{0,37}\*?)$")
]
"""A task queue, or with a star at the end those whose names begin so; never of all provisioners."""


class Settings(BaseModel):
    """The agent's file.  Paths begin at its folder, times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    root_url: Origin
    agent_id: Name
    inventory: Path
    task_queues: Annotated[tuple[Queues, ...], Field(min_length=1)]
    """Whose machines it may touch: whoever may declare actions elsewhere can name this agent, and
    workers like ours."""
    credentials_file: Path | None = None
    poll_seconds: Period = 10.0
    """Between two questions whether there is something to do."""
    heartbeat_seconds: Period = 15.0
    lease_seconds: Annotated[Period, Field(le=LEASE_SECONDS)] = LEASE_SECONDS
    """How long a run stays ours without a word: after that it is let go."""
    request_seconds: Period = 10.0
    """For one request to the worker manager."""
    retry_seconds: Seconds = 0.5
    """Before the first repeat of a request that failed; it doubles with each."""
    most_at_once: Annotated[int, Field(ge=1, le=100, strict=True)] = 4
    """Runs side by side; two of one host come one after the other."""
    stop_seconds: Seconds = 20.0
    """How long runs may go on after the agent was told to stop."""

    @model_validator(mode="after")
    def _is_kept(self) -> Self:
        if self.heartbeat_seconds > self.lease_seconds / 2:
            raise ValueError("heartbeat_seconds is over half of lease_seconds")
        return self

    def is_for(self, task_queue_id: str) -> bool:
        """Whether machines of this task queue may be touched."""
        return any(
            task_queue_id.startswith(queues[:-1]) if queues[-1] == "*" else task_queue_id == queues
            for queues in self.task_queues
        )


class Credentials(BaseModel):
    """Who asks."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    client_id: Annotated[str, Field(min_length=1)]
    access_token: Annotated[SecretStr, Field(min_length=1)]
    certificate: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """All that an agent starts with, checked."""

    settings: Settings
    credentials: Credentials
    hosts: Inventory


def load_config(path: Path, environment: Mapping[str, str]) -> Config:
    """Read and check everything; ``ConfigError`` tells what is wrong, and where."""
    settings = _checked(Settings, read_toml(path), str(path))
    base = path.parent
    return Config(
        settings,
        _credentials(settings, base, environment),
        load_inventory(base / settings.inventory, environment),
    )


def _credentials(settings: Settings, base: Path, environment: Mapping[str, str]) -> Credentials:
    if settings.credentials_file is None:
        prefix = "TASKCLUSTER_"
        names = ("client_id", "access_token", "certificate")
        given = {name: environment.get(prefix + name.upper()) or None for name in names}
        found = {name: value for name, value in given.items() if value is not None}
        return _checked(Credentials, found, "the environment (TASKCLUSTER_...)")
    path = base / settings.credentials_file
    try:
        check_private(path)
    except ValueError as error:
        raise ConfigError(f"credentials_file: {error}") from error
    return _checked(Credentials, read_toml(path), str(path))


def _checked(model: type[M], given: Any, where: str) -> M:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        lines = [f"{where}: {line}" for line in complaints(error)]
        raise ConfigError("\n".join(lines)) from error
