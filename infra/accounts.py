"""What names of a stage's providers and of their clouds' accounts look like.

A wrong one would be noticed only after minutes of deployment, or when machines are launched.
Where to read next: ``settings``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from worker_manager.core.ids import is_identifier
from worker_manager.core.model import NULL_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_LOOPS = 5
"""Providers that launch machines, in one stage: CloudFormation takes 500 resources a stack."""

ADDRESS = r"[^\s@<>,;\"]+@[A-Za-z0-9.-]+"
"""A plain e-mail address."""

_FORMS: Mapping[str, tuple[str, str]] = {
    "project": (
        r"([a-z0-9][a-z0-9.-]*:)?[a-z][a-z0-9-]{4,28}[a-z0-9]",
        "a project's id, 6 to 30 lower-case letters, digits and hyphens",
    ),
    "service_account_id": (r"\d+", "the uniqueId, a number, not the e-mail address"),
    "service_account_email": (ADDRESS, "a plain e-mail address"),
    "subscription": (
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "a subscription's id, a UUID, not its name",
    ),
    "resource_group": (
        r"[\w().-]{0,89}[\w()-]",
        "a resource group's name, 1 to 90 letters, digits and -_.() without a dot at the end",
    ),
}
"""By setting: a pattern (Google's and Azure's own rules), and the same in words."""


def check_provider_id(provider_id: str) -> None:
    """Refuse what no pool could name, with a ``ValueError``."""
    if not is_identifier(provider_id):
        raise ValueError(f"{provider_id}: a provider_id is 1 to 38 letters, digits, - and _")
    if provider_id == NULL_PROVIDER:
        raise ValueError(f"{provider_id} is the provider that every stage has: name it otherwise")


def check_form(provider_id: str, name: str, value: str) -> None:
    """Refuse a ``value`` that setting ``name`` cannot have, with a ``ValueError`` that says why."""
    pattern, words = _FORMS[name]
    if not re.fullmatch(pattern, value, re.ASCII):
        raise ValueError(f"{provider_id}: {name} must be {words}: {value}")
