"""What is known of the machines: where they are, and what can be done to them.

One TOML file, checked whole when the agent starts: a wrong type, an unknown field or rung, a file
of secrets that others can read: all are refused, each with the host and the field.  A machine is
known by its worker group and worker id, so that it keeps its entry when it moves to another pool.
Read next: ``ladder``, ``rungs``.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from worker_manager_agent.failures import ConfigError
from worker_manager_agent.reading import (
    Name,
    Origin,
    Period,
    Seconds,
    Url,
    complaints,
    read_toml,
)
from worker_manager_agent.secrets import Secret, base_of, check_private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

Port = Annotated[int, Field(ge=1, le=65535, strict=True)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class Rung(StrEnum):
    """A way to bring a machine back, from the gentlest on."""

    SSH = "ssh"
    IPMI_RESET = "ipmi-reset"
    REDFISH_RESET = "redfish-reset"
    IPMI_CYCLE = "ipmi-cycle"
    REDFISH_CYCLE = "redfish-cycle"
    PDU = "pdu"
    PDU_OFF_ON = "pdu-off-on"
    TICKET = "ticket"


DEFAULT_LADDER = tuple(rung for rung in Rung if rung is not Rung.PDU_OFF_ON)
"""What is tried where a host says nothing: all but the second way to switch an outlet."""


class _Strict(BaseModel):
    """No field that is not known; nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _existing(value: Any, info: ValidationInfo) -> Path:
    if not isinstance(value, str):
        raise ValueError("a path is a string")
    path = base_of(info) / value
    if not path.is_file():
        raise ValueError(f"{path} is not there")
    return path


ExistingFile = Annotated[Path, BeforeValidator(_existing)]


class Look(_Strict):
    """How it is seen whether a machine is up, and for how long that is waited for.

    It is up when its port takes a connection and, if there is a ``banner``, says that first.  (A
    ping would need rights that the agent has no other use for; and a kernel that hangs may still
    answer one.)  Times in seconds.
    """

    port: Port = 22
    banner: str = "SSH-"
    connect_seconds: Period = 3.0
    down_within_seconds: Seconds = 60.0
    down_poll_seconds: Period = 1.0
    up_within_seconds: Seconds = 300.0
    up_poll_seconds: Period = 5.0


class Ssh(_Strict):
    """A login with a key, to an account that may do nothing else (``ForceCommand``) or root."""

    user: Text
    key: ExistingFile
    known_hosts: ExistingFile
    passphrase: Secret | None = None
    port: Port = 22
    command: Text = "reboot"
    timeout_seconds: Period = 15.0

    @field_validator("key")
    @classmethod
    def _is_private(cls, key: Path) -> Path:
        check_private(key)
        return key


class Ipmi(_Strict):
    """The machine's controller, over IPMI 2.0 (RMCP+)."""

    address: Text
    user: Text
    password: Secret
    port: Port = 623
    privilege: Literal["operator", "administrator"] = "operator"
    timeout_seconds: Period = 20.0


class Redfish(_Strict):
    """The machine's controller, over Redfish."""

    url: Origin
    system: Annotated[str, StringConstraints(pattern=r"^/redfish/v1/Systems/[^/?#\s]+$")]
    user: Text
    password: Secret
    ca_file: ExistingFile | None = None
    """Who vouches for the controller's certificate, if nobody well known does."""
    off_seconds: Seconds = 10.0
    """How long it stays off where the controller cannot cycle by itself."""
    timeout_seconds: Period = 30.0


class SnmpUser(_Strict):
    """Who asks, in SNMP v3: always authenticated and encrypted."""

    name: Text
    auth_key: Secret
    priv_key: Secret
    auth_protocol: Literal["sha", "sha256", "sha512"] = "sha"
    priv_protocol: Literal["aes", "aes256"] = "aes"

    @model_validator(mode="after")
    def _are_long(self) -> Self:
        for name in ("auth_key", "priv_key"):
            if len(getattr(self, name).get_secret_value()) < 8:
                raise ValueError(f"{name} needs eight characters or more")
        return self


