"""Every setting of a function, from its environment as it was at start.

Nothing else reads the environment.  A value is read, and checked, when it is asked for: mostly as
a container builds what its function works with (``wiring``), else in the first call that wants it.
A function is given only what it needs; what is missing or malformed fails with the name of its
variable.  ``infra`` sets these names and a test compares both sides.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from worker_manager.core.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE_VARIABLES = {
    "pools": "WM_TABLE_POOLS",
    "providers": "WM_TABLE_PROVIDERS",
    "workers": "WM_TABLE_WORKERS",
    "pool_errors": "WM_TABLE_ERRORS",
    "health": "WM_TABLE_HEALTH",
    "queue": "WM_TABLE_QUEUE",
    "registry": "WM_TABLE_REGISTRY",
    "actions": "WM_TABLE_ACTIONS",
}


PAGE_BYTES = 4_000_000
"""Of one page of a list unless a stage says otherwise; Lambda's own limit is 6 MB."""


LONGEST_HOLD = 2
"""Seconds that a worker's question for work may be held at most: each held call is paid for."""


class QueueKind(StrEnum):
    """Where tasks are, and how the registry hears of who works on them."""

    BUILTIN = "builtin"
    """In our own queue, which tells of each call."""
    REMOTE = "remote"
    """In a Taskcluster queue, which is asked every few minutes."""
    EVENTS = "events"
    """In a Taskcluster queue, of which somebody tells us."""


class MissingSettingError(RuntimeError):
    """A required variable is absent or malformed; the message names it."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One provider of this deployment, without its secret.

    ``options`` are what its type needs to be told: of ``google`` the ``project`` and the workers'
    ``serviceAccountId`` and ``serviceAccountEmail``, of ``azure`` the ``subscription`` and the
    ``resourceGroup``.
    """

    provider_id: str
    provider_type: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """A function's environment, understood.

    ``deployment`` is the tag by which this deployment's machines are told from anybody else's.
    """

    environment: Mapping[str, str]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """Keep a copy of ``environment``; values are read when asked for."""
        return cls(MappingProxyType(dict(environment)))

    def required(self, name: str) -> str:
        """A variable that must be there."""
        value = self.environment.get(name, "")
        if not value:
            raise MissingSettingError(f"environment variable {name} is not set")
        return value

    @property
    def deployment(self) -> str:
        """Value of the tag that marks this deployment's machines."""
        return self.required("WM_DEPLOYMENT")

    @property
    def root_url(self) -> str:
        """Where clients and machines reach this service, without a trailing slash."""
        return self.required("WM_ROOT_URL").rstrip("/")

    @property
    def region(self) -> str:
        """The AWS region that this function runs in."""
        return self.environment.get("AWS_REGION") or self.required("AWS_DEFAULT_REGION")

    @property
    def tables(self) -> dict[str, str]:
        """Short name → table name, of the tables this function may use."""
        return {
            short: self.environment[name]
            for short, name in TABLE_VARIABLES.items()
            if name in self.environment
        }

    @property
    def bus(self) -> str:
        """Name of the event bus."""
        return self.required("WM_BUS")

    @property
    def providers(self) -> dict[str, ProviderSettings]:
        """All providers of this deployment, by id."""
        return {name: _provider(name, given) for name, given in self._json("WM_PROVIDERS").items()}

    @property
    def provider(self) -> ProviderSettings:
        """The provider that this function works for."""
        name = self.required("WM_PROVIDER")
        try:
            return self.providers[name]
        except KeyError:
            raise MissingSettingError(f"WM_PROVIDERS has no provider {name!r}") from None

    @property
    def cloud_endpoint(self) -> str | None:
        """Where the provider's cloud is if not at its own address; on this machine only."""
        return self.environment.get("WM_CLOUD_ENDPOINT") or None

    @property
    def queue_root_url(self) -> str:
        """Root URL of the Taskcluster queue that knows the tasks."""
        return self.required("WM_QUEUE_ROOT_URL").rstrip("/")

    @property
    def queue_kind(self) -> QueueKind:
        """Which queue this deployment has."""
        given = self.environment.get("WM_QUEUE_BACKEND", QueueKind.BUILTIN)
        try:
            return QueueKind(given)
        except ValueError:
            known = ", ".join(QueueKind)
            raise MissingSettingError(
                f"WM_QUEUE_BACKEND must be one of {known}: {given!r}"
            ) from None

    @property
    def claim_hold(self) -> timedelta:
        """How long a worker that asks for work is kept waiting for some."""
        if "WM_CLAIM_HOLD_SECONDS" not in self.environment:
            return timedelta()
        seconds = self._number("WM_CLAIM_HOLD_SECONDS")
        if seconds > LONGEST_HOLD:
            raise MissingSettingError(f"WM_CLAIM_HOLD_SECONDS must be at most {LONGEST_HOLD}")
        return timedelta(seconds=seconds)

    @property
    def auth_root_url(self) -> str | None:
        """Root URL of the auth service that knows who signs; ``None`` if we know it ourselves."""
        match self.environment.get("WM_AUTH", "local"):
            case "local":
                return None
            case "remote":
                return self.required("WM_AUTH_ROOT_URL").rstrip("/")
            case other:
                raise MissingSettingError(f"WM_AUTH must be local or remote, not {other!r}")

    @property
    def provider_queues(self) -> dict[str, dict[str, str]]:
        """Provider id → the queues an API function may send to (``provision``, ``advance``)."""
        given = self._json("WM_QUEUES")
        for name, urls in given.items():
            if not isinstance(urls, dict):
                raise MissingSettingError(f"WM_QUEUES: {name!r} is no object of URLs by purpose")
        return given

    @property
    def trusted_ec2_keys(self) -> str:
        """PEM text of further keys that sign instance identity documents; usually empty."""
        return self.environment.get("WM_TRUSTED_EC2_KEYS", "")

    @property
    def trusted_azure_roots(self) -> str:
        """PEM text of further roots behind attested documents of Azure; usually empty."""
        return self.environment.get("WM_TRUSTED_AZURE_ROOTS", "")

    @property
    def azure_issuer_hosts(self) -> frozenset[str]:
        """Further hosts (``host:port``) that certificates behind such documents may come from."""
        given = self.environment.get("WM_AZURE_ISSUER_HOSTS", "").split(",")
        return frozenset(host.strip() for host in given if host.strip())

    @property
    def google_certificates_url(self) -> str | None:
        """Where Google's certificates are if not at their own address; on this machine only."""
        return self.environment.get("WM_GOOGLE_CERTS_URL") or None

    @property
    def action_hosts(self) -> tuple[str, ...]:
        """Hosts (``host`` or ``host:port``) that ``http`` actions may call; usually none."""
        given = self.environment.get("WM_ACTION_HOSTS", "").split(",")
        return tuple(host.strip() for host in given if host.strip())

    @property
    def metrics_namespace(self) -> str:
        """Where CloudWatch keeps this deployment's metrics; empty if nobody wants any."""
        return self.environment.get("POWERTOOLS_METRICS_NAMESPACE", "")

    @property
    def metrics_by_pool(self) -> bool:
        """Whether pools are a dimension of some metrics, which costs by the pool."""
        return self.environment.get("WM_METRICS_BY_POOL") == "true"

    @property
    def page_bytes(self) -> int:
        """Most bytes of a list's page, escaped as Lambda hands it on, that the front door takes."""
        if "WM_PAGE_BYTES" not in self.environment:
            return PAGE_BYTES
        return int(self._number("WM_PAGE_BYTES"))

    @property
    def mail_from(self) -> str | None:
        """Who sends e-mail about errors to owners of pools; ``None`` if this stage sends none."""
        return self.environment.get("WM_MAIL_FROM") or None

    @property
    def timing(self) -> Timing:
        """Waiting times: ticks and list lag from their settings, others by ``WM_TIMING``.

        ``WM_TIMING`` is a JSON object of ``Timing`` fields in seconds.
        """
        given = {name: _duration(name, value) for name, value in self._json("WM_TIMING").items()}
        if "WM_TICK_SECONDS" in self.environment:
            given.setdefault("tick", self.tick)
            given.setdefault("scan", self.tick)
        if "WM_LIST_LAG_SECONDS" in self.environment:
            given.setdefault("list_lag", timedelta(seconds=self._number("WM_LIST_LAG_SECONDS")))
        return Timing(**given)

    @property
    def tick(self) -> timedelta:
        """Between two ticks: 5 to 60 seconds, dividing the minute."""
        seconds = self._number("WM_TICK_SECONDS")
        if not 5 <= seconds <= 60 or 60 % seconds:
            raise MissingSettingError("WM_TICK_SECONDS must divide 60 and be 5 to 60")
        return timedelta(seconds=seconds)

    def _number(self, name: str) -> float:
        """A number that is not negative."""
        text = self.required(name)
        try:
            value = float(text)
        except ValueError:
            value = -1
        if not 0 <= value < inf:
            raise MissingSettingError(f"environment variable {name} is no number: {text!r}")
        return value

    def _json(self, name: str) -> dict[str, Any]:
        text = self.environment.get(name) or "{}"
        try:
            value = json.loads(text)
        except ValueError as error:
            raise MissingSettingError(f"environment variable {name} is not JSON") from error
        if not isinstance(value, dict):
            raise MissingSettingError(f"environment variable {name} is not a JSON object")
        return value


