"""Secrets, read once per container."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


def read_secret(client: Any, secret_id: str) -> str:
    """The text of a secret; ``client`` is a boto3 client for Secrets Manager."""
    text: str = client.get_secret_value(SecretId=secret_id)["SecretString"]
    return text


@dataclass(frozen=True, slots=True)
class Login:
    """Who we are to a message broker."""

    username: str
    password: str = field(repr=False)


def login(text: str) -> Login:
    """The ``{"username", "password"}`` in a broker's secret; ``ValueError`` for anything else."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given.get("username") or not given.get("password"):
        raise ValueError("the broker's secret must be JSON with username and password")
    return Login(str(given["username"]), str(given["password"]))