class Pdu(_Strict):
    """The outlet that feeds it, of a Sentry3 power distribution unit."""

    address: Text
    outlet: Annotated[str, StringConstraints(pattern=r"^[a-d][a-d][1-9][0-9]?$")]
    """Tower, infeed and number, as printed beside it: ``aa8``."""
    port: Port = 161
    v3: SnmpUser | None = None
    v2c_community: Secret | None = None
    """Sent in clear: only for units that know nothing better."""
    off_seconds: Seconds = 60.0
    """How long ``pdu-off-on`` leaves it off."""
    timeout_seconds: Period = 5.0

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.v3 is None) == (self.v2c_community is None):
            raise ValueError("say either v3 or v2c_community")
        return self


class Ticket(_Strict):
    """Where to tell people: a request with JSON."""

    url: Url
    body: dict[str, Any]
    """Its strings may hold ``{host}`` and the other names of ``rungs.ticket.Case``."""
    headers: dict[str, str] = {}
    token: Secret | None = None
    """Sent as ``Authorization: Bearer``."""
    timeout_seconds: Period = 30.0


class Host(_Strict):
    """One machine."""

    worker_group: Name
    worker_id: Name
    address: Text
    name: Text | None = None
    """What people call it; otherwise its worker id."""
    ladder: Annotated[list[Rung], Field(min_length=1)] = list(DEFAULT_LADDER)
    look: Look = Look()
    ssh: Ssh | None = None
    ipmi: Ipmi | None = None
    redfish: Redfish | None = None
    pdu: Pdu | None = None
    ticket: Ticket | None = None

    @field_validator("ladder")
    @classmethod
    def _has_each_once(cls, ladder: list[Rung]) -> list[Rung]:
        if len(set(ladder)) != len(ladder):
            raise ValueError("a rung is there twice")
        return ladder

    @property
    def title(self) -> str:
        """What it is called in words."""
        return self.name or self.worker_id

    def has(self, rung: Rung) -> bool:
        """Whether enough is known of it for a rung."""
        return getattr(self, rung.partition("-")[0]) is not None


Inventory = dict[tuple[str, str], Host]
"""Machines by worker group and worker id."""


def load_inventory(path: Path, environment: Mapping[str, str]) -> Inventory:
    """Read and check the inventory; ``ConfigError`` tells of everything that is wrong.

    ``[defaults]`` holds what every ``[[host]]`` has that does not say otherwise, field by field.
    Its ``ipmi``, ``redfish`` and ``pdu`` are for hosts that have such a table at all.
    """
    raw = read_toml(path)
    problems = [f"{path}: {name}: unknown" for name in raw.keys() - {"defaults", "host"}]
    defaults, listed = raw.get("defaults", {}), raw.get("host", [])
    if not isinstance(defaults, dict) or not isinstance(listed, list):
        raise ConfigError(f"{path}: defaults is a table, [[host]] a list of tables")
    context = {"base": path.parent, "environment": environment}
    hosts: Inventory = {}
    for number, given in enumerate(listed, 1):
        title = _title(given, number)
        try:
            host = Host.model_validate(_with_defaults(defaults, given), context=context)
        except ValidationError as error:
            problems += [f"{path}: {title}: {line}" for line in complaints(error)]
            continue
        if (key := (host.worker_group, host.worker_id)) in hosts:
            problems.append(f"{path}: {title}: worker_id: listed twice")
        hosts[key] = host
    if problems:
        raise ConfigError("\n".join(problems))
    return hosts


def _title(given: Any, number: int) -> str:
    if isinstance(given, dict):
        return f"host {given.get('name') or given.get('worker_id') or number}"
    return f"host {number}"


def _with_defaults(defaults: dict[str, Any], given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    left_out = {name for name in ("ipmi", "redfish", "pdu") if name not in given}
    return _over({name: defaults[name] for name in defaults.keys() - left_out}, given)


def _over(defaults: Any, given: Any) -> Any:
    """What is given over the defaults, down to single fields; a whole list is one field."""
    if not isinstance(defaults, dict) or not isinstance(given, dict):
        return given
    return defaults | {name: _over(defaults.get(name), value) for name, value in given.items()}