OPTIONS: Mapping[str, tuple[str, ...]] = {
    "google": ("project", "serviceAccountId", "serviceAccountEmail"),
    "azure": ("subscription", "resourceGroup"),
}
"""What providers of a type must be told."""


def _provider(name: str, given: Any) -> ProviderSettings:
    if not isinstance(given, dict) or not isinstance(given.get("providerType"), str):
        raise MissingSettingError(f"WM_PROVIDERS: provider {name!r} has no providerType")
    kind = given["providerType"]
    for option in OPTIONS.get(kind, ()):
        if not isinstance(given.get(option), str) or not given[option]:
            raise MissingSettingError(f"WM_PROVIDERS: provider {name!r} has no {option}")
    if unknown := given.keys() - {"providerType", *OPTIONS.get(kind, ())}:
        raise MissingSettingError(f"WM_PROVIDERS: provider {name!r} has unknown {sorted(unknown)}")
    options = {option: given[option] for option in OPTIONS.get(kind, ())}
    return ProviderSettings(name, kind, options)


def _duration(name: str, seconds: Any) -> timedelta:
    """A value of ``WM_TIMING``; ticks, which begin with the minute, must divide it."""
    if name not in Timing.__dataclass_fields__:
        raise MissingSettingError(f"WM_TIMING has an unknown field {name!r}")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < inf:
        raise MissingSettingError(f"WM_TIMING: {name} is no number of seconds: {seconds!r}")
    if name in ("tick", "scan") and (not 0 < seconds <= 60 or 60 % seconds):
        raise MissingSettingError(f"WM_TIMING: {name} must divide 60 seconds, not {seconds!r}")
    return timedelta(seconds=seconds)


def load() -> Settings:
    """The settings of the function that this process serves."""
    return Settings.of(os.environ)
